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
