package logstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

// failing is a file system whose writes and syncs can be made to fail.
type failing struct {
	types.VFS
	part  int   // of the next write, in percent, that reaches the file; 100: all of it
	write error // of writes
	sync  error // of syncs
}

func (f *failing) Create(dir, name string, size uint64) (types.WritableFile, error) {
	w, err := f.VFS.Create(dir, name, size)
	return failingFile{w, f}, err
}

func (f *failing) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	return failingFile{w, f}, err
}

type failingFile struct {
	types.WritableFile
	f *failing
}

func (w failingFile) WriteAt(p []byte, at int64) (int, error) {
	if w.f.write == nil {
		return w.WritableFile.WriteAt(p, at)
	}
	n, err := w.WritableFile.WriteAt(p[:len(p)*w.f.part/100], at)
	return n, errors.Join(err, w.f.write)
}

func (w failingFile) Sync() error {
	if w.f.sync != nil {
		return w.f.sync
	}
	return w.WritableFile.Sync()
}

// After an append that failed, was torn or was not synced, nothing more is written. After
// a restart the log has all entries that were acknowledged. Entries of the failed append
// are complete or absent.
func TestFailedAppendEndsTheProcessAndLeavesTheLogWhole(t *testing.T) {
	for name, c := range map[string]struct {
		part        int
		write, sync error
	}{
		"nothing written":      {0, errDisk, nil},
		"torn at its start":    {3, errDisk, nil},
		"torn in the middle":   {50, errDisk, nil},
		"torn near its end":    {99, errDisk, nil},
		"written, error after": {100, errDisk, nil},
		"sync failed":          {100, nil, errDisk},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, err := openDisk(dir, RaftWAL)
			require.NoError(t, err)
			f := &failing{VFS: d.Segments, part: c.part}
			d.Segments = f
			var reported []error
			s, err := Open(dir, Options{Disk: d, Fatal: func(err error) { reported = append(reported, err) }})
			require.NoError(t, err)
			body := bytes.Repeat([]byte("body"), 1000)
			append3 := func(first uint64, s *Stores) error {
				var es []*raft.Log
				for i := range uint64(3) {
					es = append(es, &raft.Log{Index: first + i, Term: 1, Data: body})
				}
				return s.Log.StoreLogs(es)
			}
			require.NoError(t, append3(1, s))
			require.NoError(t, append3(4, s))
			f.write, f.sync = c.write, c.sync
			require.ErrorIs(t, append3(7, s), errDisk)
			f.write, f.sync = nil, nil // the disk seems well again
			require.ErrorIs(t, append3(7, s), errDisk)
			require.Len(t, reported, 1)
			require.NoError(t, s.Close())

			s = open(t, dir)
			defer func() { require.NoError(t, s.Close()) }()
			last, err := s.Log.LastIndex()
			require.NoError(t, err)
			require.Contains(t, []uint64{6, 9}, last, "the failed append is complete or absent")
			require.NoError(t, append3(last+1, s))
			for i := uint64(1); i <= last+3; i++ {
				var e raft.Log
				require.NoError(t, s.Log.GetLog(i, &e))
				require.Equal(t, body, e.Data)
			}
		})
	}
}
