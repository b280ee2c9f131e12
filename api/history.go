package api

import (
	"context"
	"strings"
	"time"

	"tarry/api/wire"
	"tarry/job"
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

// explainJob handles GET /v1/jobs/{id}/explain.
func (s *server) explainJob(x *call) (r wire.Explanation, err error) {
	e, err := find(x, x.pathID, s.explanation)
	if err == nil {
		err = x.claim(int64(e.SizeVT()) + answerOverhead)
	}
	if err != nil {
		return r, err
	}
	return wire.Explanation{
		ID: e.Id, Seq: e.Seq, Topic: e.Topic, State: stateNames[e.State], DueAt: wire.Time(e.DueMs), Late: wire.SecondsOf(e.LateMs), Text: e.Text,
		Causes: each(e.Causes, causeShown),
	}, nil
}

func (s *server) explanation(ctx context.Context, id string, stale bool) (*jobpb.Explanation, error) {
	explain := &jobpb.Explain{Id: id, NowMs: time.Now().UnixMilli()}
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Explain{Explain: explain}}, stale)
	if err == nil && a.GetExplanation() == nil {
		err = job.NoSuchJob(id)
	}
	return a.GetExplanation(), err
}

func causeShown(c *jobpb.Cause) wire.Cause {
	return wire.Cause{
		Cause: strings.ToLower(c.Kind.String()), Late: wire.SecondsOf(max(c.LateMs, 0)), Until: wire.Time(c.UntilMs), At: wire.Time(c.AtMs), Count: c.Count,
		Consumer: c.Consumer, Reason: c.Reason, Then: c.Then, Text: c.Text,
	}
}
