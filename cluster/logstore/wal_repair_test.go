package logstore

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

const smallSegment = 8 << 10

// openSmall opens stores whose segments are small.
func openSmall(t *testing.T, dir string) *Stores {
	t.Helper()
	d, err := openDisk(dir, RaftWAL)
	require.NoError(t, err)
	s, err := Open(dir, Options{Disk: d, SegmentBytes: smallSegment, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	require.NoError(t, err)
	return s
}

// sealTail seals the last segment on disk as an append or a truncation does, without
// recording it in the list, and returns the log's last index.
func sealTail(t *testing.T, dir string, seal func(types.SegmentWriter, uint64)) {
	t.Helper()
	walDir := filepath.Join(dir, logDir)
	list, err := segmentList{record{vfs.Default, walDir, listFile}}.Load("")
	require.NoError(t, err)
	w, err := segment.NewFiler(walDir, walfs.New()).RecoverTail(list.Segments[len(list.Segments)-1])
	require.NoError(t, err)
	seal(w, w.LastIndex()+1)
	sealed, _, err := w.Sealed()
	require.NoError(t, err)
	require.True(t, sealed)
	require.NoError(t, w.Close())
}

// encoded returns an entry as raft-wal stores it.
func encoded(t *testing.T, index uint64, size int) types.LogEntry {
	var buf writer
	require.NoError(t, new(wal.BinaryCodec).Encode(&raft.Log{Index: index, Term: 3, Data: make([]byte, size)}, &buf))
	return types.LogEntry{Index: index, Data: buf}
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// raft-wal v0.4.2 opens such a log and then refuses every append.
func TestLogIsWritableAfterACrashBetweenSealAndList(t *testing.T) {
	forced := func(w types.SegmentWriter, _ uint64) {
		_, err := w.ForceSeal()
		require.NoError(t, err)
	}
	filled := func(w types.SegmentWriter, next uint64) {
		require.NoError(t, w.Append([]types.LogEntry{encoded(t, next, smallSegment)}))
	}
	for name, tt := range map[string]struct {
		truncate uint64 // entries dropped at the log's start before
		seal     func(types.SegmentWriter, uint64)
		last     uint64 // of the log after
	}{
		"by a truncation": {0, forced, 20},
		"by an append":    {0, filled, 21},
		"by an append, after its start truncated": {15, filled, 21},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openSmall(t, dir)
			require.NoError(t, s.Log.StoreLogs(entries(1, 20, 100)))
			if tt.truncate > 0 {
				require.NoError(t, s.Log.DeleteRange(1, tt.truncate))
			}
			require.NoError(t, s.Close())
			sealTail(t, dir, tt.seal)

			s = openSmall(t, dir)
			first, err := s.Log.FirstIndex()
			require.NoError(t, err)
			require.Equal(t, tt.truncate+1, first)
			last, err := s.Log.LastIndex()
			require.NoError(t, err)
			require.Equal(t, tt.last, last)
			next := entries(last+1, last+300, 100) // over several segments
			for _, e := range next {
				require.NoError(t, s.Log.StoreLog(e))
			}
			require.NoError(t, s.Close())

			s = openSmall(t, dir)
			defer func() { require.NoError(t, s.Close()) }()
			for i := first; i <= last+300; i++ {
				var e raft.Log
				require.NoError(t, s.Log.GetLog(i, &e), "entry %d", i)
				require.Equal(t, i, e.Index)
				require.EqualValues(t, 3, e.Term)
			}
		})
	}
}
