package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/dispatch"
	"tarry/internal/sleep"
	"tarry/job/jobpb"
)

// barrierTimeout is how long a new leader may take to apply the entries of earlier leaders
// before it tries again.
const barrierTimeout = 2 * time.Minute

// leadership is the state that exists while this node is the established leader of a
// term.
type leadership struct {
	term       uint64          // Raft's
	ctx        context.Context // ends with the leadership
	dispatcher *dispatch.Dispatcher
	ahead      *ahead
	config     atomic.Pointer[configAnswer] // the newest of the config group; nil: none
	pace       pace
}

// dispatcher returns the dispatcher; nil unless this node is the established leader.
func (s *Shard) dispatcher() *dispatch.Dispatcher {
	if l := s.leadership.Load(); l != nil {
		return l.dispatcher
	}
	return nil
}

// established returns the leadership, once this node is the established leader. It
// blocks while the node has been elected and still applies what earlier leaders
// committed. It returns nil if the node does not lead, or ctx or the shard has ended.
func (s *Shard) established(ctx context.Context) *leadership {
	for {
		leader, changed := s.leaders.Get() // before the check: becoming established is a change
		if l := s.leadership.Load(); l != nil || leader.ID != s.cfg.ServerID {
			return l
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-s.ctx.Done():
			return nil
		}
	}
}

// leadLoop runs the leader's work while this node leads, according to Raft.
func (s *Shard) leadLoop() {
	var stop func()
	end := func() {
		if stop != nil {
			stop()
			stop = nil
		}
	}
	defer end()
	for {
		select {
		case leads := <-s.raft.LeaderCh():
			// Two true in a row: leadership was lost and regained.
			end()
			if leads {
				stop = s.startLeading()
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// startLeading starts the leader's work. The returned function stops it and waits for
// its end.
func (s *Shard) startLeading() (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.adapter.SetServing(true)
	var work sync.WaitGroup
	work.Go(func() {
		said := ""
		for ctx.Err() == nil {
			term, err := s.establish(ctx)
			if stuck := s.transfers.record(err, time.Now()); stuck != nil {
				s.fatal(stuck)
			}
			if err != nil {
				if why := err.Error(); why != said {
					s.log.Warn("not yet an established leader, trying again", "error", err)
					said = why
				}
				sleep.For(ctx, time.Second)
				continue
			}
			s.lead(ctx, term)
		}
	})
	return func() {
		if l := s.leadership.Swap(nil); l != nil {
			l.dispatcher.Stop()
		}
		cancel()
		work.Wait()
		s.adapter.SetServing(false)
	}
}

// establish waits until everything that earlier leaders committed is applied.
// Counts and reads are correct only after that. Concurrently it asks the voters whether
// this node's clock is right, and waits for that result too if it matters. Until then it
// proposes nothing that has a time. It returns the term in which all this holds.
func (s *Shard) establish(ctx context.Context) (term uint64, err error) {
	real := time.Now()
	s.clock.begin(real, sinceEpoch(s.cfg.Host.Wall()))
	asked := make(chan error, 1)
	s.work.Go(func() { asked <- s.cfg.Host.ConfirmClock(ctx) })
	if term, err = s.barrier(ctx); err != nil {
		return 0, err
	}
	if err = s.clockKnown(ctx, asked); err != nil {
		return 0, err
	}
	if err = s.settle(ctx); err != nil { // it is the first entry that has this node's time
		return 0, err
	}
	return term, s.becomeGroup(ctx)
}

// clockKnown waits until the clock cannot move the queue's time far: it agrees with the
// state machine's, or the voters' clocks are known.
func (s *Shard) clockKnown(ctx context.Context, asked <-chan error) error {
	if s.clockAgrees() {
		select {
		case err := <-asked:
			return err
		default:
			return nil
		}
	}
	select {
	case err := <-asked:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle lets take effect what an earlier leader has committed ahead. That leader may have let
// it take effect already and shown that to clients, so it comes before anything that this one
// does. It waits for the instant: some milliseconds.
func (s *Shard) settle(ctx context.Context) error {
	last := s.machine.LastEffect()
	if last == 0 {
		return nil
	}
	for wait := time.Duration(1); wait > 0; {
		if wait = time.UnixMilli(last).Sub(s.Now()); !sleep.For(ctx, wait) {
			return ctx.Err()
		}
	}
	_, err := s.commitAlone(ctx, &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1, Entropy: rand.Uint64()}}})
	return err
}

// clockAgrees reports whether this node's clock agrees with the state machine's within the
// allowed offset. Under load it does, so a failover does not wait for other clocks.
func (s *Shard) clockAgrees() bool {
	state := time.UnixMilli(s.machine.Applied().ClockMS)
	return s.cfg.Host.Wall().Sub(state).Abs() <= s.cfg.MaxClockOffset
}

// barrier returns the term in which it was applied. Its future completes while Raft runs,
// and never after that, so Raft runs until then (see stop).
func (s *Shard) barrier(ctx context.Context) (term uint64, err error) {
	term = s.raft.CurrentTerm()
	done := make(chan error, 1)
	f := s.raft.Barrier(barrierTimeout)
	s.work.Go(func() { done <- f.Error() })
	select {
	case err := <-done:
		if err == nil && s.raft.CurrentTerm() != term {
			err = errors.New("the term changed meanwhile")
		}
		return term, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// lead does the leader's work of a term until ctx ends.
func (s *Shard) lead(ctx context.Context, term uint64) {
	d := dispatch.New(
		func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
			// Those that begin with a finish come from a client, and may be refused.
			s.submit(ops, "", ops[0].GetFinish() == nil, done)
		},
		maxWaiters,
		func(jobs []*jobpb.Reserved) { s.handedOut(jobs, s.cfg.Host.Wall()) },
	)
	d.Tenants(func(topic string) string { return s.machine.Namespaces().Of(topic).GetName() })
	// The leadership is set before the present state is read, so no update is missed.
	s.stamps.begin()
	left := s.machine.Upload() // no replacement of this term has begun
	l := &leadership{term: term, ctx: ctx, dispatcher: d, ahead: newAhead(s, d, term)}
	s.leadership.Store(l)
	d.Prime(updates(s.machine.TopicChanges()))
	s.leaders.Set(leaderrpc.Leader{ID: s.cfg.ServerID, Addr: s.localAddr}, time.Now())
	s.metrics.elections.Inc()
	s.log.Info("leading")

	var work sync.WaitGroup
	// On a standby all this is the primary's.
	act := func(f func(context.Context)) {
		work.Go(func() {
			if s.awaitPromotion(ctx) {
				f(ctx)
			}
		})
	}
	act(s.timer.Run)
	act(l.ahead.run)
	act(s.schedules.Run)
	act(s.migrate)
	act(func(ctx context.Context) { s.dropUpload(ctx, left) })
	if config := s.cfg.Host.Config(); config != nil {
		work.Go(func() { s.followConfig(ctx, config) })
		work.Go(func() { s.askConfig(ctx, config, l) })
	}
	work.Go(func() { s.cfg.Host.Lead(ctx) })
	<-ctx.Done()
	s.leadership.CompareAndSwap(l, nil) // before waiters end and ask for the next leader
	d.Stop()
	work.Wait()
	s.log.Info("not leading any more")
}
