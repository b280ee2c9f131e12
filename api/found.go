package api

import (
	"net/url"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// These calls change the jobs that GET /v1/jobs finds by the same query. Each step reads a
// page and changes its jobs in one command, on the condition that each job is still as the
// query wants it: so no other job is changed, whatever happened since the read.

// foundBytes bounds the operations of one step, which all have the new body of an update.
const foundBytes = 4 << 20

// change makes the operation that changes a job.
type change func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op

// deleteFound handles DELETE /v1/jobs.
func (s *server) deleteFound(x *call) (r wire.DeletedJobs, err error) {
	r.Deleted, r.Rest, err = s.changeFound(x, func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, Condition: c}}}
	})
	return r, err
}

// updateFound handles PATCH /v1/jobs.
func (s *server) updateFound(x *call) (r wire.UpdatedJobs, err error) {
	var q wire.UpdateRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return r, err
	}
	if q.IfRevision.Set || q.IfState.Set {
		return r, job.Invalid("if_revision", "and if_state are for one job; select jobs by the query")
	}
	op, err := s.updateOp(&q, nil, time.Now())
	if err != nil {
		return r, err
	}
	update := op.GetUpdate()
	r.Updated, r.Rest, err = s.changeFound(x, func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		one := &jobpb.Update{Ref: ref, Condition: c}
		set := one.ProtoReflect().Set
		update.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool { set(field, v); return true })
		return &jobpb.Op{Kind: &jobpb.Op_Update{Update: one}}
	})
	return r, err
}

// kickFound handles POST /v1/jobs/kick.
func (s *server) kickFound(x *call, q *wire.ChangeItem) (r wire.KickedJobs, err error) {
	op, err := verbKick.make(q)
	if err != nil {
		return r, err
	}
	to := op.GetKick().ToTopic
	r.Kicked, r.Rest, err = s.changeFound(x, func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref, ToTopic: to, Condition: c}}}
	})
	return r, err
}

// changeFound changes the jobs of the query and returns how many there were.
func (s *server) changeFound(x *call, make change) (done uint64, rest wire.Rest, err error) {
	q, most, err := foundJobs(x.r.URL.Query())
	if err != nil {
		return 0, rest, err
	}
	x.about(func() string { return resourceOfQuery(q) })
	condition := &jobpb.Condition{Filter: q.Filter, Topic: q.Topic}
	if q.State != jobpb.State_STATE_NONE {
		condition.States = []jobpb.State{q.State}
	}
	return s.changeListed(x, q, condition, most, make)
}

// foundJobs parses the query: which jobs are changed, and how many at most.
func foundJobs(query url.Values) (q *jobpb.JobQuery, most uint64, err error) {
	var limit wire.Sweep
	if err := wire.NumberIn(query, "max", &limit.Max); err != nil {
		return nil, 0, err
	}
	if v := query.Get("all"); v != "" && v != "true" {
		return nil, 0, job.Invalid("all", "is %.40q; it takes true", v)
	}
	limit.All.V = query.Has("all")
	if most, err = limit.Most(); err != nil {
		return nil, 0, err
	}
	query.Del("max")
	if q, err = jobQueryOf(query, "", time.Now()); err != nil {
		return nil, 0, err
	}
	if q.State > jobpb.State_STATE_DEAD {
		return nil, 0, job.Invalid("state", "is %s; jobs that have ended cannot be changed; it takes delayed, ready, reserved or dead", job.StateName(q.State))
	}
	return q, most, nil
}
