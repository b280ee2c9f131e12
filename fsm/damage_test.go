package fsm

import (
	"io"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// flipInTables damages a block of every table below dir.
func flipInTables(t *testing.T, fsys vfs.FS, dir string) {
	names, err := fsys.List(dir)
	require.NoError(t, err)
	tables := 0
	for _, n := range names {
		if !strings.HasSuffix(n, ".sst") {
			continue
		}
		f, err := fsys.OpenReadWrite(path.Join(dir, n), vfsCategory)
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		data[10] ^= 1
		_, err = f.WriteAt(data[10:11], 10)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		tables++
	}
	require.Positive(t, tables)
}

// What a compaction finds in the background must be known as damage, so that the
// node can say what to do about it.
func TestATableFoundDamagedEndsTheMachineAsDamage(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll(rigDir, 0o750))
	var mu sync.Mutex
	var fatal []error
	o := Options{FS: fsys, OnFatal: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		fatal = append(fatal, err)
	}}.withDefaults()
	s, err := openStore(rigDir, o)
	require.NoError(t, err)
	require.NoError(t, s.db.Set([]byte("a"), []byte(strings.Repeat("x", 1000)), pebble.NoSync))
	require.NoError(t, s.db.Flush())
	require.NoError(t, s.close())

	flipInTables(t, fsys, rigDir)
	s, err = openStore(rigDir, o)
	require.NoError(t, err)
	_, _, err = s.db.Get([]byte("a"))
	require.Error(t, err)
	require.NoError(t, s.close())
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, fatal)
	require.True(t, Damaged(fatal[0]), "%v", fatal[0])
	require.Contains(t, fatal[0].Error(), ".sst")
}
