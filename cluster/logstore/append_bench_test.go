package logstore

import (
	"fmt"
	"testing"

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
