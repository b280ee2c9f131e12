package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

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
