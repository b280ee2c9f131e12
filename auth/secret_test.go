package auth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func generate(t *testing.T, id string) Secret {
	s, err := Generate(bytes.NewReader(bytes.Repeat([]byte{0xa7}, secretBytes)), id)
	require.NoError(t, err)
	return s
}

func TestSecretsAreReadAgain(t *testing.T) {
	for _, id := range []string{"a", "billing-worker-7", strings.Repeat("x", job.MaxTokenIDBytes)} {
		s := generate(t, id)
		require.Less(t, len(s.Text()), MaxTextBytes)
		again, err := Parse(s.Text())
		require.NoError(t, err)
		require.Equal(t, s, again)
		require.Equal(t, id, again.ID())
		require.Len(t, again.Hash(), 32)
	}
	// The format never changes: holders keep their tokens.
	require.Equal(t, "tarry_worker_p6enp6enp6enp6enp6enp6enp6enp6enp6enp6enp6c_a4a374cf", generate(t, "worker").Text())
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s := generate(t, "worker")
	for _, format := range []string{"%s", "%v", "%+v", "%#v", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, s), "p6en", format)
		require.NotContains(t, fmt.Sprintf(format, struct{ S Secret }{s}), "p6en", format)
	}
}

func TestGenerateFails(t *testing.T) {
	_, err := Generate(strings.NewReader("short"), "a")
	require.ErrorContains(t, err, "random bytes")
	for _, id := range []string{"", "A", "a_b", "a.b", "ü", strings.Repeat("x", 33)} {
		_, err := Generate(bytes.NewReader(make([]byte, 32)), id)
		require.Equal(t, job.CodeInvalid, job.CodeOf(err), "%q", id)
	}
}

func TestParseRefuses(t *testing.T) {
	good := generate(t, "worker").Text()
	for _, c := range []struct {
		text string
		err  error
	}{
		{"", ErrNotToken},
		{"tarry_", ErrNotToken},
		{"tarry_worker", ErrNotToken},
		{strings.ToUpper(good), ErrNotToken},
		{good + "0", ErrNotToken},
		{good[:len(good)-1], ErrNotToken},
		{" " + good, ErrNotToken},
		{good + "\n", ErrNotToken},
		{strings.Replace(good, "worker", "wörker", 1), ErrNotToken},
		{strings.Replace(good, "worker", strings.Repeat("w", 200), 1), ErrNotToken},
		{strings.Replace(good, "worker", "worker2", 1), ErrMistyped},
		{strings.Replace(good, "p6en", "p6eN", 1), ErrMistyped},
	} {
		_, err := Parse(c.text)
		require.ErrorIs(t, err, c.err, "%q", c.text)
		require.NotContains(t, err.Error(), "p6en")
	}
}

// Two texts are never the same token, and what is read is what was written.
func FuzzParse(f *testing.F) {
	s, err := Generate(bytes.NewReader(make([]byte, secretBytes)), "worker")
	require.NoError(f, err)
	f.Add(s.Text())
	f.Add("tarry_a_b_c")
	f.Add("tarry_-_" + strings.Repeat("_", 43) + "_00000000")
	f.Fuzz(func(t *testing.T, text string) {
		// With the right checksum the fuzzer gets further.
		if i := len(text) - 1 - crcBytes; i > 0 {
			text = text[:i] + "_" + checksum(text[:i])
		}
		s, err := Parse(text)
		if err != nil {
			require.True(t, errors.Is(err, ErrNotToken) || errors.Is(err, ErrMistyped))
			return
		}
		require.Equal(t, text, s.Text())
		require.LessOrEqual(t, len(text), MaxTextBytes)
		secret, err := textEncoding.DecodeString(text[len(textPrefix)+len(s.ID())+1 : len(text)-1-crcBytes])
		require.NoError(t, err)
		again, err := Generate(bytes.NewReader(secret), s.ID())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
