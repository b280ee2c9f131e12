package access

import (
	"maps"
	"time"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// leases are the reservations that a token has got on this node and that have not ended as far as
// this node knows. A consumer must be able to end each, and to prolong it in time, however busy it
// is. So above the limits one end of each is covered, and one touch in TouchEvery while it lasts.
// As they are real reservations, of which a job has one at a time, that is no way to call without
// end; and calls about other jobs, which the node cannot tell from those of jobs that were reserved
// elsewhere, use up nothing of it.
type leases struct {
	of     map[reservation]*lease
	pruned time.Time // when those that are over were dropped last
	round  int64     // of cover
}

// reservation names a reservation.
type reservation struct {
	seq        uint64
	generation uint32
}

func reservationOf(ref *jobpb.Ref) reservation {
	return reservation{ref.GetSeq(), ref.GetGeneration()}
}

// lease is a reservation that lasts. Its instants are by this node's clock.
type lease struct {
	ttr   time.Duration
	until time.Time
	next  time.Time // when a touch is covered again
	ended bool      // an end of it was covered
	round int64     // in which it was counted last
}

// Those that are over are dropped when there are more than pruneAbove, once in pruneEvery.
const (
	pruneAbove = 1024
	pruneEvery = 10 * time.Second
)

// maxLeases bounds them.
const maxLeases = 100_000

// TouchEvery is the least time between two touches of a reservation that are allowed above the
// limits. The first may come at once.
func TouchEvery(ttr time.Duration) time.Duration { return max(ttr/4, time.Second) }

// add records jobs that were reserved.
func (l *leases) add(jobs []*jobpb.Reserved, at time.Time) {
	if l.of == nil {
		l.of = map[reservation]*lease{}
	}
	if len(l.of) > pruneAbove && at.Sub(l.pruned) >= pruneEvery {
		maps.DeleteFunc(l.of, func(_ reservation, one *lease) bool { return !at.Before(one.until) })
		l.pruned = at
	}
	for _, j := range jobs {
		if len(l.of) < maxLeases {
			ttr := time.Duration(j.TtrMs) * time.Millisecond
			l.of[reservation{j.Seq, j.Generation}] = &lease{ttr: ttr, until: at.Add(ttr)}
		}
	}
}

// cover returns how many of the ends and touches of a call are covered now, each reservation once.
// With spend set they are not again: a touch for TouchEvery, an end never.
func (l *leases) cover(c *cost, at time.Time, spend bool) (n int64) {
	if len(l.of) == 0 {
		return 0
	}
	l.round++
	for _, op := range c.of {
		if touch := op.GetTouch(); touch != nil {
			if one := l.uncounted(touch.GetRef()); one != nil && at.Before(one.until) && !at.Before(one.next) {
				n++
				one.round = l.round
				if spend {
					one.next = at.Add(TouchEvery(one.ttr))
				}
			}
			continue
		}
		end, _ := oplog.EndOf(op)
		n += l.coverEnd(end, spend)
	}
	for _, f := range c.finishes {
		n += l.coverEnd(f.GetRef(), spend)
	}
	return n
}

func (l *leases) coverEnd(ref *jobpb.Ref, spend bool) int64 {
	one := l.uncounted(ref)
	if one == nil || one.ended {
		return 0
	}
	one.round, one.ended = l.round, spend
	return 1
}

// uncounted returns a lease that was not counted in this round; nil: there is none.
func (l *leases) uncounted(ref *jobpb.Ref) *lease {
	if one := l.of[reservationOf(ref)]; one != nil && one.round != l.round {
		return one
	}
	return nil
}

// done takes note of what was replied to an operation.
func (l *leases) done(op *jobpb.Op, code jobpb.Code, at time.Time) {
	if touch := op.GetTouch(); touch != nil {
		l.touched(touch, code, at)
		return
	}
	end, _ := oplog.EndOf(op)
	l.ended(end, code)
}

// ended forgets a reservation, if it has ended.
func (l *leases) ended(ref *jobpb.Ref, code jobpb.Code) {
	switch code {
	case jobpb.Code_OK, jobpb.Code_NOT_FOUND, jobpb.Code_STALE_TOKEN, jobpb.Code_NOT_RESERVED:
		delete(l.of, reservationOf(ref))
	}
}

func (l *leases) touched(touch *jobpb.Touch, code jobpb.Code, at time.Time) {
	one := l.of[reservationOf(touch.GetRef())]
	switch {
	case one == nil:
	case code != jobpb.Code_OK:
		l.ended(touch.GetRef(), code)
	case touch.TtrMs > 0:
		one.until = at.Add(time.Duration(touch.TtrMs) * time.Millisecond)
	default:
		one.until = at.Add(one.ttr)
	}
}
