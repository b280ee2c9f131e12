package api

import (
	"context"
	"strings"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// explainJob handles GET /v1/jobs/{id}/explain.
func (s *server) explainJob(x *call) error {
	e, err := find(x, x.pathID, s.explanation)
	if err == nil {
		err = x.claim(int64(e.SizeVT()) + answerOverhead)
	}
	if err != nil {
		return err
	}
	x.json.success()
	x.json.text("id", e.Id)
	x.json.number("seq", e.Seq)
	x.json.text("topic", e.Topic)
	x.json.text("state", stateNames[e.State])
	x.json.timestamp("due_at", e.DueMs)
	x.json.seconds("late", e.LateMs)
	x.json.text("text", e.Text)
	objects(&x.json, "causes", e.Causes, x.json.cause)
	x.json.endObject()
	return nil
}

func (s *server) explanation(ctx context.Context, id string, stale bool) (*jobpb.Explanation, error) {
	explain := &jobpb.Explain{Id: id, NowMs: time.Now().UnixMilli()}
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Explain{Explain: explain}}, stale)
	if err == nil && a.GetExplanation() == nil {
		err = job.NoSuchJob(id)
	}
	return a.GetExplanation(), err
}

// cause adds the fields of one cause.
func (w *writer) cause(c *jobpb.Cause) {
	w.text("cause", strings.ToLower(c.Kind.String()))
	if c.LateMs > 0 {
		w.seconds("late", c.LateMs)
	}
	w.timestamp("until", c.UntilMs)
	w.timestamp("at", c.AtMs)
	w.numberUnlessZero("count", c.Count)
	w.text("text", c.Text)
}
