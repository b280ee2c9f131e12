package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tarry/cluster/datadir"
	"tarry/cluster/statemachine"
	"tarry/job"
)

// liveness checks that the loops of a shard, on which everything else waits, still respond. It
// says nothing about the cluster: a node without a leader is alive.
type liveness struct {
	raft       func() error                     // returns once Raft's main loop has handled it, with any result
	installing func() bool                      // whether the loop may be busy with a state that a leader sends
	committed  func() uint64                    // index
	applied    func() uint64                    // index
	reached    func(index uint64) (bool, error) // whether all up to index is applied that ever is
	state      func() error                     // reads from the state
	run        func(func()) bool                // Shard.spawn

	mu      sync.Mutex
	pending chan struct{} // closed when the check in flight ends; nil: none
	last    error         // the result of the last one
	waited  uint64        // the applied index at the last check, if entries waited then
	behind  bool          // whether they did
}

// check returns nil if the shard responds before ctx ends. One check at a time is in flight: one
// that does not end is what the next calls wait for.
func (l *liveness) check(ctx context.Context) error {
	if l.installing() {
		return nil
	}
	l.mu.Lock()
	done := l.pending
	if done == nil {
		done = make(chan struct{})
		if !l.run(func() {
			err := l.look()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.last, l.pending = err, nil
			close(done)
		}) {
			l.mu.Unlock()
			return errors.New("the node stops")
		}
		l.pending = done
	}
	l.mu.Unlock()
	select {
	case <-done:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last
	case <-ctx.Done():
		if l.installing() { // it began meanwhile
			return nil
		}
		return fmt.Errorf("raft's main loop or the state does not respond: %w", ctx.Err())
	}
}

// look blocks for as long as a loop does.
func (l *liveness) look() error {
	_ = l.raft() // "not the leader" is a response too
	if err := l.state(); err != nil {
		return fmt.Errorf("the state cannot be read: %w", err)
	}
	committed, applied := l.committed(), l.applied()
	there, err := l.reached(committed)
	stands := l.behind && applied == l.waited && !l.installing()
	l.behind, l.waited = err == nil && !there, applied
	if l.behind && stands {
		return fmt.Errorf("entries up to %d are committed, but the state is still at entry %d", committed, applied)
	}
	return nil // an entry that cannot be read has been dropped from the log: it is part of the state
}

func newLiveness(s *Shard) *liveness {
	return &liveness{
		raft:       func() error { return s.raft.VerifyLeader().Error() },
		installing: s.adapter.Installing,
		committed:  s.raft.CommitIndex,
		applied:    func() uint64 { return s.machine.Applied().Index },
		reached:    s.progress.holds,
		state: func() (err error) {
			v := s.machine.View()
			defer func() { err = errors.Join(err, v.Close()) }()
			_, err = v.Totals()
			return err
		},
		run: s.spawn,
	}
}

// Responds returns nil if the node's main loops respond before ctx ends: Raft's, and that of the
// state machine, which must apply what is committed. It must not be called after Stop, because
// Raft then completes nothing.
func (n *Node) Responds(ctx context.Context) error {
	for _, g := range n.groups {
		if err := g.shard.liveness.check(ctx); err != nil {
			return g.errorIn(err)
		}
	}
	return nil
}

// RestartFixes reports whether a node that had to stop with this error only needs to be
// started again.
func RestartFixes(err error) bool {
	return errors.Is(err, statemachine.ErrRestart) || errors.Is(err, errTransferNeverEnds)
}

// NeedsPerson reports whether a node that could not start with this error will not start until
// somebody has acted: a restart does not help.
func NeedsPerson(err error) bool {
	return errors.Is(err, datadir.ErrUnusable) || errors.As(err, new(*job.VersionError))
}
