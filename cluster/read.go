package cluster

import (
	"context"
	"sync"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/internal/hook"
	"tarry/job/jobpb"
)

// A read is linearizable unless the client asks for a stale one. The leader serves a
// linearizable read once it has applied everything that was committed when the read
// began, and has checked with a majority that it still leads. That includes all
// acknowledged writes, and all that a follower may have returned to a stale read. The node
// that receives a stale read serves it. Its state never goes back, and after a start it is not
// shown before it is as new as any before (replay), so a client that stays with a node never
// sees an older state.

// Read serves r here or at the leader. It implements job.Reader. A read has no effect, so
// it is sent again after any failure.
func (s *Shard) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	if stale || hook.Mutant(hook.StaleRead) {
		if err := s.shown(ctx); err != nil {
			return nil, err
		}
		return s.look(r)
	}
	r.Shard = s.cfg.Number
	rules := leaderrpc.Rules{Within: s.cfg.HoldTime, Hold: s.cfg.HoldTime, Read: true}
	return leaderrpc.Call(ctx, &s.toLeader, rules, r, s.readAsLeader, noderpc.NodeClient.Read)
}

// look serves a read from this node's state.
func (s *Shard) look(r *jobpb.Read) (a *jobpb.ReadResult, err error) {
	v := s.machine.View()
	defer func() {
		s.metrics.read(r, v.Examined())
		if cerr := v.Close(); err == nil {
			err = cerr
		}
	}()
	if a, err = v.Read(r); err != nil {
		return nil, err
	}
	a.AuthRevision = s.machine.Auth().Revision // or newer than the view: who reads decides by it
	return a, nil
}

// readAsLeader serves a read on this node if it is the established leader and a
// majority still follows it.
func (s *Shard) readAsLeader(ctx context.Context, r *jobpb.Read) (*jobpb.ReadResult, error) {
	established := s.established(ctx)
	if established == nil { // entries of earlier leaders may not be applied yet
		return nil, leaderrpc.ErrNotLeader
	}
	committed := s.raft.CommitIndex()
	if term, err := s.confirmations.confirm(ctx); err != nil || term != established.term {
		return nil, leaderrpc.ErrNotLeader
	}
	if err := s.progress.reach(ctx, committed); err != nil {
		return nil, leaderrpc.ErrNotLeader
	}
	return s.look(r)
}

// confirmLeadership checks with a majority that this node still leads. It waits for the
// lease at most, because a leader that reaches no majority in that time steps down.
func (s *Shard) confirmLeadership() (term uint64, err error) {
	established := s.leadership.Load()
	if established == nil {
		return 0, leaderrpc.ErrNotLeader
	}
	ctx, cancel := context.WithTimeout(established.ctx, s.cfg.Lease)
	defer cancel()
	return s.cfg.Host.ConfirmLeader(ctx)
}

// confirmations batches confirmations of leadership. All reads that begin while one is
// in flight share the next one, because a confirmation that began before a read must
// not serve it. One goroutine makes them, so at most one is in flight.
type confirmations struct {
	ask func() (term uint64, err error)

	mu   sync.Mutex
	next *confirmation // collects readers; nil while none wait
	wake chan struct{}
}

type confirmation struct {
	done chan struct{}
	term uint64
	err  error
}

func newConfirmations(ask func() (uint64, error)) *confirmations {
	return &confirmations{ask: ask, wake: make(chan struct{}, 1)}
}

// confirm waits for the next confirmation, or for ctx. It returns the term in which
// this node leads.
func (c *confirmations) confirm(ctx context.Context) (uint64, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &confirmation{done: make(chan struct{})}
	}
	mine := c.next
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	select {
	case <-mine.done:
		return mine.term, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run makes confirmations until ctx ends; readers have contexts of their own.
func (c *confirmations) run(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		mine := c.next
		c.next = nil
		c.mu.Unlock()
		if mine != nil {
			mine.term, mine.err = c.ask()
			close(mine.done)
		}
	}
}
