package cluster

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft"

	"tarry/cluster/ackguard"
	"tarry/cluster/datadir"
	"tarry/cluster/logstore"
	"tarry/cluster/statemachine"
	"tarry/fsm"
	"tarry/internal/hook"
)

// The files of a shard: the Raft log and the state.

func (s *Shard) openStores() (err error) {
	defer func() { err = s.withRecovery(err) }()
	if err := datadir.ClaimShard(s.cfg.Dir, s.cfg.ServerID); err != nil {
		return err
	}
	if s.stores, err = logstore.Open(filepath.Join(s.cfg.Dir, "raft"), logstore.Options{
		Kind: logstore.Kind(s.cfg.LogStore), Fatal: s.fatal, Logger: newRaftLogger(s.log), Wrap: s.cfg.wrapLog, SegmentBytes: s.cfg.files.segmentBytes,
		HungAfter: s.cfg.files.hungAfter,
	}); err != nil {
		return fmt.Errorf("open the Raft log: %w", err)
	}
	if s.machine, err = fsm.Open(filepath.Join(s.cfg.Dir, "fsm"), fsm.Options{
		Cache: s.cfg.shared, CacheBytes: s.cfg.cacheBytes, OpenTables: s.cfg.tables, MemTableBytes: s.cfg.memTableBytes,
		OnFatal: s.fatal, Point: hook.Point,
	}); err != nil {
		return fmt.Errorf("open the state machine: %w", err)
	}
	if err := statemachine.CheckStart(s.machine, s.stores.Log, s.stores.Stable); err != nil {
		return err
	}
	s.progress = &progress{applied: func() uint64 { return s.machine.Applied().Index }, entry: s.stores.Log.GetLog}
	if s.replay, err = s.newReplay(); err != nil {
		return err
	}
	s.adapter = statemachine.New(s.machine, statemachine.Options{OnChanges: s.changed, Fatal: s.fatal, Log: s.stores.Log})
	return nil
}

// newReplay returns the replay of the log as it is before Raft starts.
func (s *Shard) newReplay() (*replay, error) {
	last, err := s.stores.Log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	term, err := statemachine.Term(s.stores.Stable)
	if err != nil {
		return nil, err
	}
	return newReplay(last, term, s.stores.Log.GetLog, s.progress.applied, s.machine.EffectTerm), nil
}

// fatal ends the process. For damaged files the message has the recovery.
func (s *Shard) fatal(err error) {
	if errors.Is(err, logstore.ErrDamaged) || errors.Is(err, logstore.ErrFileDamaged) || fsm.Damaged(err) {
		err = s.withRecovery(err)
	}
	s.cfg.Host.Fatal(err)
}

// withRecovery adds to a failure of the stores what an operator can do about it. It does
// not change failures of the log store that already say so and are not about the data.
func (s *Shard) withRecovery(err error) error {
	if errors.Is(err, logstore.ErrInUse) || errors.Is(err, logstore.ErrUnknownKind) {
		return err
	}
	return datadir.WithRecovery(err, s.cfg.Dir)
}

// hasState reports whether Raft has ever run on these stores.
func (s *Shard) hasState() (bool, error) {
	return raft.HasExistingState(s.stores.Log, s.stores.Stable, s.adapter.Snapshots())
}

// logPosition returns the term and the last index on disk, and the servers of the last
// configuration in the state. It is called before Raft starts.
func (s *Shard) logPosition() ([]raft.Server, ackguard.LogPosition, error) {
	applied := s.machine.Applied()
	last, err := s.stores.Log.LastIndex()
	if err != nil {
		return nil, ackguard.LogPosition{}, fmt.Errorf("read the log: %w", err)
	}
	term, err := statemachine.Term(s.stores.Stable)
	if err != nil {
		return nil, ackguard.LogPosition{}, err
	}
	return s.committedConfiguration().Servers, ackguard.LogPosition{Term: term, LastIndex: max(last, applied.Index)}, nil
}

// committedConfiguration returns Raft's last configuration that is applied here.
func (s *Shard) committedConfiguration() (c raft.Configuration) {
	if encoded := s.machine.Applied().Configuration; len(encoded) > 0 {
		c = raft.DecodeConfiguration(encoded)
	}
	return c
}

func (s *Shard) closeStores() error {
	var errs []error
	if s.machine != nil {
		errs = append(errs, s.machine.Close())
	}
	if s.stores != nil {
		errs = append(errs, s.stores.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the shard's stores: %w", err)
	}
	return nil
}
