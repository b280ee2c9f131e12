package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// barrierTimeout bounds how long a new leader may take to apply what its
// predecessors committed before it gives up and tries again.
const barrierTimeout = 2 * time.Minute

// leadLoop runs the leader's work while Raft says that this node leads.
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
			// "Leads" twice in a row means: lost and regained.
			end()
			if leads {
				stop = s.startLeading()
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// startLeading starts the leader's work; the function it returns stops it and
// waits for its end.
func (s *Shard) startLeading() (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.adapter.SetServing(true)
	var work sync.WaitGroup
	work.Go(func() {
		said := ""
		for ctx.Err() == nil {
			number, err := s.establish(ctx)
			if stuck := s.transfers.saw(err, time.Now()); stuck != nil {
				s.fatal(stuck)
			}
			if err != nil {
				if why := err.Error(); why != said {
					s.log.Warn("not yet an established leader, trying again", "error", err)
					said = why
				}
				pause(ctx, time.Second, nil)
				continue
			}
			s.lead(ctx, number)
		}
	})
	return func() {
		if t := s.term.Swap(nil); t != nil {
			t.dispatcher.Stop()
		}
		cancel()
		work.Wait()
		s.adapter.SetServing(false)
	}
}

// establish waits until everything that earlier leaders committed is applied.
// Only then may counts and reads be trusted. Meanwhile it asks the voters whether
// this node's clock is right, and waits for their answer too, unless the clock is
// that of the last entry: then it takes the queue's time nowhere. It returns the
// term in which all this is true.
func (s *Shard) establish(ctx context.Context) (term uint64, err error) {
	real := time.Now()
	s.clock.begin(real, sinceEpoch(s.cfg.Wall()))
	asked := make(chan error, 1)
	s.work.Go(func() { asked <- s.cfg.ConfirmClock(ctx) })
	if term, err = s.barrier(ctx); err != nil {
		return 0, err
	}
	if s.clockGoesOn() {
		select {
		case err := <-asked:
			return term, err
		default:
			return term, nil
		}
	}
	select {
	case err := <-asked:
		return term, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// clockGoesOn reports whether this node's clock is, within what it may be off, the
// state machine's. Under load it is, so a failover does not wait for any clock.
func (s *Shard) clockGoesOn() bool {
	state := time.UnixMilli(s.machine.Applied().ClockMS)
	return s.cfg.Wall().Sub(state).Abs() <= s.cfg.MaxClockOffset
}

// barrier returns the term in which it was applied.
func (s *Shard) barrier(ctx context.Context) (term uint64, err error) {
	term = s.raft.CurrentTerm()
	done := make(chan error, 1)
	f := s.raft.Barrier(barrierTimeout)
	go func() { done <- f.Error() }() // ends with the barrier, at the latest when Raft stops
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
func (s *Shard) lead(ctx context.Context, number uint64) {
	d := dispatch.New(
		func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) { s.submit(ops, true, done) },
		maxWaiters,
		func(jobs []*jobpb.Reserved) { s.metrics.handedOut(jobs, s.cfg.Wall()) },
	)
	// The hook first, then what was there before: no update can be missed.
	t := &term{number: number, ctx: ctx, dispatcher: d}
	s.term.Store(t)
	d.Prime(updates(s.machine.TopicChanges()))
	s.leaders.set(leader{id: s.cfg.ServerID, addr: s.localAddr}, time.Now())
	s.metrics.elections.Inc()
	s.log.Info("leading")

	var work sync.WaitGroup
	work.Go(func() { s.timer.Run(ctx) })
	work.Go(func() { s.schedules.Run(ctx) })
	work.Go(func() { s.migrate(ctx) })
	work.Go(func() { s.cfg.Lead(ctx) })
	<-ctx.Done()
	s.term.CompareAndSwap(t, nil) // before waiters are told to go elsewhere
	d.Stop()
	work.Wait()
	s.log.Info("not leading any more")
}

// Advance implements timer.Shard: it moves a slice of what is due and, in the
// same entry, reserves for the waiters of the topics concerned.
func (s *Shard) Advance(ctx context.Context) error {
	d := s.dispatcher()
	if d == nil {
		return errRetry
	}
	reserves, reserved := d.Claim(s.Now().UnixMilli())
	ops := append([]*jobpb.Op{{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: advanceSlice, Entropy: rand.Uint64()}}}}, reserves...)
	done := make(chan error, 1)
	s.submit(ops, true, func(rs []*jobpb.Result, err error) {
		if reserved != nil {
			reserved(rest(rs), err)
		}
		done <- err
	})
	select {
	case err := <-done:
		if err != nil && job.CodeOf(err) == job.CodeInternal {
			s.log.Error("could not advance", "error", err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func rest(rs []*jobpb.Result) []*jobpb.Result {
	if len(rs) == 0 {
		return nil
	}
	return rs[1:]
}

// transfer hands leadership to another voter and blocks until that is done.
func (s *Shard) transfer() error {
	err := s.raft.LeadershipTransfer().Error()
	if errors.Is(err, raft.ErrNotLeader) {
		return nil
	}
	return err
}
