package invitation

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newSecret(t *testing.T, id string) Secret {
	s, err := Generate(rand.Reader, id)
	require.NoError(t, err)
	return s
}

func TestTheTextIsTheInvitation(t *testing.T) {
	s := newSecret(t, "a-1")
	read, err := Parse(s.Text())
	require.NoError(t, err)
	require.Equal(t, s, read)
	require.Equal(t, "a-1", read.ID())
	require.NotEqual(t, s.Text(), newSecret(t, "a-1").Text())
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s)} {
		require.Equal(t, "tarry-invitation_a-1_...", shown)
	}
}

func TestATextWithAFaultIsRefused(t *testing.T) {
	text := newSecret(t, "a").Text()
	for name, bad := range map[string]string{
		"empty": "", "cut short": text[:len(text)-1], "longer": text + "0", "a token": "tarry_" + text[len(textPrefix):],
		"another id": strings.Replace(text, "_a_", "_b_", 1), "a bad id": strings.Replace(text, "_a_", "_A_", 1),
		"no secret": text[:len(textPrefix)+2],
	} {
		_, err := Parse(bad)
		require.Error(t, err, name)
		if len(bad) > len(textPrefix)+2 {
			require.NotContains(t, err.Error(), bad[len(textPrefix)+2:], name)
		}
	}
	// Any other letter in the secret changes the checksum.
	at := len(textPrefix) + 5
	other := byte('A')
	if text[at] == other {
		other = 'B'
	}
	_, err := Parse(text[:at] + string(other) + text[at+1:])
	require.ErrorIs(t, err, ErrMistyped)
	_, err = Generate(rand.Reader, "A")
	require.ErrorContains(t, err, "takes only the characters")
	_, err = Generate(bytes.NewReader(nil), "a")
	require.Error(t, err)
}

func TestAProofIsGoodForItselfAlone(t *testing.T) {
	s := newSecret(t, "a")
	nonce := bytes.Repeat([]byte{7}, NonceBytes)
	p := Proof{Cluster: "c", Leader: "n1.a", Server: "n4.b", Address: "n4:7301", Nonce: nonce}
	signature := s.Sign(p)
	require.True(t, Verify(s.PublicKey(), p, signature))
	require.False(t, Verify(newSecret(t, "a").PublicKey(), p, signature), "another invitation")
	require.False(t, Verify(s.PublicKey()[1:], p, signature))
	require.False(t, Verify(s.PublicKey(), p, signature[1:]))
	for name, change := range map[string]func(*Proof){
		"cluster":     func(p *Proof) { p.Cluster = "d" },
		"leader":      func(p *Proof) { p.Leader = "n2.a" },
		"server":      func(p *Proof) { p.Server = "n5.b" },
		"address":     func(p *Proof) { p.Address = "n5:7301" },
		"nonce":       func(p *Proof) { p.Nonce = bytes.Repeat([]byte{8}, NonceBytes) },
		"short nonce": func(p *Proof) { p.Nonce = nonce[1:] },
		"the border":  func(p *Proof) { p.Leader, p.Server = "n1.an", "4.b" },
	} {
		other := p
		change(&other)
		require.False(t, Verify(s.PublicKey(), other, signature), name)
	}
	short := p
	short.Nonce = nil
	require.False(t, Verify(s.PublicKey(), short, s.Sign(short)), "a proof without a nonce can be used again")
}

func TestOthersMayNotReadTheFile(t *testing.T) {
	s, path := newSecret(t, "a"), filepath.Join(t.TempDir(), "invitation")
	require.NoError(t, os.WriteFile(path, []byte(s.Text()+"\n"), 0o600))
	read, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, s, read)
	for _, mode := range []os.FileMode{0o604, 0o620, 0o644} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = ReadFile(path)
		require.ErrorContains(t, err, "chmod 600", mode)
	}
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(" ", 2*maxTextBytes)+s.Text()), 0o600))
	_, err = ReadFile(path)
	require.ErrorContains(t, err, "more than")
	_, err = ReadFile(t.TempDir())
	require.ErrorContains(t, err, "is no file")
	_, err = ReadFile(path + "-missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Nodes of two releases exchange proofs, and a file may be older than its node: the bytes stay.
func TestTheFormatsStay(t *testing.T) {
	s, err := Generate(bytes.NewReader(bytes.Repeat([]byte{1}, 32)), "a-1")
	require.NoError(t, err)
	require.Equal(t, "tarry-invitation_a-1_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE_40130109", s.Text())
	p := Proof{Cluster: "c", Leader: "n1.a", Server: "n4.b", Address: "n4:7301", Nonce: bytes.Repeat([]byte{7}, NonceBytes)}
	require.Equal(t, "3199eb0c650cc8500e6942cfe401359da0a42fe35aaaf7034867eb1eebe4a25ffee828824fc34368d0f63a66cad3daddbaed4920f7097928f4cc4fe3c30a2c0c", fmt.Sprintf("%x", s.Sign(p)))
}

// A text from a file or a flag is the one of an invitation, or is refused without being shown.
func FuzzParse(f *testing.F) {
	s, err := Generate(rand.Reader, "a-1")
	require.NoError(f, err)
	f.Add(s.Text())
	f.Add(s.Text() + "0")
	f.Add("tarry-invitation_a_b_c")
	f.Fuzz(func(t *testing.T, text string) {
		read, err := Parse(text)
		if err != nil {
			require.Zero(t, read)
			require.Less(t, len(err.Error()), 200)
			return
		}
		require.Equal(t, text, read.Text())
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", read, read, read), text)
	})
}
