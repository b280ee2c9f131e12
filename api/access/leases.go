package access

import (
	"maps"
	"time"

	"tarry/job/jobpb"
)

// leases are the reservations that a token has got on this node and that have not ended as far as
// this node knows. A consumer loses its job unless it prolongs the reservation in time, however
// busy it is: so one touch of each in TouchEvery is allowed above the limits. As they are real
// reservations, of which a job has one at a time, that is no way to call without end.
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
	round int64     // in which it was counted last
}

// Those that are over are dropped when there are more than pruneAbove, once in pruneEvery.
const (
	pruneAbove = 1024
	pruneEvery = 10 * time.Second
)

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
		if len(l.of) < maxHeld {
			ttr := time.Duration(j.TtrMs) * time.Millisecond
			l.of[reservation{j.Seq, j.Generation}] = &lease{ttr: ttr, until: at.Add(ttr)}
		}
	}
}

// cover returns how many of the touches among ops are covered now, each reservation once. With
// spend set they are not for TouchEvery.
func (l *leases) cover(ops []*jobpb.Op, at time.Time, spend bool) (n int64) {
	l.round++
	for _, op := range ops {
		touch := op.GetTouch()
		if touch == nil {
			continue
		}
		one := l.of[reservationOf(touch.GetRef())]
		if one == nil || one.round == l.round || !at.Before(one.until) || at.Before(one.next) {
			continue
		}
		one.round = l.round
		n++
		if spend {
			one.next = at.Add(TouchEvery(one.ttr))
		}
	}
	return n
}

// done takes note of what was replied to an operation.
func (l *leases) done(op *jobpb.Op, code jobpb.Code, at time.Time) {
	if touch := op.GetTouch(); touch != nil {
		l.touched(touch, code, at)
		return
	}
	l.ended(endOf(op), code)
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

// endOf returns the reservation that an operation ends; nil: it ends none.
func endOf(op *jobpb.Op) *jobpb.Ref {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		return k.Finish.GetRef()
	case *jobpb.Op_Release:
		return k.Release.GetRef()
	case *jobpb.Op_Bury:
		return k.Bury.GetRef()
	case *jobpb.Op_Delete:
		return k.Delete.GetRef()
	case *jobpb.Op_AtomicAdd:
		return k.AtomicAdd.GetFinish().GetRef()
	}
	return nil
}
