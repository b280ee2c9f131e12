package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Names of raft-wal's files below the directory of the stores. They are on disk.
const (
	logDir   = "wal"
	listFile = "segments" // below logDir
)

// walLog is a log in raft-wal. raft-wal creates the next segment concurrently with an
// append. If that fails it only logs why, and the append after it fails with "segment is
// sealed". walLog adds the cause, such as a full disk, to that error.
type walLog struct {
	*wal.WAL
	rotation *rotation
}

// openWAL opens the raft-wal log below dir. used reports whether Raft has run on it: then
// its list of segments must exist.
func openWAL(dir string, disk *Disk, used bool, o Options) (raft.LogStore, func() error, error) {
	walDir := filepath.Join(dir, logDir)
	r := new(rotation)
	list := listOfSegments{segmentList{record{disk.Records, walDir, listFile}}, r}
	size := cmp.Or(o.SegmentBytes, wal.DefaultSegmentSize)
	filer := segment.NewFiler(walDir, newSegments{zeroedSegments{disk.Segments, disk.Records, int64(size)}, r})
	if err := repairTail(list, filer, used); err != nil {
		return nil, nil, fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	log, err := wal.Open(walDir, wal.WithLogger(o.Logger), wal.WithMetaStore(list), wal.WithSegmentFiler(filer), wal.WithSegmentSize(size))
	if err != nil {
		return nil, nil, fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	return walLog{log, r}, log.Close, nil
}

// StoreLog implements raft.LogStore.
func (l walLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l walLog) StoreLogs(entries []*raft.Log) error {
	err := l.WAL.StoreLogs(entries)
	if err == nil {
		return nil
	}
	if cause := l.rotation.failure(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: create the next segment: %w", err, cause)
	}
	return err
}

// rotation keeps the error of the last attempt to create a segment.
type rotation struct {
	mu  sync.Mutex
	err error
}

func (r *rotation) record(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	return err
}

func (r *rotation) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

type newSegments struct {
	types.VFS
	rotation *rotation
}

func (s newSegments) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.VFS.Create(dir, name, size)
	return f, s.rotation.record(err)
}

type listOfSegments struct {
	segmentList
	rotation *rotation
}

func (l listOfSegments) CommitState(s types.PersistentState) error {
	err := l.segmentList.CommitState(s)
	return l.rotation.record(err)
}
