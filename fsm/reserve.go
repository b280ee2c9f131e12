package fsm

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"strings"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// reserve hands out ready jobs of the topics named, in the order of the ready list over
// all of them.
func (x *tx) reserve(op *jobpb.Reserve, r *jobpb.Result) error {
	heads, err := x.readyHeads(op.Topics)
	if err != nil {
		return err
	}
	var bodies int64
	n, late := uint32(0), 0
	for n < op.Max && len(heads) > 0 {
		h := heads[0]
		rec, err := x.jobIn(h.topic, record.ListReady, h.Place.Seq, x.replies)
		if err != nil {
			return err
		}
		if x.expired(h.topic, rec) {
			if late++; late > maxExpire {
				break // a later Reserve continues
			}
			if err := errors.Join(x.expire(h.topic, rec, record.ListReady), x.nextHead(&heads)); err != nil {
				return err
			}
			continue
		}
		bodies += int64(rec.BodyLen)
		if n > 0 && op.MaxBytes > 0 && bodies > op.MaxBytes {
			break
		}
		ttr := cmp.Or(op.TtrMs, rec.Status.TtrMS)
		if err := x.handOut(h.topic, rec, record.ListReady, ttr+op.HoldMs, op.Consumer); err != nil {
			return err
		}
		n++
		if x.replies {
			given, err := x.reserved(h.topic, rec, ttr)
			if err != nil {
				return err
			}
			r.Jobs = append(r.Jobs, given)
		}
		if err := x.nextHead(&heads); err != nil {
			return err
		}
	}
	return nil
}

// nextHead replaces the first head by the next ready job of its topic, or removes it if
// the topic has no more or a limit is reached.
func (x *tx) nextHead(heads *readyHeap) error {
	t := (*heads)[0].topic
	p, ok, err := x.head(t, record.ListReady)
	switch {
	case err != nil:
		return err
	case ok && t.allowance(x.clock()) > 0:
		(*heads)[0].Place = p
		heap.Fix(heads, 0)
	default:
		heap.Pop(heads)
	}
	return nil
}

// readyHead is the first ready job of one topic.
type readyHead struct {
	record.Place
	topic *topic
}

type readyHeap []readyHead

func (h readyHeap) Len() int { return len(h) }

func (h readyHeap) Less(i, j int) bool { return h[i].Compare(h[j].Place) < 0 }

func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *readyHeap) Push(e any) { *h = append(*h, e.(readyHead)) }

func (h *readyHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// readyHeads returns the heads of the topics that have ready jobs and are neither paused
// nor at a limit, each once.
func (x *tx) readyHeads(names []string) (readyHeap, error) {
	x.reserves++
	heads := make(readyHeap, 0, min(len(names), 8))
	for _, name := range names {
		t := x.m.topics[name]
		if t == nil || t.namedBy == x.reserves || t.Paused() {
			continue
		}
		t.namedBy = x.reserves
		if t.allowance(x.clock()) == 0 {
			continue
		}
		p, ok, err := x.head(t, record.ListReady)
		if err != nil {
			return nil, err
		}
		if ok {
			heads = append(heads, readyHead{p, t})
		}
	}
	heap.Init(&heads)
	return heads, nil
}

// reserveJob hands out one job by its id, even if its topic is paused. The topic's limits
// apply.
func (x *tx) reserveJob(op *jobpb.ReserveJob, r *jobpb.Result) error {
	rec, t, from, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if from == record.ListReserved {
		return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved already", x.name(rec))
	}
	if t.allowance(x.clock()) == 0 {
		return x.refuseHandOut(t, r)
	}
	if from.Waits() && x.expired(t, rec) {
		if err := x.expire(t, rec, from); err != nil {
			return err
		}
		if rec.Gone || rec.Status.Phase.Ended() {
			return x.refuse(r, jobpb.Code_NOT_FOUND, "job %.40q has expired", x.name(rec))
		}
		from = record.ListDead
	}
	if x.replies {
		if _, err := x.job(rec.Seq, true); err != nil { // for the body
			return err
		}
	}
	ttr := cmp.Or(op.TtrMs, rec.Status.TtrMS)
	if err := x.handOut(t, rec, from, ttr, op.Consumer); err != nil {
		return err
	}
	if x.replies {
		r.State, r.DueMs, r.ReservedUntilMs = jobpb.State_STATE_RESERVED, rec.Status.DueMS, rec.Status.ReservedUntilMS()
		r.Revision = rec.Status.Revision
		given, err := x.reserved(t, rec, ttr)
		if err != nil {
			return err
		}
		r.Jobs = append(r.Jobs, given)
	}
	return nil
}

// handOut reserves a job of the list from, for so many milliseconds. The caller has checked
// the topic's limits.
func (x *tx) handOut(t *topic, rec *record.Job, from record.List, lasts int64, consumer string) error {
	t.takeToken(x.clock())
	t.delivered++
	return x.move(t, rec, from, record.ListReserved, func(s *record.Status) {
		if from == record.ListDead {
			s.SetWaiting()
			s.Attempts = 0
			x.restartExpiry(t, s)
		}
		// A delayed job becomes due now: once released, it is ready.
		s.DueMS = min(s.DueMS, x.clock())
		s.TimedOut = false
		s.Attempts++
		s.Reserves++
		s.Generation = max(s.Generation, generationFloor(&x.m.meta)) + 1
		if s.Generation == 0 {
			s.Generation = 1 // 0 means no token
		}
		s.SetReserved(x.after(lasts))
		s.ReservedBy = strings.Clone(consumer) // it outlives the entry
		x.recordEvent(t, rec, jobpb.Event_RESERVED, record.ListReserved, s.Attempts, consumer)
	})
}

// reserved describes a job that was just handed out.
func (x *tx) reserved(t *topic, rec *record.Job, ttr int64) (*jobpb.Reserved, error) {
	options, err := rec.Spec.DecodeOptions()
	if err != nil {
		return nil, err
	}
	body := rec.Body
	if !rec.OwnBody {
		body = bytes.Clone(body)
	}
	return &jobpb.Reserved{
		Id: x.name(rec), Seq: rec.Seq, Topic: t.name,
		Body: body, BodyKind: rec.Spec.BodyKind,
		Generation: rec.Status.Generation, Attempts: rec.Status.Attempts,
		Priority: rec.Status.Priority, DueMs: rec.Status.DueMS,
		ReservedUntilMs: rec.Status.ReservedUntilMS(), TtrMs: ttr, Options: options,
	}, nil
}

// touchJob restarts a reservation's time to run.
func (x *tx) touchJob(op *jobpb.Touch, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	ttr := op.TtrMs
	if ttr == 0 {
		ttr = rec.Status.TtrMS
	}
	err = x.move(t, rec, record.ListReserved, record.ListReserved, func(s *record.Status) {
		s.SetReserved(x.after(ttr))
	})
	r.State, r.ReservedUntilMs, r.Revision = jobpb.State_STATE_RESERVED, rec.Status.ReservedUntilMS(), rec.Status.Revision
	return err
}
