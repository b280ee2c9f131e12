package api

import (
	"tarry/api/wire"
	"tarry/job/jobpb"
)

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
func (s *server) jobHistory(x *call) (r wire.History, err error) {
	j, err := find(x, x.pathID, s.reads.Job)
	if err == nil {
		err = x.claim(int64(len(j.History)+1) * answerOverhead)
	}
	if err != nil {
		return r, err
	}
	return wire.History{
		ID: j.Id, Seq: j.Seq, Topic: j.Topic, State: stateNames[j.State], Events: each(j.History, eventShown), Dropped: uint64(j.HistoryDropped),
	}, nil
}

func eventShown(e *jobpb.Event) wire.Event {
	shown := wire.Event{
		At: wire.Time(e.AtMs), Event: eventNames[e.Kind], State: stateNames[e.State], DueAt: wire.Time(e.DueMs), Consumer: e.Consumer, Reason: e.Reason,
	}
	if e.Kind != jobpb.Event_ADDED {
		shown.Attempt = new(uint64(e.Attempt))
	}
	return shown
}
