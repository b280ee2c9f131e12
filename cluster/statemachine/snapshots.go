package statemachine

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"tarry/fsm"
	"tarry/job"
)

// stateID names the one snapshot that always exists: the machine.
const stateID = "state"

// snapshots is the raft.SnapshotStore over a machine.
type snapshots struct {
	machine *fsm.Machine
	fatal   func(error)
	// installing is set while a leader's state is received and installed. Raft's main loop
	// does nothing else meanwhile.
	installing atomic.Bool

	mu       sync.Mutex
	count    uint64
	received *received // whole, and waiting for its Open
	sent     []*sent   // transfers of this state, under way or recent
}

// List returns the machine as the only snapshot; none if it is empty. Its size is known once
// it is opened.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	a := s.machine.Applied()
	if a.Index == 0 {
		return nil, nil
	}
	meta, err := metaOf(a)
	if err != nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{meta}, nil
}

func metaOf(a fsm.Applied) (*raft.SnapshotMeta, error) {
	if len(a.Configuration) == 0 {
		return nil, fmt.Errorf("the state at entry %d has no Raft configuration: it does not come from a Raft log", a.Index)
	}
	c, err := decodeConfiguration(a.Configuration)
	if err != nil {
		return nil, fmt.Errorf("the state at entry %d: %w", a.Index, err)
	}
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: stateID, Index: a.Index, Term: a.Term,
		Configuration: c, ConfigurationIndex: a.ConfigurationIndex,
	}, nil
}

// decodeConfiguration turns Raft's panic over one that is damaged into an error.
func decodeConfiguration(b []byte) (c raft.Configuration, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = raft.Configuration{}, fmt.Errorf("the Raft configuration is damaged: %v", p)
		}
	}()
	return raft.DecodeConfiguration(b), nil
}

// Open returns a stream of the present state, or a received snapshot, once. The
// former blocks for taking a checkpoint.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if id != stateID {
		r := s.take(id)
		if r == nil {
			s.installing.Store(false)
			return nil, nil, fmt.Errorf("there is no received snapshot %q", id)
		}
		return r.meta, r, nil
	}
	stream, err := s.machine.OpenStream()
	if err != nil {
		// Raft retries indefinitely. That helps if the disk is full, but not if the state is
		// damaged: then another leader must send the snapshot.
		if fsm.Damaged(err) {
			s.fatal(err)
		}
		return nil, nil, err
	}
	meta, err := metaOf(stream.Applied)
	if err != nil {
		return nil, nil, errors.Join(err, stream.Close())
	}
	meta.Size = stream.Size
	return meta, s.send(stream, meta.Index), nil
}

// Create begins a snapshot: one of the machine if it goes through Persist, one
// from a leader if it is written to.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &sink{store: s, meta: raft.SnapshotMeta{
		Version: version, ID: stateID, Index: index, Term: term, Configuration: c, ConfigurationIndex: configurationIndex,
	}}, nil
}

// keep holds a received snapshot until its Open. The next one replaces a snapshot that
// was never opened.
func (s *snapshots) keep(r *received) error {
	s.mu.Lock()
	old := s.received
	s.received = r
	s.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

func (s *snapshots) take(id string) *received {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.received
	if r == nil || r.meta.ID != id {
		return nil
	}
	s.received = nil
	return r
}

// nextID names a snapshot that is being received.
func (s *snapshots) nextID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return fmt.Sprintf("received-%d", s.count)
}

// sink takes one snapshot. It belongs to one goroutine.
type sink struct {
	store     *snapshots
	meta      raft.SnapshotMeta
	persisted bool          // the machine's own: nothing is written
	receiver  *fsm.Receiver // from the first Write on
	closed    bool
}

func (s *sink) ID() string { return s.meta.ID }

func (s *sink) Write(p []byte) (int, error) {
	if s.closed {
		return 0, errors.New("the snapshot is closed")
	}
	if s.receiver == nil {
		r, err := s.store.machine.Receive()
		if err != nil {
			return 0, err
		}
		s.store.installing.Store(true)
		s.receiver = r
		s.meta.ID = s.store.nextID()
	}
	n, err := s.receiver.Write(p)
	s.meta.Size += int64(n)
	if version := new(job.VersionError); errors.As(err, &version) {
		s.store.fatal(err) // the leader would send it again and again
	}
	return n, err
}

// Close ends the snapshot and makes a received one durable, which blocks for some
// syncs.
func (s *sink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.receiver == nil {
		if s.persisted {
			return nil
		}
		return errors.New("the snapshot is empty")
	}
	if err := s.receiver.Finish(); err != nil {
		s.store.installing.Store(false)
		return errors.Join(err, s.receiver.Abort())
	}
	return s.store.keep(&received{meta: &s.meta, receiver: s.receiver})
}

// Cancel drops what was received.
func (s *sink) Cancel() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.receiver == nil {
		return nil
	}
	s.store.installing.Store(false)
	return s.receiver.Abort()
}

// received is a complete snapshot from a leader for Restore, which installs it and does not read
// it.
type received struct {
	meta     *raft.SnapshotMeta
	receiver *fsm.Receiver
}

func (*received) Read([]byte) (int, error) {
	return 0, errors.New("a received snapshot can only be installed")
}

// Close drops the snapshot, if it was not installed.
func (r *received) Close() error {
	return r.receiver.Abort()
}
