package cluster

import (
	"context"
	"sync"
	"time"

	"tarry/cluster/noderpc"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

// Job implements api.Queue.
func (s *Shard) Job(ctx context.Context, id string, stale bool) (*jobpb.Job, error) {
	var found *jobpb.Job
	err := s.read(ctx, stale, func(v *fsm.View) error {
		j, there, err := v.Job(id)
		if err == nil && !there {
			return job.Errorf(job.CodeNotFound, "there is no job with the id %q", id)
		}
		found = j
		return err
	})
	return found, err
}

// Topics implements api.Queue.
func (s *Shard) Topics(ctx context.Context, after string, max int, stale bool) (ts []*jobpb.Topic, err error) {
	err = s.read(ctx, stale, func(v *fsm.View) (err error) {
		ts, err = v.Topics(after, max)
		return err
	})
	return ts, err
}

// Topic implements api.Queue.
func (s *Shard) Topic(ctx context.Context, name string, stale bool) (t *jobpb.Topic, err error) {
	err = s.read(ctx, stale, func(v *fsm.View) (err error) {
		t, err = v.Topic(name)
		return err
	})
	if err == nil && t == nil {
		t = &jobpb.Topic{Name: name}
	}
	return t, err
}

// read runs f on a consistent view of this node's state: as of now for the whole
// cluster, or, when stale, as of whatever this node has applied. The state of
// one node never goes back, so neither do successive reads of one node.
func (s *Shard) read(ctx context.Context, stale bool, f func(*fsm.View) error) error {
	if !stale {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
	}
	v := s.machine.View()
	defer v.Close()
	return f(v)
}

// catchUp blocks until this node has applied all that was acknowledged anywhere
// before the call (Raft thesis, section 6.4: the read index).
func (s *Shard) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HoldTime)
	defer cancel()
	for {
		index, err := s.reads.join(ctx)
		if err == nil {
			return s.applied.wait(ctx, index)
		}
		if err != errRetry {
			return err
		}
		_, changed := s.leaders.get()
		if !pause(ctx, retryPause, changed) {
			return errNoLeader()
		}
	}
}

// readRounds lets all reads that begin while a round is under way share the
// next one: a round that began before a read did must not serve it. One
// goroutine runs the rounds, so one question at a time is under way.
type readRounds struct {
	ask func(ctx context.Context) (uint64, error)

	mu   sync.Mutex
	next *readRound // collects readers; nil while none wait
	wake chan struct{}
}

type readRound struct {
	done  chan struct{}
	index uint64
	err   error
}

func newReadRounds(ask func(ctx context.Context) (uint64, error)) *readRounds {
	return &readRounds{ask: ask, wake: make(chan struct{}, 1)}
}

// join takes part in the next round and blocks for its outcome or ctx.
func (r *readRounds) join(ctx context.Context) (uint64, error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &readRound{done: make(chan struct{})}
	}
	round := r.next
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	select {
	case <-round.done:
		return round.index, round.err
	case <-ctx.Done():
		return 0, errNoLeader()
	}
}

// run serves rounds until ctx ends. Each is bounded by limit.
func (r *readRounds) run(ctx context.Context, limit time.Duration) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return // readers have contexts of their own
		}
		r.mu.Lock()
		round := r.next
		r.next = nil
		r.mu.Unlock()
		if round == nil {
			continue
		}
		rctx, cancel := context.WithTimeout(ctx, limit)
		round.index, round.err = r.ask(rctx)
		cancel()
		close(round.done)
	}
}

// leaderReadIndex answers a read index as the leader: everything acknowledged so
// far is applied here, and a majority still follows this leader.
func (s *Shard) leaderReadIndex() (uint64, error) {
	if s.dispatcher() == nil {
		return 0, errRetry // not established: what earlier leaders committed may not be applied yet
	}
	index := s.machine.Applied().Index
	if err := s.raft.VerifyLeader().Error(); err != nil {
		return 0, errRetry
	}
	return index, nil
}

// askReadIndex asks whoever leads.
func (s *Shard) askReadIndex(ctx context.Context) (uint64, error) {
	l, _ := s.leaders.get()
	switch l.id {
	case "":
		return 0, errRetry
	case s.cfg.ServerID:
		return s.leaderReadIndex()
	}
	client, err := s.peer(ctx, l.addr)
	if err != nil {
		return 0, errRetry
	}
	resp, err := client.ReadIndex(ctx, &noderpc.ReadIndexRequest{Shard: s.cfg.Number})
	if err != nil || resp.Refusal != noderpc.Refusal_NONE {
		return 0, errRetry // a read has no effect, so it may be asked again
	}
	return resp.Index, nil
}
