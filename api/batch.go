package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

func (s *server) addBatch(x *call) error {
	var q wire.AddBatch
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.Check(); err != nil {
		return err
	}
	if len(x.r.Header.Values(keyHeader)) > 0 {
		return job.Invalid(keyHeader, "is for one job; give each of a batch an id")
	}
	now := time.Now()
	items := q.Jobs.V
	x.trace(items)
	if q.Atomic.V {
		return s.atomicAdd(x, nil, items)
	}
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		return s.addOp(&items[i], now)
	}, (*writer).added)
}

// changeMany handles POST /v1/<verb>.
func changeMany(v verb) func(*server, *call) error {
	return func(s *server, x *call) error {
		var q wire.Batch[wire.ChangeItem]
		if err := x.decode(maxBatchRequest, &q); err != nil {
			return err
		}
		if err := q.Check(); err != nil {
			return err
		}
		items := q.Jobs.V
		return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
			return v.make(&items[i])
		}, (*writer).changed)
	}
}

// updateMany handles POST /v1/update.
func (s *server) updateMany(x *call) error {
	var q wire.Batch[wire.UpdateItem]
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.Check(); err != nil {
		return err
	}
	now, items := time.Now(), q.Jobs.V
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		if err := job.CheckRefID("id", items[i].ID.V); err != nil {
			return nil, err
		}
		return s.updateOp(&items[i].UpdateRequest, &jobpb.Ref{Id: items[i].ID.V}, now)
	}, (*writer).changed)
}

// each makes n operations, applies the valid ones, and responds with one result per item,
// in order.
func (s *server) each(x *call, n int, op func(int) (*jobpb.Op, error), write func(*writer, *jobpb.Result)) error {
	ops := make([]*jobpb.Op, 0, n)
	refused := make(map[int]error)
	for i := range n {
		o, err := op(i)
		if err == nil {
			err = check(o)
		}
		if err != nil {
			refused[i] = job.InItem("jobs", i, err)
			continue
		}
		ops = append(ops, o)
	}
	x.about(func() string { return resourceOfOps(ops) })
	var results []*jobpb.Result
	if len(ops) > 0 {
		var err error
		if results, err = s.do(x, ops); err != nil {
			return err
		}
	}
	s.writeResults(x, n, refused, results, write)
	return nil
}

// writeResults writes one result per item: its error, or the next of results.
func (s *server) writeResults(x *call, n int, refused map[int]error, results []*jobpb.Result, write func(*writer, *jobpb.Result)) {
	x.json.beginObject()
	s.resultList(x, "results", n, refused, results, write)
	x.json.endObject()
}

// resultList adds success and the list of results.
func (s *server) resultList(x *call, name string, n int, refused map[int]error, results []*jobpb.Result, write func(*writer, *jobpb.Result)) {
	all := len(refused) == 0
	for _, r := range results {
		all = all && r.Code == jobpb.Code_OK
	}
	x.json.boolean("success", all)
	x.json.beginList(name)
	for i := range n {
		x.json.beginObject()
		err, bad := refused[i]
		if !bad {
			r := results[0]
			results = results[1:]
			if err = job.ResultError(r); err == nil {
				write(&x.json, r)
			} else if r.GetDetails().GetField() != "" {
				err = job.InItem("jobs", i, err)
			}
		}
		if err != nil {
			x.json.failure(asError(err))
		}
		x.json.endObject()
	}
	x.json.endList()
}

// atomicAdd adds jobs atomically, and with a finish also finishes that job. The response has
// one result for each added job.
func (s *server) atomicAdd(x *call, finish *jobpb.Finish, items []wire.AddRequest) error {
	field := "jobs"
	if finish != nil {
		field = "then"
	}
	op, now := &jobpb.AtomicAdd{Finish: finish}, time.Now()
	for i := range items {
		add, err := s.addOp(&items[i], now)
		if err != nil {
			return job.InItem(field, i, err)
		}
		op.Adds = append(op.Adds, add.GetAdd())
	}
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: op}})
	if err != nil {
		return err
	}
	parts := r.GetDetails().GetParts()
	if len(parts) != len(items) {
		return job.Errorf(job.CodeInternal, "%d jobs gave %d results", len(items), len(parts))
	}
	s.writeResults(x, len(items), nil, parts, (*writer).added)
	return nil
}

// finish handles POST /v1/jobs/{id}/finish.
func (s *server) finish(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	var q wire.FinishBody
	if err := x.decodeOptional(maxBatchRequest, &q); err != nil {
		return err
	}
	op, err := verbFinish.inPath(&q.ChangeItem, id)
	if err != nil {
		return err
	}
	if q.Then.Set {
		x.trace(q.Then.V)
		return s.atomicAdd(x, op.GetFinish(), q.Then.V)
	}
	r, err := s.finishOne(x, op)
	if err != nil {
		return err
	}
	x.json.beginObject()
	x.json.changed(r)
	x.json.endObject()
	return nil
}

// importJobs handles POST /v1/import.
func (s *server) importJobs(x *call) error {
	var q wire.Batch[wire.ImportItem]
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.Check(); err != nil {
		return err
	}
	now, items := time.Now(), q.Jobs.V
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		return s.importOp(&items[i], now)
	}, (*writer).added)
}

func (s *server) importOp(q *wire.ImportItem, now time.Time) (*jobpb.Op, error) {
	if !q.DueAt.Set {
		return nil, job.Invalid("due_at", "is missing; an imported job keeps its due time")
	}
	made := &jobpb.ImportJob{DelayMs: job.MillisOf(q.Delay.V), Reason: q.Reason.V, LastError: q.LastError.V}
	switch q.State.V {
	case "", "delayed", "ready": // which of the two depends on the due time
	case "dead":
		made.Dead = true
	default:
		return nil, job.Invalid("state", "is %.40q; it takes delayed, ready and dead", q.State.V)
	}
	q.Delay = wire.Opt[float64]{} // not that of an add
	var err error
	if made.Add, err = s.jobOf(&q.NewJob, now); err != nil {
		return nil, err
	}
	made.Add.TopicTtr, made.Add.TopicAttempts = false, false
	if err := q.SetPast(made, now); err != nil {
		return nil, err
	}
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: made}}, nil
}
