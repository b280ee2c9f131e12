package logstore

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tarry/internal/smalldisk"
)

// A full disk stops the log with the system's error, whichever write fails. Once there is
// a little space the log opens again with all acknowledged entries.
func TestAFullDiskStopsTheLog(t *testing.T) {
	for _, kind := range kinds {
		for _, size := range []int{100, 70_000} { // of an entry
			t.Run(string(kind), func(t *testing.T) {
				const ballast = 1 << 20
				disk := smalldisk.New(t, 96)
				var reported []error
				o := Options{Kind: kind, SegmentBytes: 1 << 20, Fatal: func(err error) { reported = append(reported, err) }}
				s, err := Open(disk.Dir+"/raft", o)
				require.NoError(t, err)
				t.Cleanup(func() { s.Close() }) // before the disk goes
				require.NoError(t, s.Log.StoreLogs(entries(1, 10, size)))
				disk.Fill(2 << 20)
				last := uint64(10)
				for err == nil {
					if err = s.Log.StoreLogs(entries(last+1, last+10, size)); err == nil {
						last += 10
					}
				}
				require.ErrorContains(t, err, unix.ENOSPC.Error())
				require.Equal(t, []error{err}, reported)
				require.Equal(t, err, s.Log.StoreLogs(entries(last+1, last+1, size)), "nothing is written after it")
				_ = s.Close()

				disk.Fill(ballast)
				s, err = Open(disk.Dir+"/raft", o)
				require.NoError(t, err)
				got, err := s.Log.LastIndex()
				require.NoError(t, err)
				require.Contains(t, []uint64{last, last + 10}, got, "the failed append is complete or absent")
				require.NoError(t, s.Log.DeleteRange(1, last-5), "frees space")
			})
		}
	}
}
