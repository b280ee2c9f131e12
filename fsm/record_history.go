package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// recordEvent adds an event to a job's history, if its topic keeps one. The status must be
// as after the change; to is the job's list then. The caller saves the status.
func (x *tx) recordEvent(t *topic, rec *record.Job, kind jobpb.Event_Kind, to record.List, attempt uint32, text string) {
	if t.retention() == 0 {
		return
	}
	e := &jobpb.Event{Kind: kind, AtMs: x.clock(), State: rec.State(to), Attempt: attempt}
	if rec.Status.Phase == record.PhaseWaiting {
		e.DueMs = rec.Status.DueMS
	}
	rec.Status.History = record.AddEvent(rec.Status.History, rec.Spec.CreatedMS, e, record.Cut(text, job.MaxHistoryText))
}
