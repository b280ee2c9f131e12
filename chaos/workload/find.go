package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"tarry/chaos/history"
)

// groupHeader is a header by which the topics of producers index their jobs, and
// otherHeader one that they sometimes index too.
const (
	groupHeader = "group"
	otherHeader = "other"
	groupSize   = 8 // jobs
)

// group gives a new job the header of the producer's present group. Its jobs are in all of
// the producer's topics.
func (p *producer) group(j *newJob) {
	if p.made%groupSize == 0 {
		p.grouped = p.grouped[:0]
	}
	j.Headers = map[string]string{groupHeader: fmt.Sprintf("%s-p%d-%d", p.config.Name, p.id, p.made/groupSize), otherHeader: "all"}
}

// find reads the group by its header. To each of its jobs this is a read of its own: the
// page is the state at one time, so what it lacks was gone.
func (p *producer) find(ctx context.Context) {
	if len(p.grouped) == 0 {
		return
	}
	query := url.Values{"header." + groupHeader: {p.grouped[0].Headers[groupHeader]}, "max": {"1000"}, "body": {"true"}}
	node, invoke := p.node(), p.rec.Now()
	a, outcome := p.call(ctx, http.MethodGet, "/v1/jobs?"+query.Encode(), nil, p.patience)
	complete := p.rec.Now()
	if outcome != history.OK {
		return
	}
	read := func(id, topic string) history.Op {
		return history.Op{Kind: history.Get, Client: p.caller.id, Node: node, Invoke: invoke, Complete: complete, ID: id, Topic: topic}
	}
	for _, j := range a.Jobs {
		op := read(j.name(), j.Topic)
		op.Seq, op.Revision, op.State, op.Attempts, op.Body, op.Reason = j.Seq, j.Revision, j.State, j.Attempts, j.Body, j.LastError
		p.rec.Record(op)
	}
	if a.Incomplete || a.Next != "" {
		return // what is missing may be there
	}
	for _, j := range p.grouped {
		if !slices.ContainsFunc(a.Jobs, func(found delivered) bool { return found.ID == j.ID }) {
			op := read(j.ID, j.Topic)
			op.State = history.Gone
			p.rec.Record(op)
		}
	}
}

// reindex lets a topic index another header, too, or no longer: the jobs that it has are
// gone through meanwhile.
func (p *producer) reindex(ctx context.Context, topic string) {
	p.index(ctx, topic, [][]string{{groupHeader}, {groupHeader, otherHeader}}[p.rand.IntN(2)])
}

func (c *caller) index(ctx context.Context, topic string, headers []string) history.Outcome {
	_, outcome := c.call(ctx, http.MethodPatch, "/v1/topics/"+url.PathEscape(topic)+"/settings", map[string]any{"index_headers": headers}, callTimeout)
	return outcome
}
