package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// finishes are those of one reserve, and what became of them.
type finishes struct {
	n       int // as many as the client gave
	ops     []*jobpb.Finish
	refused map[int]error // those that are in no op, by their place
	results []*jobpb.Result
}

// finishesOf makes the operations. An error is about the whole call.
func finishesOf(items []wire.FinishItem) (*finishes, error) {
	f := &finishes{n: len(items), refused: map[int]error{}}
	for i := range items {
		op, err := verbFinish.make(&wire.ChangeItem{ID: items[i].ID, Token: items[i].Token})
		if err == nil {
			err = check(op)
		}
		switch {
		case err == nil:
			f.ops = append(f.ops, op.GetFinish())
		case job.CodeOf(err) == job.CodeInvalid:
			return nil, job.InItem("finish", i, err)
		default:
			f.refused[i] = job.InItem("finish", i, err)
		}
	}
	return f, nil
}

// finishAndReserve finishes jobs and reserves others. Once the finishes are applied the call
// succeeds, so that their results are never lost: if the reserve fails then, it has found
// nothing, and the client's next one will fail.
func (s *server) finishAndReserve(x *call, f *finishes, r *jobpb.Reserve, wait time.Duration) error {
	jobs, err := s.finishFirst(x, f, r, wait > 0)
	if err != nil {
		return err
	}
	if len(jobs) == 0 && !s.Draining() && (wait > 0 || len(f.ops) == 0) {
		if jobs, err = s.await(x, r, wait); err != nil && len(f.ops) == 0 {
			return err
		}
	}
	if err := s.hold(x, jobs); err != nil {
		jobs = nil
	}
	return s.sendJobs(x, jobs, func(jobs []*jobpb.Reserved) {
		x.json.beginObject()
		s.resultList(x, "finished", f.n, f.refused, f.results, (*writer).changed)
		objects(&x.json, "jobs", jobs, x.json.reserved)
		x.json.endObject()
	})
}

// finishFirst applies the finishes, and reserves in the same entry. A node that drains
// hands out nothing more.
func (s *server) finishFirst(x *call, f *finishes, r *jobpb.Reserve, waits bool) (jobs []*jobpb.Reserved, err error) {
	switch {
	case len(f.ops) == 0:
		return nil, nil
	case s.Draining():
		ops := make([]*jobpb.Op, len(f.ops))
		for i, op := range f.ops {
			ops[i] = &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: op}}
		}
		f.results, err = s.do(x, ops)
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	f.results, jobs, err = s.Queue.FinishAndReserve(ctx, f.ops, r, waits)
	return jobs, err
}
