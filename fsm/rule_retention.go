package fsm

import (
	"cmp"

	"tarry/fsm/internal/record"
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
func (x *tx) endJob(t *topic, rec *record.Job, from record.List, as jobpb.Event_Kind, reason string) error {
	keep := t.retention()
	if keep == 0 {
		return x.erase(t, rec, from)
	}
	how := record.PhaseDeleted
	if as == jobpb.Event_FINISHED {
		how = record.PhaseFinished
	}
	err := x.move(t, rec, from, record.ListEnded, func(s *record.Status) {
		until := x.clock() + keep + retentionStepMS - 1
		s.SetEnded(how, x.clock(), until-until%retentionStepMS)
		x.recordEvent(t, rec, as, record.ListEnded, s.Attempts, reason)
	})
	// Two for each job that ends, so that a topic above a lowered maximum comes down to it.
	for n := 0; n < 2 && err == nil && t.Counts[record.ListEnded] > x.maxRetained(t); n++ {
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
	p, ok, err := x.head(t, record.ListEnded)
	if err != nil || !ok {
		return err
	}
	return x.dropRetained(t, p.Seq)
}

// dropRetained ends the retention of a job.
func (x *tx) dropRetained(t *topic, seq uint64) error {
	rec, err := x.jobIn(t, record.ListEnded, seq, false)
	if err != nil {
		return err
	}
	return x.erase(t, rec, record.ListEnded)
}
