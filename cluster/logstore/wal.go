package logstore

import (
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

// walLog is a log that raft-wal keeps. raft-wal makes the next segment beside an append
// and logs why it could not; the append after it fails with "segment is sealed". So the
// reason, such as a full disk, is kept here, and is part of that failure.
type walLog struct {
	*wal.WAL
	rotation *rotation
}

// openWAL opens the log that raft-wal keeps below dir. used says that Raft has run on
// it: its list of segments must be there then.
func openWAL(dir string, disk *Disk, used bool, o Options) (raft.LogStore, func() error, error) {
	walDir := filepath.Join(dir, logDir)
	r := new(rotation)
	list := listOfSegments{segmentList{record{disk.Records, walDir, listFile}}, r}
	filer := segment.NewFiler(walDir, newSegments{disk.Segments, r})
	if err := repairTail(list, filer, used); err != nil {
		return nil, nil, fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	log, err := wal.Open(walDir, wal.WithLogger(o.Logger), wal.WithMetaStore(list), wal.WithSegmentFiler(filer), wal.WithSegmentSize(o.SegmentBytes))
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
		return fmt.Errorf("%w: make the next segment: %w", err, cause)
	}
	return err
}

// rotation keeps why the next segment could not be made.
type rotation struct {
	mu  sync.Mutex
	err error
}

func (r *rotation) note(err error) error {
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
	return f, s.rotation.note(err)
}

type listOfSegments struct {
	segmentList
	rotation *rotation
}

func (l listOfSegments) CommitState(s types.PersistentState) error {
	err := l.segmentList.CommitState(s)
	return l.rotation.note(err)
}
