package workload

import (
	"context"
	"net/http"

	"tarry/chaos/history"
)

// bulkProducer adds jobs in batches, faster than consumers over beanstalkd's protocol,
// which reserve them one by one, could finish them.
type bulkProducer struct{ *producer }

func newBulkProducer(id int, c Config) client { return bulkProducer{makeProducer(id, c, c.Topics)} }

// The sizes of batches, and the factor of the pause between them.
const (
	minBatch  = 2
	maxBatch  = 200
	bulkThink = 15
)

func (p bulkProducer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, bulkThink) {
		p.addBatch(ctx)
	}
}

// addBatch adds some jobs in one call; those without an acknowledgement are then
// retried one by one.
func (p bulkProducer) addBatch(ctx context.Context) {
	var request struct {
		Jobs []*newJob `json:"jobs"`
	}
	for range minBatch + p.rand.IntN(maxBatch-minBatch) {
		request.Jobs = append(request.Jobs, p.make())
	}
	node, invoke := p.node(), p.rec.Now()
	a, whole := p.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/jobs/batch", &request, callTimeout)
	complete := p.rec.Now()
	var again []*newJob
	for i, j := range request.Jobs {
		var item answer
		if i < len(a.Results) {
			item = a.Results[i]
		}
		outcome := itemOutcome(whole, item)
		op := p.addOp(j, item, outcome, node, invoke)
		op.Complete = complete
		p.rec.Record(op)
		if outcome != history.OK {
			again = append(again, j)
		}
	}
	for _, j := range again {
		if !p.add(ctx, j) {
			return
		}
	}
}

// item is a job with its token in a list.
type item struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

// finish finishes jobs in one call and then, one by one, those whose outcome is unknown or
// that it did not reach.
func (c *caller) finish(ctx context.Context, jobs []delivered) {
	var batch struct {
		Jobs []item `json:"jobs"`
	}
	if len(jobs) == 0 {
		return
	}
	for _, j := range jobs {
		batch.Jobs = append(batch.Jobs, item{j.ID, j.Token})
	}
	node, invoke := c.node(), c.rec.Now()
	a, whole := c.call(ctx, http.MethodPost, "/v1/finish", &batch, callTimeout)
	complete := c.rec.Now()
	for i, j := range jobs {
		var one answer
		if i < len(a.Results) {
			one = a.Results[i]
		}
		op := reservationOp(history.Finish, itemOutcome(whole, one), j)
		op.Client, op.Node, op.Invoke, op.Complete, op.Code = c.id, node, invoke, complete, one.Code
		c.rec.Record(op)
		if op.Outcome == history.Unknown || whole == history.Fail {
			c.repeat(ctx, history.Finish, j, request{})
		}
	}
}
