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

// endJob ends a job that is in the list from: it goes, or its topic retains
// it. as says how: it was finished, deleted, or expired.
//
// The end of the retention is fixed here: when the setting changes, those that
// are retained already stay for as long as it was.
func (x *tx) endJob(t *topic, rec *record, from listKind, as jobpb.Event_Kind, reason string) error {
	keep := t.retention()
	if keep == 0 {
		return x.erase(t, rec, from)
	}
	how := phaseDeleted
	if as == jobpb.Event_FINISHED {
		how = phaseFinished
	}
	err := x.move(t, rec, from, listEnded, func(s *jobStatus) {
		until := x.clock() + keep + retentionStepMS - 1
		s.setEnded(how, x.clock(), until-until%retentionStepMS)
		x.recordEvent(t, rec, as, listEnded, s.attempts, reason)
	})
	if err != nil || t.counts[listEnded] <= x.limits().MaxRetained {
		return err
	}
	return x.dropFirstRetained(t)
}

// dropFirstRetained drops the job of a topic whose retention ends first.
func (x *tx) dropFirstRetained(t *topic) error {
	p, ok, err := x.head(t, listEnded)
	if err != nil || !ok {
		return err
	}
	return x.dropRetained(t, p.seq)
}

// dropRetained ends the retention of a job.
func (x *tx) dropRetained(t *topic, seq uint64) error {
	rec, err := x.jobIn(t, listEnded, seq, false)
	if err != nil {
		return err
	}
	return x.erase(t, rec, listEnded)
}

// endedWords says how and when a job ended.
func (rec *record) endedWords() string {
	word := "finished"
	if rec.status.phase == phaseDeleted {
		word = "deleted"
	}
	return word + " at " + job.Instant(rec.status.endedMS())
}

// endedNote is what is added to the refusal of an add whose id a retained job has.
func (rec *record) endedNote() string {
	if !rec.status.phase.ended() {
		return ""
	}
	return ", which was " + rec.endedWords() + " and is retained"
}
