package store

import (
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const testDir = "state"

// open opens a store in testDir itself.
func open(o Options) (*Store, error) {
	return (&Dir{path: testDir, options: o.withDefaults()}).Open(testDir)
}

// openLive opens the directory testDir and its live generation.
func openLive(t *testing.T, o Options) (*Dir, *Store) {
	o.OnFatal = func(err error) { t.Error(err) }
	d, err := OpenDir(testDir, o)
	require.NoError(t, err)
	db, err := d.Open(d.Live())
	require.NoError(t, err)
	return d, db
}

func read(t *testing.T, fsys vfs.FS, file string) []byte {
	f, err := fsys.Open(file)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return data
}

func write(t *testing.T, fsys vfs.FS, file string, data []byte) {
	require.NoError(t, fsys.MkdirAll(fsys.PathDir(file), 0o750))
	f, err := fsys.Create(file, vfsCategory)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(data))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}
