package logstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
)

// Options says how the stores behave. Fatal is required.
type Options struct {
	// HungAfter is how long one write may be in flight; 0: 10 s.
	HungAfter time.Duration
	// Fatal is called once, from any goroutine, when a store has failed or
	// hangs. It must end the process.
	Fatal func(error)
	// Logger hears what the log has to say of itself; nil: nobody does.
	Logger hclog.Logger
	// Wrap, when not nil, is put around the log below the fail-stop: tests make
	// a slow one of it.
	Wrap func(raft.LogStore) raft.LogStore
	// SegmentBytes is the size of one segment of the log; 0: its default, 64 MiB.
	SegmentBytes int
	// Disk replaces the files below the directory; nil: none does.
	Disk *Disk
}

const defaultHungAfter = 10 * time.Second

// Names below the directory. They are on disk.
const (
	logDir    = "wal"
	listFile  = "segments" // below logDir
	votesFile = "votes"
)

// Stores are a shard's log and stable store. All methods may be called from any
// goroutine.
type Stores struct {
	Log    raft.LogStore
	Stable raft.StableStore

	stop    *failStop
	sizes   *sizes
	latency latency
	closers []func() error
}

// Open opens the stores below dir, or makes fresh ones. It blocks while the tail
// of the log is checked. No other process may have them open.
func Open(dir string, o Options) (*Stores, error) {
	if o.Fatal == nil {
		return nil, errors.New("logstore: Options.Fatal is required")
	}
	if o.HungAfter == 0 {
		o.HungAfter = defaultHungAfter
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	s := new(Stores)
	if err := s.open(dir, o); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

func (s *Stores) open(dir string, o Options) error {
	disk := o.Disk
	if disk == nil {
		var err error
		if disk, err = openDisk(dir); err != nil {
			return err
		}
	}
	votes, err := openVotes(record{disk.Records, dir, votesFile})
	if err != nil {
		return err
	}
	walDir := filepath.Join(dir, logDir)
	list, filer := segmentList{record{disk.Records, walDir, listFile}}, segment.NewFiler(walDir, disk.Segments)
	if err := mendTail(list, filer); err != nil {
		return fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	log, err := wal.Open(walDir, wal.WithLogger(o.Logger), wal.WithMetaStore(list), wal.WithSegmentFiler(filer), wal.WithSegmentSize(o.SegmentBytes))
	if err != nil {
		return fmt.Errorf("open the log in %s: %w", walDir, err)
	}
	s.closers = append(s.closers, log.Close)
	if o.Disk == nil {
		// The libraries sync their files, not the names of these in dir.
		if err := errors.Join(syncDir(vfs.Default, dir), syncDir(vfs.Default, filepath.Dir(dir))); err != nil {
			return fmt.Errorf("log directory: %w", err)
		}
	}
	if o.Wrap != nil {
		return s.wrap(o.Wrap(log), votes, o)
	}
	return s.wrap(log, votes, o)
}

// wrap puts the stores behind the fail-stop.
func (s *Stores) wrap(log raft.LogStore, stable raft.StableStore, o Options) error {
	var err error
	if s.sizes, err = measure(log); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	s.stop = &failStop{hungAfter: o.HungAfter, fatal: o.Fatal}
	s.Log = &logStore{store: log, stop: s.stop, sizes: s.sizes, latency: &s.latency}
	s.Stable = &stableStore{store: stable, stop: s.stop}
	return nil
}

// EntriesFor estimates how many of the newest entries hold the given number of
// bytes; it is at least 1. It is cheap.
func (s *Stores) EntriesFor(bytes int64) uint64 { return s.sizes.entriesFor(bytes) }

// Err is the failure that stopped the stores, nil while they work.
func (s *Stores) Err() error { return s.stop.failure() }

// Close waits for writes under way and closes the files. Raft must have stopped:
// what it still calls fails, without a call of Fatal.
func (s *Stores) Close() error {
	s.stop.close()
	return s.closeFiles()
}

func (s *Stores) closeFiles() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	s.closers = nil
	return err
}
