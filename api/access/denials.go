package access

import (
	"context"

	"tarry/api/audit"
	"tarry/auth"
)

// denial is one kind of denial.
type denial struct {
	why      auth.Denial
	verbs    auth.Verbs
	reported bool // it was done all the same
}

// denied is how often a call was denied in the same way.
type denied struct {
	denial
	topic string // the first one
	times int
}

// denials are those of one call. Each kind is recorded once, so that a batch writes no more to the
// audit log than a call does.
type denials []denied

func (all *denials) add(d denial, topic string) {
	for i := range *all {
		if (*all)[i].denial == d {
			(*all)[i].times++
			return
		}
	}
	*all = append(*all, denied{d, topic, 1})
}

// count counts and records the denials of a call.
func (c *Checks) count(ctx context.Context, all denials) {
	for _, d := range all {
		c.record(ctx, d)
	}
}

func (c *Checks) record(ctx context.Context, d denied) {
	r, _ := ctx.Value(requestKey{}).(*Request)
	if r.seen(d.verbs, d.reported) {
		return
	}
	c.denied.WithLabelValues(d.verbs.String(), d.why.String()).Add(float64(d.times))
	if c.audit == nil || r == nil {
		return
	}
	record := r.record(audit.Denied, d.verbs)
	if d.reported {
		record.Outcome = audit.Reported
	}
	record.Reason = d.why.String()
	if d.topic != "" {
		record.Resource = "topic " + d.topic
	}
	if d.times > 1 {
		record.Times = d.times
	}
	c.audit.Add(record)
}
