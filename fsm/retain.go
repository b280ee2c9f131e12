package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// retentionStepMS is what the ends of retentions are rounded up to, so that a busy
// topic needs an Advance a second and not one for each job.
const retentionStepMS = 1000

// retention is how long the topic keeps finished and deleted jobs; 0: not at all.
func (t *topic) retention() int64 { return t.settings.GetRetainMs() }

// end is the end of a job that is in the state from: it goes, or its topic retains
// it. as says how: it was finished, deleted, or expired.
//
// The end of the retention is fixed here: when the setting changes, those that
// are retained already stay for as long as it was.
func (x *tx) end(t *topic, rec *record, from jobpb.State, as jobpb.Event_Kind, reason string) error {
	keep := t.retention()
	if keep == 0 {
		return x.erase(t, rec, from)
	}
	how, to := deleted, jobpb.State_STATE_DELETED
	if as == jobpb.Event_FINISHED {
		how, to = finished, jobpb.State_STATE_FINISHED
	}
	err := x.move(t, rec, from, stateEnded, func(f *fate) {
		until := x.clock() + keep + retentionStepMS - 1
		f.standing, f.rank, f.diedMS = how, 0, x.clock()
		f.reservedUntil = until - until%retentionStepMS
		x.note(t, rec, as, to, f.attempts, reason)
	})
	if err != nil || t.counts[stateEnded] <= x.limits().MaxRetained {
		return err
	}
	return x.forgetFirst(t)
}

// forgetFirst forgets the job of a topic whose retention ends first.
func (x *tx) forgetFirst(t *topic) error {
	p, ok, err := x.head(t, stateEnded)
	if err != nil || !ok {
		return err
	}
	return x.forget(t, p.seq)
}

// forget ends the retention of a job.
func (x *tx) forget(t *topic, seq uint64) error {
	rec, err := x.job(seq, false)
	if err != nil {
		return err
	}
	if rec == nil {
		return missing(seq, t, stateEnded)
	}
	return x.erase(t, rec, stateEnded)
}

// endedWords says how and when a job ended.
func (rec *record) endedWords() string {
	word := "finished"
	if rec.standing == deleted {
		word = "deleted"
	}
	return word + " at " + job.Instant(rec.diedMS)
}

// endedNote is what is added to the refusal of an add whose id a retained job has.
func (rec *record) endedNote() string {
	if !rec.standing.ended() {
		return ""
	}
	return ", which was " + rec.endedWords() + " and is retained"
}
