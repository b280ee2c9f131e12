package fsm

import (
	"container/heap"
	"fmt"

	"tarry/job/jobpb"
)

// overrun is the reason left with a job whose reservation ended by itself.
const overrun = "time to run exceeded"

// advance first goes through jobs whose clock was set back, if there are any. Then it
// moves jobs whose instant has come: delayed ones become ready, overrun
// reservations end, retained jobs are forgotten. It also ends pauses, lists jobs
// that may expire from now on, and drops topics that have been empty for long enough.
//
// Every topic that is due gets the same share of max, so that one with a million
// due jobs does not hold up the others. When more topics are due than max, the
// ones with the earliest instants are served.
func (x *tx) advance(op *jobpb.Advance, r *jobpb.Result) error {
	if op.Max < 1 || op.Max > x.limits().MaxKick {
		return x.refuse(r, jobpb.Code_INVALID, "max is %d; it must be between 1 and %d", op.Max, x.limits().MaxKick)
	}
	if err := x.setJobsBack(op.Max); err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	h := &x.m.due
	var due []*topic
	for uint32(len(due)) < op.Max && h.Len() > 0 && (*h)[0].next <= x.clock() {
		due = append(due, heap.Pop(h).(*topic))
	}
	// Popped topics are settled again whether they moved or not.
	for _, t := range due {
		x.touch(t)
	}
	var moved uint32
	for left := op.Max; left > 0 && len(due) > 0; {
		share := max(1, left/uint32(len(due)))
		still := due[:0]
		for _, t := range due {
			n, err := x.advanceTopic(op, t, min(share, left), &moved)
			if err != nil {
				return err
			}
			left -= n
			if n == share {
				still = append(still, t)
			}
		}
		due = still
	}
	if err := x.settle(); err != nil {
		return err
	}
	r.Count = moved
	r.More = x.m.meta.reset.underWay() || h.Len() > 0 && (*h)[0].next <= x.clock()
	return nil
}

// advanceTopic does up to share of what is due in a topic, in the order of the
// instants, and says how much. moved counts the jobs among it but those that are
// forgotten. The end of a pause comes first: what else is due makes no difference
// to it. What is left of the share lists jobs that may expire.
func (x *tx) advanceTopic(op *jobpb.Advance, t *topic, share uint32, moved *uint32) (done uint32, err error) {
	if share > 0 && t.paused() && t.pausedUntil <= x.clock() {
		t.resume()
		done++
	}
	if done < share && t.jobs() == 0 && !t.dropped && t.keptUntil() <= x.clock() {
		x.dropTopic(t)
		return done + 1, nil
	}
	for ; done < share; done++ {
		p, list, err := x.firstDue(t)
		if err != nil {
			return done, err
		}
		switch list {
		case jobpb.State_STATE_NONE:
			n, err := x.cover(t, share-done)
			return done + n, err
		case stateEnded:
			if err := x.forget(t, p.seq); err != nil {
				return done, err
			}
			continue
		case jobpb.State_STATE_DELAYED:
			err = x.fallDue(t, p)
		case jobpb.State_STATE_RESERVED:
			err = x.timeOut(t, p.seq, op.Entropy)
		default:
			err = x.expireNext(t, p)
		}
		if err != nil {
			return done, err
		}
		*moved++
	}
	return done, nil
}

// firstDue is the place whose instant came first, with its list: STATE_NONE when
// none has come. Of several at one instant it is the delayed job, then the reserved
// one, then the one that is forgotten, then the one that expires.
func (x *tx) firstDue(t *topic) (first place, list jobpb.State, err error) {
	var at int64
	for _, l := range [...]jobpb.State{jobpb.State_STATE_DELAYED, jobpb.State_STATE_RESERVED, stateEnded, listExpiring} {
		var after int64
		if l == listExpiring {
			if after = t.settings.GetExpireMs(); after == 0 {
				break // none expires
			}
		}
		p, ok, err := x.head(t, l)
		if err != nil {
			return place{}, jobpb.State_STATE_NONE, err
		}
		if due := p.instant + after; ok && due <= x.clock() && (list == jobpb.State_STATE_NONE || due < at) {
			first, list, at = p, l, due
		}
	}
	return first, list, nil
}

// fallDue makes a delayed job ready. Its records say "waiting" before and after,
// so only the index changes.
func (x *tx) fallDue(t *topic, p place) error {
	if err := x.take(t, jobpb.State_STATE_DELAYED, p); err != nil {
		return err
	}
	x.enlist(t, jobpb.State_STATE_READY, place{priority: p.carried, instant: p.instant, seq: p.seq})
	return nil
}

// timeOut ends a reservation that has lasted too long. The job waits as its
// backoff says, if it has one.
func (x *tx) timeOut(t *topic, seq, entropy uint64) error {
	rec, err := x.job(seq, false)
	if err != nil {
		return err
	}
	if rec == nil {
		return missing(seq, t, jobpb.State_STATE_RESERVED)
	}
	t.timeouts++
	wait, err := x.backoff(t, rec, entropy)
	if err != nil {
		return err
	}
	to := jobpb.State_STATE_READY
	switch {
	case rec.exhausted():
		to = jobpb.State_STATE_DEAD
	case wait > 0:
		to = jobpb.State_STATE_DELAYED
	}
	return x.move(t, rec, jobpb.State_STATE_RESERVED, to, func(f *fate) {
		f.timeouts++
		f.timedOut = true
		f.reason = overrun
		if to != jobpb.State_STATE_DEAD {
			f.wait()
		}
		switch to {
		case jobpb.State_STATE_DELAYED:
			f.dueMS, f.lastDelayMS = x.clock()+wait, wait
		case jobpb.State_STATE_DEAD:
			f.reason = fmt.Sprintf("%s on attempt %d of %d", overrun, rec.attempts, rec.fate.maxAttempts)
			x.kill(t, f)
		}
		x.note(t, rec, jobpb.Event_TIMED_OUT, to, rec.attempts, "")
	})
}
