package logstore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// BenchmarkAppend compares the kinds of log, with their syncs on. Jobs are 250 bytes;
// ns/entry is the figure to compare.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range kinds {
		for _, batch := range []uint64{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", kind, batch), func(b *testing.B) {
				s, err := Open(b.TempDir(), Options{Kind: kind, Fatal: func(err error) { b.Error(err) }})
				require.NoError(b, err)
				defer s.Close()
				next := uint64(1)
				for b.Loop() {
					require.NoError(b, s.Log.StoreLogs(entries(next, next+batch-1, 250)))
					next += batch
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(next-1), "ns/entry")
			})
		}
	}
}

// BenchmarkWatermark is what the watermark adds to an append.
func BenchmarkWatermark(b *testing.B) {
	w, err := createWatermark(vfs.Default, b.TempDir(), "watermark", 3)
	require.NoError(b, err)
	for index := uint64(1); b.Loop(); index++ {
		require.NoError(b, w.next(index, 1))
	}
	require.NoError(b, w.close())
}
