package fsm

import (
	"cmp"

	"tarry/job"
	"tarry/job/jobpb"
)

// retentionStepMS is the unit to which ends of retentions are rounded up, so that a busy
// topic needs an Advance per second and not per job.
const retentionStepMS = 1000

// retention returns how long the topic retains finished and deleted jobs; 0: not at all.
func (t *topic) retention() int64 { return t.settings.GetRetainMs() }

// endJob ends a job of the list from: it is erased, or retained. as is FINISHED, DELETED
// or EXPIRED.
//
// The end of the retention is fixed here: a later change of the setting does not move it.
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
	// Two for each job that ends, so that a topic above a lowered maximum comes down to it.
	for n := 0; n < 2 && err == nil && t.counts[listEnded] > x.maxRetained(t); n++ {
		err = x.dropFirstRetained(t)
	}
	return err
}

// maxRetained returns how many jobs a topic retains at most.
func (x *tx) maxRetained(t *topic) uint64 {
	return cmp.Or(t.settings.GetRetainMax(), x.limits().MaxRetained)
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

// endedWords describes how and when a job ended.
func (rec *record) endedWords() string {
	word := "finished"
	if rec.status.phase == phaseDeleted {
		word = "deleted"
	}
	return word + " at " + job.Instant(rec.status.endedMS())
}

// endedNote returns what to add to the refusal of an add whose id a retained job has.
func (rec *record) endedNote() string {
	if !rec.status.phase.ended() {
		return ""
	}
	return ", which was " + rec.endedWords() + " and is retained"
}
