package workload

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"tarry/chaos/history"
)

// The calls on a job that need no token. id is the job's id, name its name in the history.

func (c *caller) delete(ctx context.Context, id, name, topic string) (answer, history.Outcome) {
	return c.onJob(ctx, http.MethodDelete, id, "", history.Op{Kind: history.Delete, ID: name, Topic: topic})
}

func (c *caller) kickJob(ctx context.Context, id, name, topic string) (answer, history.Outcome) {
	return c.onJob(ctx, http.MethodPost, id, "/kick", history.Op{Kind: history.Kick, ID: name, Topic: topic})
}

// get reads a job. A job that does not exist has the state gone.
func (c *caller) get(ctx context.Context, id, name, topic string) (answer, history.Outcome) {
	return c.onJob(ctx, http.MethodGet, id, "", history.Op{Kind: history.Get, ID: name, Topic: topic})
}

func (c *caller) onJob(ctx context.Context, method, id, suffix string, op history.Op) (answer, history.Outcome) {
	return c.recorded(ctx, method, "/v1/jobs/"+url.PathEscape(id)+suffix, nil, op)
}

// recorded makes a call on one job and records it. One whose content depends on the instant of
// its beginning has it in op.
func (c *caller) recorded(ctx context.Context, method, path string, body any, op history.Op) (answer, history.Outcome) {
	op.Client, op.Node, op.Invoke = c.id, c.node(), cmp.Or(op.Invoke, c.rec.Now())
	a, outcome := c.call(ctx, method, path, body, c.patience)
	op.Outcome, op.Code, op.Complete = outcome, a.Code, c.rec.Now()
	if outcome == history.OK {
		op.Seq, op.Revision = a.Seq, a.Revision
	}
	if op.Kind == history.Get {
		op.State, op.Attempts, op.Body, op.Reason = a.State, a.Attempts, a.Body, a.LastError
		if outcome == history.Fail && a.Code == "not_found" {
			op.Outcome, op.Code, op.State = history.OK, "", history.Gone
		}
	}
	c.rec.Record(op)
	return a, outcome
}

// kickTopic makes dead jobs of a topic ready.
func (c *caller) kickTopic(ctx context.Context, topic string, most int) {
	node, invoke := c.node(), c.rec.Now()
	_, outcome := c.call(ctx, http.MethodPost, "/v1/topics/"+url.PathEscape(topic)+"/kick", map[string]int{"max": most}, callTimeout)
	c.rec.Record(history.Op{Kind: history.KickTopic, Outcome: outcome, Client: c.id, Node: node, Topic: topic, Invoke: invoke, Complete: c.rec.Now()})
}
