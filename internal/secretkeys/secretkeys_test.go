package secretkeys

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func some(c byte) (k Key) {
	copy(k.bytes[:], bytes.Repeat([]byte{c}, keyBytes))
	return k
}

// ringOf returns a ring of keys, with its file.
func ringOf(t *testing.T, keys ...Key) (*Ring, string) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, keys...)
	r, err := Open(path)
	require.NoError(t, err)
	return r, path
}

func write(t *testing.T, path string, keys ...Key) {
	var text string
	for _, k := range keys {
		text += k.Text() + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

const secret = "a secret of sixteen bytes or more"

func TestWhatIsSealedOpensForItsTopicOnly(t *testing.T) {
	r, _ := ringOf(t, some('a'))
	sealed := r.Seal("mail", secret)
	require.Len(t, sealed, len(secret)+Overhead)
	require.NotContains(t, string(sealed), secret)
	require.Equal(t, some('a').ID(), KeyOf(sealed))
	plain, err := r.Open("mail", sealed)
	require.NoError(t, err)
	require.Equal(t, secret, plain)
	_, err = r.Open("sms", sealed)
	require.ErrorIs(t, err, ErrDamaged)
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		_, err := r.Open("mail", bad)
		require.Error(t, err, i)
		require.NotContains(t, err.Error(), secret)
	}
	for _, short := range [][]byte{nil, sealed[:Overhead-1]} {
		_, err := r.Open("mail", short)
		require.ErrorIs(t, err, ErrDamaged)
		require.Empty(t, KeyOf(short))
	}
}

// Setting the same secret again changes nothing, and two secrets never share a nonce.
func TestTheSameSecretOfATopicSealsAlike(t *testing.T) {
	r, _ := ringOf(t, some('a'))
	require.Equal(t, r.Seal("mail", secret), r.Seal("mail", secret))
	nonces := map[string]bool{}
	for _, s := range [][]byte{r.Seal("mail", secret), r.Seal("sms", secret), r.Seal("mail", secret+"2"), r.Seal("mai", "l"+secret)} {
		nonces[string(s[idBytes:idBytes+nonceBytes])] = true
	}
	require.Len(t, nonces, 4)
}

// What was sealed by an earlier build must open.
func TestTheFormatStays(t *testing.T) {
	r, _ := ringOf(t, some('a'))
	require.Equal(t, "f5e6e1659fd1a4cd8c3efd26f2ba67edc4c5edbcdd6f641c983d4d49d9cbe1074e3b591ce5c0475839037920b781d442e5bb456a387e82668aea51b3ca7a3175f4a044af17", hex.EncodeToString(r.Seal("mail", secret)))
}

func TestKeysAreReplacedOneByOne(t *testing.T) {
	r, path := ringOf(t, some('a'))
	old := r.Seal("mail", secret)
	write(t, path, some('a'), some('b'))
	changed, err := r.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, old, r.Seal("mail", secret), "the first one seals")
	write(t, path, some('b'), some('a'))
	_, err = r.Reload()
	require.NoError(t, err)
	next := r.Seal("mail", secret)
	require.Equal(t, some('b').ID(), KeyOf(next))
	for _, sealed := range [][]byte{old, next} {
		plain, err := r.Open("mail", sealed)
		require.NoError(t, err)
		require.Equal(t, secret, plain)
	}
	write(t, path, some('b'))
	_, err = r.Reload()
	require.NoError(t, err)
	_, err = r.Open("mail", old)
	require.ErrorIs(t, err, ErrNoKey)
	require.ErrorContains(t, err, some('a').ID())
	require.Equal(t, []string{some('b').ID()}, r.IDs())

	// A file without good keys changes nothing.
	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	changed, err = r.Reload()
	require.ErrorContains(t, err, "line 1")
	require.False(t, changed)
	_, err = r.Open("mail", next)
	require.NoError(t, err)
}

func TestANodeWithoutKeysOpensNothing(t *testing.T) {
	made, _ := ringOf(t, some('a'))
	var none *Ring
	_, err := none.Open("mail", made.Seal("mail", secret))
	require.ErrorIs(t, err, ErrNoKey)
	require.Empty(t, none.IDs())
}

func TestWhatParses(t *testing.T) {
	a := some('a').Text()
	for name, c := range map[string]struct{ text, err string }{
		"one key":             {a, ""},
		"comments and spaces": {"# mine\r\n\n  " + a + " \r\n", ""},
		"no key":              {"# none\n", "there are 0 keys"},
		"a key twice":         {a + "\n" + a, "line 2: key " + some('a').ID() + " is there twice"},
		"no base64":           {a + "\nhunter2!", "line 2: it is not base64"},
		"a short key":         {"aGVsbG8=", "line 1: the key has 5 bytes; it takes 32"},
		"nine keys":           {nine(), "there are 9 keys; it takes 1 to 8"},
	} {
		_, err := Parse([]byte(c.text))
		if c.err == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.err, name)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func nine() string {
	var lines []string
	for c := range byte(9) {
		lines = append(lines, some(c).Text())
	}
	return strings.Join(lines, "\n")
}

func TestKeysAreMadeAndNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	k := NewKey()
	require.NoError(t, Create(path, k))
	require.ErrorIs(t, Create(path, k), fs.ErrExist)
	r, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{k.ID()}, r.IDs())
	require.NotEqual(t, k, NewKey())
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(format, k), k.Text()[:10])
		require.NotContains(t, fmt.Sprintf(format, struct{ K Key }{k}), k.Text()[:10])
	}
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "chmod 600")
}

// What the state has of a secret comes from a log or a backup. Nothing but what a key has
// sealed for the topic opens.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys")
	require.NoError(f, Create(path, some('a')))
	r, err := Open(path)
	require.NoError(f, err)
	good := r.Seal("mail", "0123456789abcdef")
	f.Add("mail", good)
	f.Add("bills", good)
	f.Add("mail", good[:len(good)-1])
	f.Add("mail", []byte(nil))
	f.Fuzz(func(t *testing.T, topic string, sealed []byte) {
		secret, err := r.Open(topic, sealed)
		if err != nil {
			require.Empty(t, secret)
			return
		}
		require.Equal(t, sealed, r.Seal(topic, secret))
	})
}

// A file of keys is read as they are, or refused with an error that does not show it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(some('a').Text() + "\n# a comment\n" + some('b').Text()))
	f.Add([]byte("AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := Parse(data)
		if err != nil {
			require.Empty(t, keys)
			return
		}
		require.NotEmpty(t, keys)
		for _, k := range keys {
			again, err := parseKey(k.Text())
			require.NoError(t, err)
			require.Equal(t, k, again)
		}
	})
}
