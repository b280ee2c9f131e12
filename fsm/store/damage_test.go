package store

import (
	"io"
	"path"
	"slices"
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

// Damage that a compaction finds in the background satisfies Damaged, so that the node can
// log what to do.
func TestATableFoundDamagedIsReportedAsDamage(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll(testDir, 0o750))
	var mu sync.Mutex
	var fatal []error
	o := Options{FS: fsys, OnFatal: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		fatal = append(fatal, err)
	}}
	db, err := open(o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte(strings.Repeat("x", 1000)), pebble.NoSync))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())

	flipInTables(t, fsys, testDir)
	db, err = open(o)
	require.NoError(t, err)
	_, _, err = db.Get([]byte("a"))
	require.Error(t, err)
	require.NoError(t, db.Close())
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, fatal)
	require.True(t, Damaged(fatal[0]), "%v", fatal[0])
	require.Contains(t, fatal[0].Error(), ".sst")
}

// Pebble takes such a store for a new one.
func TestAStoreWithoutItsMarkerIsRefused(t *testing.T) {
	o := Options{FS: vfs.NewMem(), OnFatal: func(err error) { t.Error(err) }}
	db, err := open(o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("x"), pebble.NoSync))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())
	names, err := o.FS.List(testDir)
	require.NoError(t, err)
	var gone []string
	for _, n := range names {
		if strings.HasPrefix(n, "marker.manifest.") {
			gone = append(gone, n)
			require.NoError(t, o.FS.Remove(path.Join(testDir, n)))
		}
	}
	require.NotEmpty(t, gone)
	_, err = open(o)
	require.ErrorIs(t, err, errNoMarker)
	require.True(t, Damaged(err))
	for _, n := range gone {
		write(t, o.FS, path.Join(testDir, n), nil)
	}
	db, err = open(o)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// Pebble crashes when it reads a table by the version of another format.
func TestATableWithADamagedEndIsReportedAsDamage(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll(testDir, 0o750))
	damage := make(chan error, 1) // the first; Pebble also reads in the background
	o := Options{FS: fsys, OnFatal: func(err error) {
		select {
		case damage <- err:
		default:
		}
	}}
	db, err := open(o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("x"), pebble.NoSync))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())
	names, err := fsys.List(testDir)
	require.NoError(t, err)
	at := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".sst") })
	table := path.Join(testDir, names[at])
	whole := read(t, fsys, table)
	require.Equal(t, tableEnd(), string(whole[len(whole)-len(tableEnd()):]))
	d := &Dir{path: testDir, options: o.withDefaults()}
	for i := range 8 * len(tableEnd()) {
		bad := slices.Clone(whole)
		bad[len(bad)-1-i/8] ^= 1 << (i % 8)
		write(t, fsys, table, bad)
		db, err := open(o)
		require.NoError(t, err)
		_, _, err = db.Get([]byte("a"))
		require.True(t, Damaged(err), "%v", err)
		require.NoError(t, db.Close())
		require.Len(t, damage, 1)
		reported := <-damage
		require.True(t, Damaged(reported), "%v", reported)
		require.Contains(t, reported.Error(), names[at])
		err = d.Inspect(testDir, func(db *pebble.DB) error {
			_, _, err := db.Get([]byte("a"))
			return err
		})
		require.True(t, Damaged(err), "%v", err)
	}
}
