package api

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// compose adds jobs all or nothing, and with a finish ends that job in the same
// step. The answer has one result for each job that was added.
func (s *server) compose(x *exchange, finish *jobpb.Finish, items []addRequest) error {
	field := "jobs"
	if finish != nil {
		field = "then"
	}
	op := &jobpb.Compose{Finish: finish}
	bodies, now := 0, time.Now()
	for i := range items {
		made, err := items[i].op(s.MaxBodyBytes, now)
		if err != nil {
			return inItem(field, i, err)
		}
		add := made.GetAdd()
		if add.IfExists > jobpb.IfExists_IF_EXISTS_KEEP {
			return inItem(field, i, job.Invalid("if_exists", "must be conflict or keep in a request that is done as a whole"))
		}
		if bodies += len(add.Body); bodies > job.MaxComposeBytes {
			return inItem(field, i, job.Errorf(job.CodeTooLarge, "the bodies have more than %d bytes together, which is the limit of a request that is done as a whole", job.MaxComposeBytes).In("body"))
		}
		op.Adds = append(op.Adds, add)
	}
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_Compose{Compose: op}})
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

// finishRequest ends a job, and may add others in the same step.
type finishRequest struct {
	changeRequest
	Then list[addRequest, batchLimit] `json:"then"`
}

// finish handles POST /v1/jobs/{id}/finish.
func (s *server) finish(x *exchange) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	var q finishRequest
	if err := x.decodeOptional(maxBatchRequest, &q); err != nil {
		return err
	}
	op, err := verbFinish.inPath(&q.changeRequest, id)
	if err != nil {
		return err
	}
	if !q.Then.set {
		return s.changed(x, op)
	}
	if err := checkItems("then", len(q.Then.v)); err != nil {
		return err
	}
	return s.compose(x, op.GetFinish(), q.Then.v)
}
