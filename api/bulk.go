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

// sweepStep is how many jobs one command of a bulk change examines and changes at most, so that
// it does not delay other commands for long.
const sweepStep = 1000

// bulk is a call that changes many jobs, step by step. A step is a command of the state machine
// that goes on behind the one before, or a page of jobs that are changed in one command.
type bulk struct {
	*server
	x          *call
	ctx        context.Context
	end        time.Time // no step begins after it
	most       uint64
	repeatable bool // a step may be done twice

	done, skipped uint64
	reason        string // why the first job was skipped
	incomplete    bool
	next          *jobpb.JobMark // where there are more jobs; nil: nowhere
	began         bool           // there is something to respond with
}

// bulk returns a call that changes most jobs at most, for half of its timeout.
func (s *server) bulk(x *call, most uint64) (*bulk, context.CancelFunc) {
	ctx, cancel := x.timeout(s.Timeout)
	return &bulk{server: s, x: x, ctx: ctx, end: time.Now().Add(s.Timeout / 2), most: most}, cancel
}

// run repeats step, which gets the number of jobs left, and reports whether there are more. It
// ends when step says that there are none, when the most jobs are done or the time is up, and
// when a step after the first was certainly not applied, or is repeatable: the next call gets
// that error.
func (b *bulk) run(step func(left uint64) (more bool, err error)) (more bool, err error) {
	for {
		more, err := step(b.most - b.done)
		switch {
		case err == nil && !more:
			return false, nil
		case err == nil:
		case !b.began:
			return false, err
		case b.repeatable || outcomes[job.CodeOf(err)] == "not_applied":
			return true, nil
		default:
			return false, job.Unknown("the first %d jobs were done; then: %w", b.done, err)
		}
		if b.done >= b.most || !time.Now().Before(b.end) {
			return true, nil
		}
	}
}

// apply does the operation of a step and reports whether there are more jobs for it.
func (b *bulk) apply(op *jobpb.Op) (last *jobpb.Result, more bool, err error) {
	r, err := doOne(b.ctx, b.Queue, op)
	if err != nil {
		return nil, false, err
	}
	b.done += uint64(r.Count)
	b.began = b.done > 0
	return r, r.GetDetails().GetNext() != nil || r.More, nil
}

// page changes the jobs of a page of the query, each by the operation that change returns; nil:
// the job stays. The query then is that of the next page.
func (b *bulk) page(q *jobpb.JobQuery, change func(*jobpb.Job) *jobpb.Op) error {
	page, err := b.reads.Jobs(b.ctx, q, false)
	if err != nil {
		return err
	}
	var ops []*jobpb.Op
	var room int64
	for _, j := range page.Jobs {
		room += jobRoom(j)
		if op := change(j); op != nil {
			ops = append(ops, op)
			room += int64(op.SizeVT())
		}
	}
	if err := b.x.claim(room); err != nil {
		return err
	}
	defer b.x.unclaim(room)
	if len(ops) > 0 {
		results, err := doOps(b.ctx, b.Queue, ops)
		if err != nil {
			return err
		}
		b.count(results)
		if err := noResult(results); err != nil && b.done > 0 {
			b.began = true
			return job.Unknown("%w", err) // some jobs of the page were changed
		} else if err != nil {
			return err
		}
	}
	b.incomplete = b.incomplete || page.Incomplete
	b.next, q.After, b.began = page.Next, page.Next, true
	return nil
}

// noResult returns the error of the first operation of which a shard gave no result; nil: there is none.
func noResult(results []*jobpb.Result) error {
	for _, r := range results {
		if r.Code >= jobpb.Code_NOT_APPLIED {
			return job.ResultError(r)
		}
	}
	return nil
}

// count adds the results of one step. A job that is gone or no longer as the query wants
// it is none of those that were asked for.
func (b *bulk) count(results []*jobpb.Result) {
	for _, r := range results {
		switch r.Code {
		case jobpb.Code_OK:
			b.done++
		case jobpb.Code_NOT_FOUND, jobpb.Code_CONDITION_FAILED:
		default:
			if b.skipped++; b.skipped == 1 {
				b.reason = r.Message
			}
		}
	}
}

// sweep applies the commands that step returns, one after the other, and returns how many
// jobs they changed, and whether there are more. step gets the number of jobs left and
// the previous result, nil at first.
func (s *server) sweep(x *call, most uint64, step func(left uint64, last *jobpb.Result) *jobpb.Op) (done uint64, more bool, err error) {
	b, cancel := s.bulk(x, most)
	defer cancel()
	var last *jobpb.Result
	more, err = b.run(func(left uint64) (more bool, err error) {
		last, more, err = b.apply(step(left, last))
		return more, err
	})
	return b.done, more, err
}

// changeListed changes up to most of the jobs of the query that are in the states of the condition,
// and returns how many there were, and where there are more.
func (s *server) changeListed(x *call, q *jobpb.JobQuery, condition *jobpb.Condition, most uint64, make change) (done uint64, rest wire.Rest, err error) {
	b, cancel := s.bulk(x, most)
	defer cancel()
	sample := make(&jobpb.Ref{Seq: 1}, condition)
	if err := check(sample); err != nil {
		return 0, rest, err
	}
	step := uint64(max(1, min(sweepStep, foundBytes/sample.SizeVT())))
	_, err = b.run(func(left uint64) (more bool, err error) {
		q.Max = uint32(min(step, left))
		err = b.page(q, func(j *jobpb.Job) *jobpb.Op {
			if len(condition.States) > 0 && !slices.Contains(condition.States, j.State) {
				return nil
			}
			return make(&jobpb.Ref{Seq: j.Seq}, condition)
		})
		return b.next != nil, err
	})
	if err != nil {
		return 0, rest, err
	}
	next, err := cursorOf(q, b.next)
	return b.done, wire.Rest{Skipped: b.skipped, Reason: b.reason, Incomplete: b.incomplete, More: next != "", Next: next}, err
}

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
