package gossipkeys

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// some returns keys that are the same in each run.
func some(revision uint64, names string) (k Keys) {
	k.Revision = revision
	for _, c := range names {
		k.List = append(k.List, Key([]byte(strings.Repeat(string(c), KeyBytes))))
	}
	return k
}

func TestWhatParses(t *testing.T) {
	a, b := some(0, "a").List[0].Secret(), some(0, "b").List[0].Secret()
	for name, c := range map[string]struct {
		text string
		want Keys
		err  string
	}{
		"one key":             {a, some(0, "a"), ""},
		"the first encrypts":  {b + "\n" + a + "\n", some(0, "ba"), ""},
		"comments and spaces": {"# mine\r\n\n  " + a + " \r\n#" + b + "\n", some(0, "a"), ""},
		"a revision":          {"# revision 7\n" + a + "\n", some(7, "a"), ""},
		"a term":              {"# revision 7\n# term 3\n" + a + "\n", Keys{Revision: 7, Term: 3, List: some(0, "a").List}, ""},
		"not a term":          {"# term -1\n" + a, Keys{}, "line 1: the term must be a whole number"},
		"no key":              {"# revision 7\n", Keys{}, "there are 0 keys"},
		"nine keys":           {string(some(0, "abcdefghi").format()), Keys{}, "there are 9 keys; it takes 1 to 8"},
		"a key twice":         {a + "\n" + a, Keys{}, "is there twice"},
		"no base64":           {a + "\nhunter2!", Keys{}, "line 2: it is not base64"},
		"a short key":         {"aGVsbG8=", Keys{}, "line 1: the key has 5 bytes; it takes 32"},
		"not a revision":      {"# revision x\n" + a, Keys{}, "line 1: the revision must be a whole number"},
		"a long file":         {strings.Repeat("#", maxFile+1), Keys{}, "more than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(c.text))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			again, err := Parse(got.format())
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(some(0, "a").format()))
	f.Add([]byte("# revision 18446744073709551615\n" + some(0, "b").List[0].Secret()))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			return
		}
		require.NoError(t, k.Check())
		again, err := Parse(k.format())
		require.NoError(t, err)
		require.Equal(t, k, again)
	})
}

func TestNoFormatRevealsAKey(t *testing.T) {
	k := some(1, "s")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k.List[0], "keys", k)
	encoded, err := json.Marshal(k)
	require.NoError(t, err)
	for _, text := range []string{
		log.String(), string(encoded), fmt.Sprint(k), fmt.Sprintf("%+v %#v %s %x %d %q", k, k.List[0], k.List[0], k.List[0], k.List[0], k.List[0]),
	} {
		require.Contains(t, text, k.List[0].Fingerprint())
		for _, secret := range []string{k.List[0].Secret(), "ssss", "7373", "115 115"} {
			require.NotContains(t, text, secret)
		}
	}
	require.NotEqual(t, New(), New())
}

func write(t *testing.T, k Keys) (path string) {
	path = filepath.Join(t.TempDir(), "gossip.keys")
	require.NoError(t, Create(path, k))
	return path
}

func TestAFileThatOthersCanReadIsRefused(t *testing.T) {
	path := write(t, some(0, "a"))
	require.ErrorIs(t, Create(path, some(0, "b")), fs.ErrExist)
	for mode, want := range map[fs.FileMode]string{0o600: "", 0o440: "", 0o604: "mode 0604", 0o644: "chmod 600", 0o620: "mode 0620"} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := Read(path)
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	_, err := Read(filepath.Dir(path))
	require.ErrorContains(t, err, "is no file")
	_, err = Read(path + ".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestARingIsReplacedInItsFileAndInUse(t *testing.T) {
	path := write(t, some(0, "a"))
	require.NoError(t, os.Chmod(path, 0o400))
	r, err := Open(path)
	require.NoError(t, err)
	for _, next := range []Keys{some(1, "ab"), some(2, "ba"), some(3, "b"), some(9, "bcde"), some(10, "ec"), some(12, "fgc")} {
		require.NoError(t, r.Adopt(next))
		require.NoError(t, r.Adopt(next), "the same again")
		require.Equal(t, next, r.Keys())
		require.Equal(t, secrets(next.List), r.Memberlist().GetKeys())
		inFile, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, next, inFile)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o400), info.Mode().Perm())
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, names, 1, "no temporary file stays")

	for _, next := range []Keys{some(0, "a"), some(11, "fgc")} {
		require.ErrorIs(t, r.Adopt(next), ErrNotNewer)
	}
	require.ErrorContains(t, r.Adopt(some(13, "")), "there are 0 keys")
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.ErrorContains(t, r.Adopt(some(13, "a")), "--gossip-keys-file")
	require.Equal(t, some(12, "fgc"), r.Keys(), "what is not in the file is not used")
}

// All nodes must choose the same ring of two, whichever each of them has.
func TestWhichRingIsNewer(t *testing.T) {
	of := func(term uint64, k Keys) Keys { k.Term = term; return k }
	for name, c := range map[string]struct {
		winner, loser Keys
	}{
		"the revision":            {of(1, some(5, "a")), of(9, some(4, "b"))},
		"the term of a revision":  {of(3, some(5, "ab")), of(2, some(5, "ac"))},
		"any list of the same":    {of(2, some(5, "ac")), of(2, some(5, "ab"))},
		"more keys":               {of(2, some(5, "abc")), of(2, some(5, "ab"))},
		"a revision without term": {some(1, "a"), some(0, "b")},
	} {
		t.Run(name, func(t *testing.T) {
			if c.winner.Term == c.loser.Term && c.winner.Revision == c.loser.Revision && Newer(c.loser.Version(), c.winner.Version()) {
				c.winner, c.loser = c.loser, c.winner // which one is by its digests
			}
			require.True(t, Newer(c.winner.Version(), c.loser.Version()))
			require.False(t, Newer(c.loser.Version(), c.winner.Version()))
			for _, first := range []Keys{c.winner, c.loser} {
				r, err := Open(write(t, first))
				require.NoError(t, err)
				for _, next := range []Keys{c.loser, c.winner, c.loser} {
					if err := r.Adopt(next); err != nil {
						require.ErrorIs(t, err, ErrNotNewer)
					}
				}
				require.Equal(t, c.winner, r.Keys())
			}
		})
	}
	require.False(t, Newer(some(0, "a").Version(), some(0, "b").Version()), "operators write these node by node")
	require.False(t, Newer(some(0, "b").Version(), some(0, "a").Version()))
	require.False(t, Newer(some(4, "a").Version(), some(4, "a").Version()))
}

func TestAReplacedFileKeepsItsLinkAndMode(t *testing.T) {
	path := write(t, some(0, "a"))
	require.NoError(t, os.Chmod(path, 0o440))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	left := temporary(path)
	require.NoError(t, os.WriteFile(left, []byte("of a crash"), 0o600))

	r, err := Open(link)
	require.NoError(t, err)
	require.NoFileExists(t, left)
	require.NoError(t, os.WriteFile(left, []byte("of a crash"), 0o600))
	require.NoError(t, r.Adopt(some(1, "ab")))
	require.NoFileExists(t, left)

	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
	inFile, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, some(1, "ab"), inFile)
	info, err = os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o440), info.Mode())
}
