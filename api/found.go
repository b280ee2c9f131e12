package api

import (
	"context"
	"net/url"
	"slices"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// These calls change the jobs that GET /v1/jobs finds by the same query. Each step reads a
// page and changes its jobs in one command, on the condition that each job is still as the
// query wants it: so no other job is changed, whatever happened since the read.

// foundQuery are the parameters that say which jobs are changed.
var foundQuery = []string{
	"topic", "state", "due_from", "due_to", "died_from", "died_to", "id_prefix", "reason", headerParameter,
	"max", "all", "cursor",
}

// foundBytes bounds the operations of one step, which all have the new body of an update.
const foundBytes = 4 << 20

// change makes the operation that changes a job.
type change func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op

// changes is what a call has done.
type changes struct {
	done, skipped uint64
	reason        string // why the first job was skipped
	incomplete    bool
	next          *jobpb.JobMark // where there are more jobs; nil: nowhere
}

// deleteFound handles DELETE /v1/jobs.
func (s *server) deleteFound(x *call) error {
	return s.changeFound(x, "deleted", func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, Condition: c}}}
	})
}

// updateFound handles PATCH /v1/jobs.
func (s *server) updateFound(x *call) error {
	var q wire.UpdateRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return err
	}
	if q.IfRevision.Set || q.IfState.Set {
		return job.Invalid("if_revision", "and if_state are for one job; select jobs by the query")
	}
	op, err := s.updateOp(&q, nil, time.Now())
	if err != nil {
		return err
	}
	update := op.GetUpdate()
	return s.changeFound(x, "updated", func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		one := &jobpb.Update{Ref: ref, Condition: c}
		set := one.ProtoReflect().Set
		update.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool { set(field, v); return true })
		return &jobpb.Op{Kind: &jobpb.Op_Update{Update: one}}
	})
}

// kickFound handles POST /v1/jobs/kick.
func (s *server) kickFound(x *call) error {
	var q wire.ChangeItem
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	op, err := verbKick.make(&q)
	if err != nil {
		return err
	}
	to := op.GetKick().ToTopic
	return s.changeFound(x, "kicked", func(ref *jobpb.Ref, c *jobpb.Condition) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref, ToTopic: to, Condition: c}}}
	})
}

// changeFound changes the jobs of the query and responds with how many there were, as word.
func (s *server) changeFound(x *call, word string, make change) error {
	q, most, err := foundJobs(x.r.URL.Query())
	if err != nil {
		return err
	}
	x.about(func() string { return resourceOfQuery(q) })
	condition := &jobpb.Condition{Filter: q.Filter, Topic: q.Topic}
	if q.State != jobpb.State_STATE_NONE {
		condition.States = []jobpb.State{q.State}
	}
	done, err := s.changeAll(x, q, condition, most, make)
	if err != nil {
		return err
	}
	return x.changedJobs(word, q, &done)
}

// changedJobs responds with how many jobs of a query were changed, as word, and where there are
// more.
func (x *call) changedJobs(word string, q *jobpb.JobQuery, done *changes) error {
	next, err := cursorOf(q, done.next)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.number(word, done.done)
	if done.skipped > 0 {
		x.json.number("skipped", done.skipped)
		x.json.text("reason", done.reason)
	}
	x.json.booleanIfTrue("incomplete", done.incomplete)
	if next != "" {
		x.json.boolean("more", true)
		x.json.text("next", next)
	}
	x.json.endObject()
	return nil
}

// foundJobs parses the query: which jobs are changed, and how many at most.
func foundJobs(query url.Values) (q *jobpb.JobQuery, most uint64, err error) {
	var limit wire.Sweep
	if err := numberIn(query, "max", &limit.Max); err != nil {
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

// changeAll changes up to most of the jobs that are in the states of the condition, a page with
// each step. It ends, with a place to go on, when half of the call's timeout has passed or when
// a step after the first was certainly not applied.
func (s *server) changeAll(x *call, q *jobpb.JobQuery, condition *jobpb.Condition, most uint64, make change) (done changes, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	end := time.Now().Add(s.Timeout / 2)
	sample := make(&jobpb.Ref{Seq: 1}, condition)
	if err := check(sample); err != nil {
		return changes{}, err
	}
	step := uint64(max(1, min(sweepStep, foundBytes/sample.SizeVT())))
	for first := true; ; first = false {
		q.Max = uint32(min(step, most-done.done))
		err := s.changePage(ctx, x, q, condition, make, &done)
		switch {
		case err == nil:
		case first:
			return changes{}, err
		case outcomes[job.CodeOf(err)] == "not_applied":
			done.next = q.After
			return done, nil // the next call gets the error
		default:
			return changes{}, job.Unknown("the first %d jobs were done; then: %w", done.done, err)
		}
		if q.After = done.next; q.After == nil || done.done >= most || !time.Now().Before(end) {
			return done, nil
		}
	}
}

// changePage changes the jobs of one page.
func (s *server) changePage(ctx context.Context, x *call, q *jobpb.JobQuery, c *jobpb.Condition, make change, done *changes) error {
	page, err := s.reads.Jobs(ctx, q, false)
	if err != nil {
		return err
	}
	var ops []*jobpb.Op
	var room int64
	for _, j := range page.Jobs {
		if len(c.States) > 0 && !slices.Contains(c.States, j.State) {
			continue
		}
		op := make(&jobpb.Ref{Seq: j.Seq}, c)
		ops = append(ops, op)
		room += jobRoom(j) + int64(op.SizeVT())
	}
	if err := x.claim(room); err != nil {
		return err
	}
	defer x.unclaim(room)
	if len(ops) > 0 {
		results, err := doOps(ctx, s.Queue, ops)
		if err != nil {
			return err
		}
		done.count(results)
	}
	done.incomplete = done.incomplete || page.Incomplete
	done.next = page.Next
	return nil
}

// count adds the results of one step. A job that is gone or no longer as the query wants
// it is none of those that were asked for.
func (c *changes) count(results []*jobpb.Result) {
	for _, r := range results {
		switch r.Code {
		case jobpb.Code_OK:
			c.done++
		case jobpb.Code_NOT_FOUND, jobpb.Code_CONDITION_FAILED:
		default:
			if c.skipped++; c.skipped == 1 {
				c.reason = r.Message
			}
		}
	}
}
