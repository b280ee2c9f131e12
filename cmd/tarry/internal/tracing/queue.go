package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"tarry/api"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/push"
)

// Queue is what the API, the beanstalkd protocol and push use of a node.
type Queue interface {
	api.Queue
	push.Queue
}

// Queue returns q with spans of its operations. Operations may be changed until Do returns:
// an add gets the context of its span.
func (t *Tracer) Queue(q Queue) Queue { return &queue{q, t} }

type queue struct {
	Queue
	t *Tracer
}

// opened is a span that waits for the result of its operation.
type opened struct {
	span trace.Span
	op   int // its place in the call
	part int // of an atomic add, the place of the add; else -1
}

// settled is the end of a reservation, or of a job.
type settled struct {
	operation string
	ref       *jobpb.Ref
	op        int
}

// Do implements Queue.
func (q *queue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	var spans []opened
	var ends []settled
	for i, op := range ops {
		switch k := op.Kind.(type) {
		case *jobpb.Op_Add:
			spans = append(spans, opened{q.t.add(k.Add), i, -1})
		case *jobpb.Op_AtomicAdd:
			for j, add := range k.AtomicAdd.Adds {
				spans = append(spans, opened{q.t.add(add), i, j})
			}
			if f := k.AtomicAdd.Finish; f != nil {
				ends = append(ends, settled{"finish", f.Ref, i})
			}
		case *jobpb.Op_Finish:
			ends = append(ends, settled{"finish", k.Finish.Ref, i})
		case *jobpb.Op_Release:
			ends = append(ends, settled{"release", k.Release.Ref, i})
		case *jobpb.Op_Bury:
			ends = append(ends, settled{"bury", k.Bury.Ref, i})
		case *jobpb.Op_Delete:
			ends = append(ends, settled{"delete", k.Delete.Ref, i})
		}
	}
	spans = append(spans, q.settle(ctx, ends)...)
	results, err := q.Queue.Do(ctx, ops)
	q.end(spans, ends, results, err)
	return results, err
}

// Reserve implements Queue.
func (q *queue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	began := time.Now()
	jobs, err := q.Queue.Reserve(ctx, r, wait)
	q.deliver(jobs, r, began)
	return jobs, err
}

// FinishAndReserve implements Queue.
func (q *queue) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	began := time.Now()
	ends := make([]settled, len(finishes))
	for i, f := range finishes {
		ends[i] = settled{"finish", f.Ref, i}
	}
	spans := q.settle(ctx, ends)
	results, jobs, err := q.Queue.FinishAndReserve(ctx, finishes, r, waits)
	q.end(spans, ends, results, err)
	q.deliver(jobs, r, began)
	return results, jobs, err
}

// DeleteAndReserve implements Queue.
func (q *queue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	began := time.Now()
	ends := []settled{{"delete", d.Ref, 0}}
	spans := q.settle(ctx, ends)
	result, jobs, err := q.Queue.DeleteAndReserve(ctx, d, r)
	var results []*jobpb.Result
	if err == nil {
		results = []*jobpb.Result{result}
	}
	q.end(spans, ends, results, err)
	q.deliver(jobs, r, began)
	return result, jobs, err
}

func (q *queue) deliver(jobs []*jobpb.Reserved, r *jobpb.Reserve, began time.Time) {
	now := time.Now()
	for _, j := range jobs {
		q.t.deliver(j, r.Consumer, began, now)
	}
}

// settle starts the spans of ends.
func (q *queue) settle(ctx context.Context, ends []settled) []opened {
	var spans []opened
	for i, of := range q.origins(ctx, ends) {
		if span := q.t.settle(ends[i].operation, of); span != nil {
			spans = append(spans, opened{span, ends[i].op, -1})
		}
	}
	return spans
}

// end ends the spans of a call, and forgets the reservations that it has ended.
func (q *queue) end(spans []opened, ends []settled, results []*jobpb.Result, err error) {
	for _, s := range spans {
		var r *jobpb.Result
		if s.op < len(results) {
			r = results[s.op]
			if parts := r.GetDetails().GetParts(); s.part >= 0 && s.part < len(parts) {
				r = parts[s.part]
			}
		}
		end(s.span, r, err)
	}
	for _, e := range ends {
		if e.op >= len(results) {
			return // the call failed
		}
		if r := results[e.op]; r.Code == jobpb.Code_OK {
			q.t.reserved.drop(max(r.Seq, e.ref.GetSeq()), e.ref.GetGeneration())
		}
	}
}

// origins returns what is known of the jobs that ends are about, in their order. Jobs that this
// node did not deliver are read from its own state, all at once. It may be behind: then
// they have no span.
func (q *queue) origins(ctx context.Context, ends []settled) []origin {
	known := make([]origin, len(ends))
	var ids []string
	var places []int
	for i, e := range ends {
		of, found := q.t.reserved.get(e.ref.GetSeq(), e.ref.GetGeneration())
		switch {
		case found:
			known[i] = of
		case e.ref.GetId() != "":
			ids, places = append(ids, e.ref.Id), append(places, i)
		case len(ends) == 1: // of a beanstalkd client; many would be as many reads
			known[i] = originOf(job.Reads{Reader: q.Queue}.JobBySeq(ctx, e.ref.GetSeq(), true))
		}
	}
	if len(ids) == 0 {
		return known
	}
	jobs, err := job.Reads{Reader: q.Queue}.JobsByID(ctx, ids, false, true)
	for i, j := range jobs {
		known[places[i]] = originOf(j, err)
	}
	return known
}

func originOf(j *jobpb.Job, err error) origin {
	if err != nil || j.GetSeq() == 0 {
		return origin{}
	}
	return origin{parent: contextOf(j.Options), id: j.Id, topic: j.Topic}
}
