package cluster

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// advancePause is the least time from one advance to the next while nobody waits for what falls
// due. Each advance is an entry of the log, which the operations of clients would have to wait
// for: a thousand a second take a processor, and halve the speed of a consumer that is behind.
const advancePause = 10 * time.Millisecond

// pace spaces the advances for which nobody waits.
type pace struct {
	last atomic.Int64 // when one was proposed that has moved all that was due, Unix ms; 0: none
}

// next returns when the timer shall look at what is due at an instant, if somebody waits for
// what is due at wanted (0: nobody). All are Unix milliseconds.
func (p *pace) next(due, wanted, now int64) int64 {
	last := p.last.Load()
	if due == 0 || last == 0 || last > now { // after now: the clock was set back
		return due
	}
	paced := max(due, last+advancePause.Milliseconds())
	if wanted == 0 {
		return paced
	}
	return min(paced, max(due, wanted))
}

// NextDue implements timer.Shard.
func (s *Shard) NextDue() int64 {
	due := s.machine.NextDue()
	if l := s.leadership.Load(); l != nil {
		due = l.pace.next(l.ahead.covers(due), l.dispatcher.NextDue(), s.Now().UnixMilli())
	}
	return due
}

// Advance implements timer.Shard: it moves a slice of the jobs that are due and, in the
// same entry, reserves jobs for the waiters of their topics.
func (s *Shard) Advance(ctx context.Context) error {
	l := s.leadership.Load()
	if l == nil {
		return leaderrpc.ErrNotLeader
	}
	now := s.Now().UnixMilli()
	reserves, reserved := l.dispatcher.Claim(now)
	ops := append([]*jobpb.Op{advanceOp()}, reserves...)
	done := make(chan error, 1)
	s.submit(ops, "", true, func(rs []*jobpb.Result, err error) {
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
		if due := s.machine.NextDue(); err == nil && (due == 0 || due > now) {
			l.pace.last.Store(now)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func advanceOp() *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: advanceSlice, Entropy: rand.Uint64()}}}
}

func rest(rs []*jobpb.Result) []*jobpb.Result {
	if len(rs) == 0 {
		return nil
	}
	return rs[1:]
}
