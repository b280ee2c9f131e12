package api

import (
	"fmt"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// batch is a request of many items. A request that is not the JSON asked for is
// refused as a whole; an item that breaks a limit fails alone.
type batch[T any] struct {
	Jobs list[T, batchLimit] `json:"jobs"`
}

func (b *batch[T]) check() error {
	return checkItems("jobs", len(b.Jobs.v))
}

func checkItems(field string, n int) error {
	if n == 0 || n > job.MaxBatch {
		return job.Invalid(field, "has %d items; it takes 1 to %d", n, job.MaxBatch)
	}
	return nil
}

func (s *server) addBatch(x *exchange) error {
	var q struct {
		batch[addRequest]
		Atomic opt[bool] `json:"atomic"`
	}
	if err := x.decode(maxBatchRequest, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	now := time.Now()
	items := q.Jobs.v
	if q.Atomic.v {
		return s.compose(x, nil, items)
	}
	return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
		return items[i].op(s.MaxBodyBytes, now)
	}, (*writer).added)
}

// changeMany handles POST /v1/<verb>.
func (s *server) changeMany(v verb) call {
	return func(x *exchange) error {
		var q batch[changeRequest]
		if err := x.decode(maxBatchRequest, &q); err != nil {
			return err
		}
		if err := q.check(); err != nil {
			return err
		}
		items := q.Jobs.v
		return s.each(x, len(items), func(i int) (*jobpb.Op, error) {
			return v.make(&items[i])
		}, (*writer).changed)
	}
}

// each makes n operations, applies those that could be made, and answers with
// one result an item, in order.
func (s *server) each(x *exchange, n int, op func(int) (*jobpb.Op, error), write func(*writer, *jobpb.Result)) error {
	ops := make([]*jobpb.Op, 0, n)
	refused := make(map[int]error)
	for i := range n {
		o, err := op(i)
		if err != nil {
			refused[i] = inItem("jobs", i, err)
			continue
		}
		ops = append(ops, o)
	}
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

// writeResults writes one result an item: its refusal, or the next of results.
func (s *server) writeResults(x *exchange, n int, refused map[int]error, results []*jobpb.Result, write func(*writer, *jobpb.Result)) {
	all := len(refused) == 0
	for _, r := range results {
		all = all && r.Code == jobpb.Code_OK
	}
	x.json.open()
	x.json.boolean("success", all)
	x.json.openList("results")
	for i := range n {
		x.json.open()
		err, bad := refused[i]
		if !bad {
			r := results[0]
			results = results[1:]
			if err = job.ResultError(r); err == nil {
				write(&x.json, r)
			}
		}
		if err != nil {
			x.json.failure(asError(err))
		}
		x.json.shut()
	}
	x.json.shutList()
	x.json.shut()
}

// inItem says which item an error is about.
func inItem(field string, i int, err error) error {
	e := *asError(err)
	item := fmt.Sprintf("%s[%d]", field, i)
	e.Message = item + ": " + e.Message
	if e.Field != "" {
		item += "." + e.Field
	}
	e.Field = item
	return &e
}

// under puts the name of a member, with a dot, in front of an error about what is in
// it.
func under(prefix string, err error) error {
	e := *asError(err)
	e.Message = prefix + e.Message
	if e.Field != "" {
		e.Field = prefix + e.Field
	}
	return &e
}
