package logstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// BenchmarkAppend compares the two libraries as a log, each with its syncs on:
// what Open uses, and raft-boltdb in its place. Jobs are 250 bytes; ns/entry is
// the figure to compare.
func BenchmarkAppend(b *testing.B) {
	logs := map[string]func(b *testing.B) raft.LogStore{
		"raft-wal": func(b *testing.B) raft.LogStore {
			s, err := Open(b.TempDir(), Options{Fatal: func(err error) { b.Error(err) }})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			return s.Log
		},
		"raft-boltdb": func(b *testing.B) raft.LogStore {
			s, err := raftboltdb.New(raftboltdb.Options{
				Path:        filepath.Join(b.TempDir(), "log.db"),
				BoltOptions: &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
			})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			return s
		},
	}
	for _, library := range []string{"raft-wal", "raft-boltdb"} {
		for _, batch := range []uint64{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", library, batch), func(b *testing.B) {
				log := logs[library](b)
				next := uint64(1)
				for b.Loop() {
					require.NoError(b, log.StoreLogs(entries(next, next+batch-1, 250)))
					next += batch
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(next-1), "ns/entry")
			})
		}
	}
}
