package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"tarry/internal/durable"
)

// Options configures the stores. Fatal is required.
type Options struct {
	// Kind is the kind of the log; empty: DefaultKind. It must be the one with which the
	// log was created.
	Kind Kind
	// HungAfter is how long one write may be in flight; 0: 10 s.
	HungAfter time.Duration
	// Fatal is called once, from any goroutine, when a store has failed or
	// hangs. It must end the process.
	Fatal func(error)
	// Logger receives the log's messages; nil discards them.
	Logger hclog.Logger
	// Wrap, if not nil, wraps the log below the fail-stop. Tests use it for a slow log.
	Wrap func(raft.LogStore) raft.LogStore
	// SegmentBytes is the size of one segment of raft-wal; 0: its default, 64 MiB.
	SegmentBytes int
	// CutDamage opens a raft-wal log whose end is damaged or lost as far as it can be read, and
	// removes what is behind: acknowledged entries may be lost. Only a recovery uses it.
	CutDamage bool
	// Disk replaces the files below the directory; nil: they are on the file system.
	Disk *Disk
}

const defaultHungAfter = 10 * time.Second

// votesFile holds term and vote. Its name is on disk.
const votesFile = "votes"

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

// Open opens the stores below dir, or creates them. It blocks while the log is checked.
// No other process may have them open.
func Open(dir string, o Options) (*Stores, error) {
	if o.Fatal == nil {
		return nil, errors.New("logstore: Options.Fatal is required")
	}
	o.Kind = cmp.Or(o.Kind, DefaultKind)
	o.HungAfter = cmp.Or(o.HungAfter, defaultHungAfter)
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
		if disk, err = openDisk(dir, o.Kind); err != nil {
			return err
		}
	}
	votes, err := openVotes(record{disk.Records, dir, votesFile})
	if err != nil {
		return err
	}
	log, err := s.openLog(dir, disk, votes.held.term > 0, o)
	if err != nil {
		return err
	}
	if o.Disk == nil {
		// The libraries sync their files, but not their names in dir.
		if err := errors.Join(durable.SyncDir(vfs.Default, dir), durable.SyncDir(vfs.Default, filepath.Dir(dir))); err != nil {
			return fmt.Errorf("log directory: %w", err)
		}
	}
	if o.Wrap != nil {
		return s.wrap(o.Wrap(log), votes, o)
	}
	return s.wrap(log, votes, o)
}

// openLog opens the log. used reports whether Raft has run on it.
func (s *Stores) openLog(dir string, disk *Disk, used bool, o Options) (log raft.LogStore, err error) {
	var closes func() error
	switch o.Kind {
	case RaftWAL:
		log, closes, err = openWAL(dir, disk, used, o)
	case RaftBoltDB:
		log, closes, err = openBolt(dir, disk, used)
	default:
		err = fmt.Errorf("%w: the data directory was made with the log store %q, which this release does not have: it has %s and %s. Start the release that made the directory", ErrUnknownKind, o.Kind, RaftWAL, RaftBoltDB)
	}
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, closes)
	return log, nil
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

// Err returns the failure that stopped the stores; nil while they work.
func (s *Stores) Err() error { return s.stop.failure() }

// Close waits for writes under way and closes the files. Raft must have stopped. Later
// calls fail without a call of Fatal.
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
