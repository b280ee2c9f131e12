package fsm

import (
	"errors"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// sweep walks over a part of one list and calls act for up to most of the jobs that the
// filter selects, and also, if it is given; k counts them over all the commands of a sweep. The result has the
// number of jobs and where the next command continues. act may change the list.
//
// Jobs that died after the sweep began are not part of it. So a sweep over dead jobs ends
// even if the jobs that it kicks die again. One that goes on from another topic has no
// place here yet, but a number of jobs.
//
// If act returns errNoRoom it has done nothing, and the next command continues with that job.
func (x *tx) sweep(t *topic, list record.List, most uint32, op *jobpb.Sweep, r *jobpb.Result, also func(*record.Job) bool, act func(rec *record.Job, startMS int64, k uint64) error) error {
	at := progressOf(op.From)
	if at.startMS == 0 {
		at.startMS = x.clock()
	}
	if op.From.GetAfter() == nil {
		at.limit = t.Rank
	}
	// One more than Scan, to know whether there are more.
	found, err := x.sweptPlaces(t, list, op.Filter, at, int(op.Scan)+1)
	if err != nil {
		return err
	}
	var done uint32
	bytes := 0
	for i, p := range found {
		if i == int(op.Scan) || done == most || bytes >= sweepBytes {
			r.Details = &jobpb.Details{Next: at.proto()}
			break
		}
		before := at.after
		at.after = p
		rec, err := x.jobIn(t, list, p.Seq, false)
		if err != nil {
			return err
		}
		bytes += rec.BodyLen
		ok, err := record.Matches(op.Filter, rec)
		if err != nil {
			return err
		}
		if !ok || also != nil && !also(rec) {
			continue
		}
		if err := act(rec, at.startMS, at.done); err != nil {
			if !errors.Is(err, errNoRoom) {
				return err
			}
			at.after = before
			r.Details = &jobpb.Details{Next: at.proto()}
			break
		}
		done++
		at.done++
	}
	r.Count = done
	return nil
}

// errNoRoom ends a command of a sweep.
var errNoRoom = errors.New("the namespace has no room for the job")

// sweepBytes bounds the jobs that one command of a sweep or a move reads: reading a job
// reads its body.
const sweepBytes = job.MaxReserveBytes

// progress is how far a sweep has come: a jobpb.Progress.
type progress struct {
	after       record.Place
	limit, done uint64
	startMS     int64
}

func progressOf(p *jobpb.Progress) progress {
	return progress{after: record.PlaceOf(p.GetAfter()), limit: p.GetLimit(), done: p.GetDone(), startMS: p.GetStartMs()}
}

func (p *progress) proto() *jobpb.Progress {
	return &jobpb.Progress{After: p.after.Proto(), Limit: p.limit, Done: p.done, StartMs: p.startMS}
}

// checkStart checks that a sweep did not begin ahead of the clock.
func (x *tx) checkStart(op *jobpb.Sweep) error {
	if op.GetFrom().GetStartMs() > x.clock() {
		return job.Invalid("from", "is not a place that this sweep gave")
	}
	return nil
}

// sweptPlaces is places, without the dead jobs that a filter excludes by their exact reason.
func (x *tx) sweptPlaces(t *topic, list record.List, f *jobpb.Filter, at progress, most int) ([]record.Place, error) {
	if list == record.ListDead && f != nil && f.ExactReason != nil {
		return x.groupPlaces(t, *f.ExactReason, at, most)
	}
	return x.places(t, list, at, most)
}

// places returns up to most places behind a sweep's, as of the running transaction.
func (x *tx) places(t *topic, list record.List, at progress, most int) ([]record.Place, error) {
	var found []record.Place
	err := t.windows[list].Walk(at.after.Next(), storedList(x.db, t.listID(list)), func(p record.Place) bool {
		if list == record.ListDead && uint64(p.Instant) >= at.limit {
			return false
		}
		found = append(found, p)
		return len(found) < most
	})
	return found, err
}
