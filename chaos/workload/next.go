package workload

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"tarry/chaos/history"
)

// finished is a member of two replies: how many jobs of a topic were finished, and the
// results of the finishes of a reserve.
type finished struct {
	count   uint64
	results []answer
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *finished) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &f.results)
	}
	return json.Unmarshal(data, &f.count)
}

// finishAndReserve finishes jobs and reserves others in one call. Finishes whose outcome is
// unknown, or that the call did not reach, are then made one by one.
func (c *caller) finishAndReserve(ctx context.Context, done []delivered, next reserveRequest, patience time.Duration) ([]delivered, history.Outcome) {
	for _, j := range done {
		next.Finish = append(next.Finish, item{j.ID, j.Token})
	}
	node, invoke := c.node(), c.rec.Now()
	a, whole := c.call(ctx, http.MethodPost, "/v1/reserve", next, patience)
	complete := c.rec.Now()
	if whole != history.OK {
		c.rec.Record(history.Op{Kind: history.Deliver, Outcome: whole, Topics: strings.Join(next.Topics, " "), Client: c.id, Node: node, Invoke: invoke, Complete: complete})
	}
	c.brought(a.Jobs, whole, next, history.Op{Client: c.id, Node: node, Invoke: invoke, Complete: complete})
	var again []delivered
	for i, j := range done {
		var one answer
		if i < len(a.Finished.results) {
			one = a.Finished.results[i]
		}
		op := reservationOp(history.Finish, itemOutcome(whole, one), j)
		op.Client, op.Node, op.Invoke, op.Complete, op.Code = c.id, node, invoke, complete, one.Code
		c.rec.Record(op)
		if op.Outcome == history.Unknown || whole == history.Fail {
			again = append(again, j)
		}
	}
	for _, j := range again {
		c.repeat(context.WithoutCancel(ctx), history.Finish, j, request{})
	}
	return a.Jobs, whole
}
