package api

import "tarry/job/jobpb"

var eventNames = map[jobpb.Event_Kind]string{
	jobpb.Event_ADDED:     "added",
	jobpb.Event_RESERVED:  "reserved",
	jobpb.Event_RELEASED:  "released",
	jobpb.Event_TIMED_OUT: "timed_out",
	jobpb.Event_BURIED:    "buried",
	jobpb.Event_KICKED:    "kicked",
	jobpb.Event_UPDATED:   "updated",
	jobpb.Event_POSTPONED: "postponed",
	jobpb.Event_MOVED:     "moved",
	jobpb.Event_FINISHED:  "finished",
	jobpb.Event_DELETED:   "deleted",
	jobpb.Event_EXPIRED:   "expired",
}

// jobHistory handles GET /v1/jobs/{id}/history.
func (s *server) jobHistory(x *call) error {
	j, err := find(x, x.pathID, s.reads.Job)
	if err == nil {
		err = x.claim(int64(len(j.History)+1) * answerOverhead)
	}
	if err != nil {
		return err
	}
	x.json.success()
	x.json.text("id", j.Id)
	x.json.number("seq", j.Seq)
	x.json.text("topic", j.Topic)
	x.json.text("state", stateNames[j.State])
	objects(&x.json, "events", j.History, x.json.event)
	x.json.number("dropped", uint64(j.HistoryDropped))
	x.json.endObject()
	return nil
}

// event adds the fields of one event of a job's history.
func (w *writer) event(e *jobpb.Event) {
	w.timestamp("at", e.AtMs)
	w.text("event", eventNames[e.Kind])
	w.text("state", stateNames[e.State])
	if e.Kind != jobpb.Event_ADDED {
		w.number("attempt", uint64(e.Attempt))
	}
	w.timestamp("due_at", e.DueMs)
	w.textUnlessEmpty("consumer", e.Consumer)
	w.textUnlessEmpty("reason", e.Reason)
}
