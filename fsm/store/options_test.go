package store

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestTablesEndAtBoundaries(t *testing.T) {
	o := Options{FS: vfs.NewMem(), Boundaries: [][]byte{[]byte("c"), []byte("e")}, OnFatal: func(err error) { t.Error(err) }}
	require.NoError(t, o.FS.MkdirAll(testDir, 0o750))
	db, err := open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	bounds := func() (found []string) {
		levels, err := db.SSTables()
		require.NoError(t, err)
		for _, tables := range levels {
			for _, table := range tables {
				found = append(found, fmt.Sprintf("%s-%s", table.Smallest.UserKey, table.Largest.UserKey))
			}
		}
		return found
	}
	set := func(keys ...string) {
		for _, k := range keys {
			require.NoError(t, db.Set([]byte(k), []byte("value"), pebble.NoSync))
		}
		require.NoError(t, db.Flush())
	}
	set("a", "b", "c", "d", "d2", "e", "f")
	require.ElementsMatch(t, []string{"a-b", "c-d2", "e-f"}, bounds(), "after a flush")
	set("a1", "c1", "e1", "g")
	require.NoError(t, db.Compact(t.Context(), []byte("a"), []byte("z"), false))
	require.ElementsMatch(t, []string{"a-b", "c-d2", "e-g"}, bounds(), "after a compaction")
}
