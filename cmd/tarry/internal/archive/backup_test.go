package archive

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func writing(text string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	}
}

// holds checks that a directory has this one file with this text.
func holds(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "%v", entries)
}

func TestAWholeFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, CreateWhole(path, writing("new")))
	holds(t, path, "new")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.ErrorContains(t, CreateWhole(path, writing("again")), "exists")
	holds(t, path, "new")
}

func TestAnInterruptedFileIsGone(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	require.ErrorIs(t, CreateWhole(filepath.Join(dir, "a"), func(to io.Writer) error {
		return errors.Join(writing("half")(to), broken)
	}), broken)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Somebody who may write to the directory must not get the bodies.
func TestAFileThatWaitsForTheBackupIsNotUsed(t *testing.T) {
	trap := filepath.Join(t.TempDir(), "trap")
	require.NoError(t, os.WriteFile(trap, []byte("theirs"), 0o666))
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.Symlink(trap, path+".partial"))
	require.NoError(t, CreateWhole(path, writing("secret")))
	holds(t, trap, "theirs")
	require.FileExists(t, path)
}

func TestAFileThatAppearsMeanwhileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	err := CreateWhole(path, func(to io.Writer) error {
		require.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
		return writing("late")(to)
	})
	require.ErrorIs(t, err, fs.ErrExist)
	holds(t, path, "other")
}

func TestOfTwoRunsWithOneNameTheFirstIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	err := CreateWhole(path, func(to io.Writer) error {
		require.NoError(t, writing("ou")(to))
		require.NoError(t, CreateWhole(path, writing("inner")))
		return writing("ter")(to)
	})
	require.ErrorIs(t, err, fs.ErrExist)
	holds(t, path, "inner")
}

func TestAFileSystemWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	partial, path := filepath.Join(dir, "partial"), filepath.Join(dir, "a")
	none := func(string, string) error { return errors.ErrUnsupported }
	require.NoError(t, os.WriteFile(partial, []byte("new"), 0o600))
	require.NoError(t, giveName(partial, path, none))
	holds(t, path, "new")
	require.NoError(t, os.WriteFile(partial, []byte("newer"), 0o600))
	require.ErrorIs(t, giveName(partial, path, none), fs.ErrExist)
	require.NoError(t, os.Remove(partial))
	holds(t, path, "new")
}
