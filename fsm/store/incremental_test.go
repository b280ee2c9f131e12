package store

import (
	"bytes"
	"crypto/rand"
	"io"
	random "math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// backupOf returns the archive of a store, incremental if base is of it.
func backupOf(t *testing.T, d *Dir, db *Store, base *Base) (data []byte, incremental bool) {
	t.Helper()
	require.NoError(t, db.Flush())
	path := d.CheckpointPath()
	require.NoError(t, db.Checkpoint(path))
	id, err := d.StoreID(d.Live(), rand.Text())
	require.NoError(t, err)
	a, incremental, err := OpenBackup(d.options.FS, path, testHeader, id, base)
	require.NoError(t, err)
	data, err = io.ReadAll(a)
	require.NoError(t, err)
	require.EqualValues(t, a.Size, len(data))
	require.NoError(t, a.Close())
	return data, incremental
}

func baseOf(t *testing.T, archive []byte) *Base {
	t.Helper()
	b, err := ReadBase(bytes.NewReader(archive))
	require.NoError(t, err)
	return b
}

func compose(t *testing.T, top, base []byte) []byte {
	t.Helper()
	c, err := Compose(bytes.NewReader(top), bytes.NewReader(base))
	require.NoError(t, err)
	whole, err := io.ReadAll(c)
	require.NoError(t, err)
	require.EqualValues(t, c.Size, len(whole))
	return whole
}

// fillStore writes some tables, whose keys do not overlap: then no compaction replaces them.
func fillStore(t *testing.T, db *Store, seed uint64, tables int) {
	rng := random.New(random.NewPCG(seed, 1))
	for table := range tables {
		for key := range 20 {
			value := make([]byte, 2000)
			for i := range value {
				value[i] = byte(rng.Uint32())
			}
			require.NoError(t, db.Set([]byte{byte(seed), byte(table), byte(key)}, value, pebble.NoSync))
		}
		require.NoError(t, db.Flush())
	}
}

func contentOf(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	d, err := OpenDir("other", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	r, err := receive(t, d, archive)
	require.NoError(t, err)
	require.NoError(t, r.Finish())
	got := map[string]string{}
	require.NoError(t, r.Inspect(func(db *pebble.DB) error {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		for it.First(); it.Valid(); it.Next() {
			got[string(it.Key())] = string(it.Value())
		}
		return it.Close()
	}))
	names, err := d.options.FS.List(r.Path())
	require.NoError(t, err)
	for _, n := range names {
		require.False(t, isStoreMark(n), "the mark is no file of a store")
	}
	return got
}

// A chain of incremental archives makes the archive that a whole one at its end would be.
func TestAChainOfArchivesIsTheWholeStore(t *testing.T) {
	d, db := openLive(t, Options{FS: vfs.NewMem()})
	fillStore(t, db, 1, 3)
	whole, incremental := backupOf(t, d, db, nil)
	require.False(t, incremental)
	last := whole
	for step := range uint64(4) {
		fillStore(t, db, step+2, 1)
		if step == 2 { // its tables are others then
			require.NoError(t, db.Compact(t.Context(), []byte{0}, []byte{0xff}, false))
		}
		top, incremental := backupOf(t, d, db, baseOf(t, last))
		require.True(t, incremental)
		if step == 0 {
			require.Less(t, len(top), len(whole)*2/3, "it has one table of four")
		}
		full, _ := backupOf(t, d, db, nil)
		whole, last = compose(t, top, whole), top
		require.Equal(t, contentOf(t, full), contentOf(t, whole))
	}
	require.NoError(t, db.Close())
}

func TestABaseOfAnotherStoreIsNoBase(t *testing.T) {
	d, db := openLive(t, Options{FS: vfs.NewMem()})
	fillStore(t, db, 1, 2)
	first, _ := backupOf(t, d, db, nil)
	base := baseOf(t, first)
	second, _ := backupOf(t, d, db, base)
	require.Equal(t, base.Store, baseOf(t, second).Store, "the id lasts")
	base.Store = "another"
	_, incremental := backupOf(t, d, db, base)
	require.False(t, incremental)
	_, err := ReadBase(bytes.NewReader(archiveOf(t)))
	require.ErrorContains(t, err, "does not name its store")
	other, err := d.StoreID("gen-000002", rand.Text())
	require.NoError(t, err)
	require.NotEqual(t, baseOf(t, second).Store, other, "a generation is another store")
	require.NoError(t, db.Close())
}

func TestAWrongOrDamagedBaseIsFound(t *testing.T) {
	d, db := openLive(t, Options{FS: vfs.NewMem()})
	fillStore(t, db, 1, 2)
	whole, _ := backupOf(t, d, db, nil)
	fillStore(t, db, 2, 1)
	top, _ := backupOf(t, d, db, baseOf(t, whole))
	require.NoError(t, db.Close())
	fails := func(top, base []byte, says string) {
		t.Helper()
		c, err := Compose(bytes.NewReader(top), bytes.NewReader(base))
		if err == nil {
			_, err = io.ReadAll(c)
		}
		require.ErrorContains(t, err, says)
	}
	fails(whole, whole, "is whole")
	fails(top, top, "needs its own base first")
	fails(top, whole[:500], "")
	fails(top[:len(top)-20], whole, "")
	fails(append(bytes.Clone(top), 0), whole, "goes on after its end")
	fails(top, archiveOf(t), "does not have the file")
	changed := bytes.Clone(whole)
	x, err := readIndex(bytes.NewReader(whole))
	require.NoError(t, err)
	end := len(x.appendHead(nil))
	for _, f := range x.files {
		if end += int(f.size) + archiveSumLen; neverChanges(f.name) {
			break
		}
	}
	changed[end-archiveSumLen-10] ^= 1 // within the end of the first table
	fails(top, changed, "is not the one that the backup left out")

	r, err := receive(t, d, top)
	require.ErrorContains(t, err, "it needs its base")
	require.NoError(t, r.Abort())
}
