package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// sweep walks over one list of a topic, a piece with each command, and calls act
// for up to most of the jobs that its filter means; k counts them over all the
// commands. It ends early at large jobs (sweepBytes). What act does may change the list. A job that died after the sweep
// began is not part of it, so that a sweep over the dead ends although the jobs
// that it kicks die again.
//
// The result says how many there were and where to go on.
func (x *tx) sweep(t *topic, state jobpb.State, most uint32, op *jobpb.Sweep, r *jobpb.Result, act func(rec *record, startMS int64, k uint64) error) error {
	at := progressOf(op.From)
	if op.From == nil {
		at.limit, at.startMS = t.rank, x.clock()
	}
	// One more than may be looked at, to know whether there is more.
	found, err := x.places(t, state, at, int(op.Scan)+1)
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
		at.after = p
		rec, err := x.job(p.seq, false)
		if err != nil {
			return err
		}
		if rec == nil {
			return missing(p.seq, t, state)
		}
		bytes += rec.bodyLen
		ok, err := fits(op.Filter, rec, state)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := act(rec, at.startMS, at.done); err != nil {
			return err
		}
		done++
		at.done++
	}
	r.Count = done
	return nil
}

// sweepBytes bounds the jobs that one command of a sweep or a move reads: a record
// comes from the store with its body.
const sweepBytes = job.MaxReserveBytes

// progress is how far a sweep has come: a jobpb.Progress.
type progress struct {
	after       place
	limit, done uint64
	startMS     int64
}

func progressOf(p *jobpb.Progress) progress {
	return progress{after: placeOf(p.GetAfter()), limit: p.GetLimit(), done: p.GetDone(), startMS: p.GetStartMs()}
}

func (p *progress) proto() *jobpb.Progress {
	return &jobpb.Progress{After: p.after.proto(), Limit: p.limit, Done: p.done, StartMs: p.startMS}
}

// checkSweep refuses what the borders should not have let through.
func (x *tx) checkSweep(op *jobpb.Sweep) error {
	from := op.GetFrom()
	switch {
	case op == nil:
		return job.Errorf(job.CodeInvalid, "sweep is missing")
	case op.Scan < 1 || op.Scan > x.limits().MaxKick:
		return job.Errorf(job.CodeInvalid, "scan is %d; it must be between 1 and %d", op.Scan, x.limits().MaxKick)
	case from != nil && (from.StartMs < 0 || from.StartMs > x.clock() || from.GetAfter().GetInstant() < 0):
		return job.Errorf(job.CodeInvalid, "the place to go on from is not one that this sweep gave")
	case from.GetDone() > maxSweep:
		return job.Errorf(job.CodeInvalid, "the sweep has done %d jobs; the limit is %d", from.GetDone(), uint64(maxSweep))
	}
	return x.limits().CheckFilter(op.Filter)
}

// maxSweep bounds the jobs of one sweep so that no product of theirs overflows.
const maxSweep = 1 << 40

// places lists up to most places of a list that are behind a sweep's, as the
// running transaction has left it.
func (x *tx) places(t *topic, state jobpb.State, at progress, most int) ([]place, error) {
	w := &t.windows[state]
	var found []place
	// full adds a place and says that no further one is wanted.
	full := func(p place) bool {
		if state == jobpb.State_STATE_DEAD && uint64(p.instant) >= at.limit {
			return true
		}
		found = append(found, p)
		return len(found) == most
	}
	from := at.after.next()
	for _, p := range w.live()[w.search(from):] {
		if full(p) {
			return found, nil
		}
	}
	if w.complete {
		return found, nil
	}
	if from.compare(w.bound) < 0 {
		from = w.bound
	}
	stored, err := placesFrom(x.db, t.list(state), from)
	if err != nil {
		return nil, err
	}
	defer stored.close()
	set, removed := w.pending()
	m := merge{stored: stored, set: set, removed: removed}
	for {
		p, ok, err := m.next()
		if err != nil || !ok {
			return found, err
		}
		if p.compare(from) >= 0 && full(p) {
			return found, nil
		}
	}
}
