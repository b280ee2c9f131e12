package api

import (
	"context"
	"strings"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

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
		Cause: strings.ToLower(c.Kind.String()), Late: wire.SecondsOf(max(c.LateMs, 0)), Until: wire.Time(c.UntilMs), At: wire.Time(c.AtMs), Count: c.Count, Text: c.Text,
	}
}
