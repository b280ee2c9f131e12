package logstore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft-wal/types"

	"tarry/internal/durable"
)

// zeroedSegments writes zeros into a segment before raft-wal appends to it, so that the
// sync of an append is cheap.
//
// raft-wal allocates a segment's blocks when it creates it, but the file system marks them
// as unwritten. The first write to such a block changes that mark, which makes each sync
// commit the file system's journal too. Over blocks that already hold zeros a sync writes
// only the data, if it may leave out the file's times (fdatasync). On ext4 that halves it
// (docs/benchmarks-choices.md).
//
// What a power loss can leave does not change: an unwritten block reads as zeros, and
// raft-wal takes zeros for the end of the log in either case. Zeros are only written
// behind the end of an append, where raft-wal has no entries.
type zeroedSegments struct {
	types.VFS
	names vfs.FS // of the same directory; it can sync the names in it
	size  int64  // of a segment that was created before
	end   logEnd
}

func (s zeroedSegments) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.VFS.Create(dir, name, size)
	if err != nil {
		return nil, err
	}
	return &zeroedSegment{WritableFile: f, size: int64(size)}, nil
}

// OpenWriter makes what is in the segment, and its name, durable, because from then on it counts
// as held by this node. The process that created it may have ended before its first sync, or
// because of a failed one, and raft-wal syncs the name in that process only.
//
// What a torn write has left is replaced by zeros, so that it is never taken for a later append.
func (s zeroedSegments) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := s.VFS.OpenWriter(dir, name)
	if err != nil {
		return nil, err
	}
	if end := s.end; end.scan != nil && end.name == name {
		if err = rewriteLastAppends(f, end.scan); err == nil {
			err = writeZeros(f, end.scan.to, end.scan.used)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = durable.SyncDir(s.names, dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the segment %s durable: %w", name, err), f.Close())
	}
	return &zeroedSegment{WritableFile: f, size: s.size, named: true}, nil
}

// rewriteLastAppends writes the last two appends of a segment again, as they are, so that the
// next sync makes them durable. The process that made the last one may have ended because its
// sync failed. Linux then drops the data: the next process still reads it from memory, but no
// later sync writes it, and a power loss takes it away, with all that was appended behind it.
// Every append before the last one was synced, or that process would have ended there. The one
// before it is written again because earlier releases left the rests of torn appends in the file,
// and what looks like the last one may be such a rest.
func rewriteLastAppends(f types.WritableFile, s *segmentScan) error {
	buf := make([]byte, min(s.to-s.from, 1<<20))
	for at := s.from; at < s.to; at += int64(len(buf)) {
		buf = buf[:min(s.to-at, int64(len(buf)))]
		if _, err := f.ReadAt(buf, at); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf, at); err != nil {
			return err
		}
	}
	return nil
}

func writeZeros(f types.WritableFile, from, to int64) error {
	for at := from; at < to; at += zeroStep {
		if _, err := f.WriteAt(zeros[:min(to-at, zeroStep)], at); err != nil {
			return fmt.Errorf("write zeros: %w", err)
		}
	}
	return nil
}

// zeroedSegment is a segment that one goroutine at a time writes and syncs.
type zeroedSegment struct {
	types.WritableFile
	size   int64 // nothing is zeroed beyond it
	zeroed int64 // all before it was written since the file was opened
	named  bool  // the file's name is on disk
}

const (
	// zeroStep is how much is zeroed at once. The append that causes it syncs it too,
	// which takes a few milliseconds.
	zeroStep = 1 << 20
	// largeAppend is the size of an append for which nothing is zeroed. Its sync takes
	// long in any case, and to write so much twice costs more than the journal.
	largeAppend = 64 << 10
)

var zeros [zeroStep]byte

// WriteAt writes p. raft-wal calls it at the end of the log only.
func (s *zeroedSegment) WriteAt(p []byte, at int64) (int, error) {
	end := at + int64(len(p))
	if to := min(end+zeroStep, s.size); end > s.zeroed && end < to && len(p) < largeAppend {
		if _, err := s.WritableFile.WriteAt(zeros[:to-end], end); err != nil {
			return 0, fmt.Errorf("write zeros: %w", err)
		}
		s.zeroed = to
	}
	return s.WritableFile.WriteAt(p, at)
}

// Sync makes all that was written durable, and the file's size. The first Sync of a new file
// makes its name durable too.
func (s *zeroedSegment) Sync() error {
	if s.named {
		return syncData(s.WritableFile)
	}
	err := s.WritableFile.Sync()
	s.named = err == nil
	return err
}

// dataSyncer is a file that can make its data and size durable without its times and name.
// The simulation of power losses has such files.
type dataSyncer interface{ SyncData() error }
