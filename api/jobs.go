package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// addOp returns the operation, with defaults for missing fields.
func (s *server) addOp(q *wire.AddRequest, now time.Time) (*jobpb.Op, error) {
	add, err := s.jobOf(&q.NewJob, now)
	if err == nil {
		err = q.SetIfExists(add)
	}
	if err != nil {
		return nil, err
	}
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: add}}, nil
}

// jobOf returns the add of a job.
func (s *server) jobOf(q *wire.NewJob, now time.Time) (*jobpb.Add, error) {
	add := &jobpb.Add{Id: q.ID.V, Topic: q.Topic.V}
	if q.ID.Set { // for an empty id in the operation the server would choose one
		if err := job.CheckID("id", add.Id); err != nil {
			return nil, err
		}
	}
	var err error
	if q.DueAt.Set {
		if q.Delay.Set {
			return nil, job.Invalid("delay", "and due_at are both given; give one")
		}
		if add.DueMs, err = q.DueAt.Millis("due_at", now); err != nil {
			return nil, err
		}
	}
	add.DelayMs, add.TtrMs = job.MillisOf(q.Delay.V), job.MillisOf(q.TTR.Or(job.DefaultTTR.Seconds()))
	if add.Priority, err = wire.Uint32Of("priority", q.Priority.Or(job.DefaultPriority)); err != nil {
		return nil, err
	}
	if add.MaxAttempts, err = wire.Uint32Of("max_attempts", q.MaxAttempts.Or(job.DefaultMaxAttempts)); err != nil {
		return nil, err
	}
	add.TopicTtr, add.TopicAttempts = !q.TTR.Set, !q.MaxAttempts.Set
	b, err := wire.PickBody(q.Body, q.BodyBase64, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	add.Body, add.BodyKind = b.Bytes, b.Kind
	if q.Backoff.Set || q.Headers.Set {
		if add.Options, err = wire.OptionsOf(&q.Backoff, q.Headers); err != nil {
			return nil, err
		}
	}
	if q.ExpiresAt.Set {
		if err := q.SetExpiry(add, now); err != nil {
			return nil, err
		}
	}
	if q.PushURL.Set {
		if err := s.setPushURL(q, add); err != nil {
			return nil, err
		}
	}
	return add, nil
}

// setPushURL reads where the job is posted to. Whether its topic permits that is up to the
// state machine.
func (s *server) setPushURL(q *wire.NewJob, add *jobpb.Add) error {
	url, err := s.pushURL(q.PushURL, false)
	if err != nil {
		return err
	}
	if add.Options == nil {
		add.Options = &jobpb.JobOptions{}
	}
	add.Options.PushUrl = url
	return nil
}

func (s *server) add(x *call) error {
	var q wire.AddRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return err
	}
	if keys := x.r.Header.Values(keyHeader); len(keys) > 0 && !q.ID.Set {
		if len(keys) > 1 {
			return job.Invalid(keyHeader, "is given %d times", len(keys))
		}
		if err := job.CheckID(keyHeader, keys[0]); err != nil {
			return err
		}
		q.ID = wire.Opt[string]{Set: true, V: keys[0]}
	}
	traceOf(x.r).addTo(&q.Headers)
	op, err := s.addOp(&q, time.Now())
	if err != nil {
		return err
	}
	return s.apply(x, op, x.added)
}

// keyHeader is the id of a job that is added without one, so that the add can be repeated.
const keyHeader = "Idempotency-Key"

// added responds with a successful add.
func (x *call) added(r *jobpb.Result) {
	if !r.Existing {
		x.status = http.StatusCreated
	}
	x.json.added(r)
}

// hasEnded reports whether a job will not be handed out any more, unless somebody kicks it.
func hasEnded(s jobpb.State) bool {
	return s == jobpb.State_STATE_DEAD || s == jobpb.State_STATE_FINISHED || s == jobpb.State_STATE_DELETED
}

// added adds the fields of a successful add.
func (w *writer) added(r *jobpb.Result) {
	w.boolean("success", true)
	w.text("id", r.Id)
	w.number("seq", r.Seq)
	w.text("state", stateNames[r.State])
	w.timestamp("due_at", r.DueMs)
	w.number("revision", uint64(r.Revision))
	w.boolean("existing", r.Existing)
	w.booleanIfTrue("ended", r.Existing && hasEnded(r.State))
	w.booleanIfTrue("replaced", r.Replaced)
	w.booleanIfTrue("postponed", r.Postponed)
}

// check returns an error for an operation that breaks a rule.
func check(op *jobpb.Op) error { return oplog.CheckOp(op, job.Newest()) }

// do applies ops, which must be checked, and returns one result each.
func (s *server) do(x *call, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	return doOps(x.r.Context(), s.Queue, ops)
}

func doOps(ctx context.Context, q Queue, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results, err := q.Do(ctx, ops)
	if err == nil && len(results) != len(ops) {
		return nil, job.Errorf(job.CodeInternal, "%d operations gave %d results", len(ops), len(results))
	}
	return results, err
}

// doOne checks and applies one operation; a refusal is an error.
func (s *server) doOne(x *call, op *jobpb.Op) (*jobpb.Result, error) {
	return doOne(x.r.Context(), s.Queue, op)
}

// apply is doOne, and responds with the fields that write adds.
func (s *server) apply(x *call, op *jobpb.Op, write func(*jobpb.Result)) error {
	r, err := s.doOne(x, op)
	if err != nil {
		return err
	}
	x.json.beginObject()
	write(r)
	x.json.endObject()
	return nil
}

func doOne(ctx context.Context, q Queue, op *jobpb.Op) (*jobpb.Result, error) {
	if err := check(op); err != nil {
		return nil, err
	}
	results, err := doOps(ctx, q, []*jobpb.Op{op})
	if err != nil {
		return nil, err
	}
	return results[0], job.ResultError(results[0])
}

func (s *server) getJob(x *call) error {
	j, err := find(x, x.pathID, s.reads.Job)
	if err == nil {
		err = x.claim(jobRoom(j))
	}
	if err != nil {
		return err
	}
	x.json.success()
	x.json.job(j)
	x.json.body("body", j.BodyKind, j.Body)
	x.json.endObject()
	return nil
}

// jobRoom is the approximate size of a job in a response, without its body.
func jobRoom(j *jobpb.Job) int64 {
	return int64(len(j.Body)+len(j.Reason)+len(j.LastError)+j.Options.SizeVT()) + answerOverhead
}

// job adds all fields of a job except its body.
func (w *writer) job(j *jobpb.Job) {
	for _, f := range job.Fields {
		if f.Shown(j) {
			w.field(f, j)
		}
	}
}

func (w *writer) field(f *job.Field, j *jobpb.Job) {
	switch f.Type {
	case job.FieldText:
		w.text(f.Name, f.Text(j))
	case job.FieldNumber:
		w.number(f.Name, uint64(f.Number(j)))
	case job.FieldInstant:
		w.timestamp(f.Name, f.Number(j))
	case job.FieldDuration:
		w.seconds(f.Name, f.Number(j))
	case job.FieldState:
		w.text(f.Name, stateNames[j.State])
	case job.FieldBackoff:
		w.backoff(j.Options.GetBackoff())
	case job.FieldHeaders:
		w.headers(j.Options)
	}
}

func (s *server) deleteJob(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	ref := &jobpb.Ref{Id: id}
	if token := x.r.URL.Query().Get("token"); token != "" {
		if err := fence(ref, token); err != nil {
			return err
		}
	}
	c, err := wire.QueryCondition(x.r.URL.Query())
	if err != nil {
		return err
	}
	return s.changed(x, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, Condition: c}}})
}

// getManyPath is the path of a POST that only reads.
const getManyPath = "/v1/get"

// getMany handles POST /v1/get. It has one result for each id, in order: the job, or why it
// is not there.
func (s *server) getMany(x *call) error {
	var q wire.GetRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if err := wire.CheckItems("ids", len(q.IDs.V)); err != nil {
		return err
	}
	body, err := wire.WithBodies(x.r.URL.Query(), true)
	if err != nil {
		return err
	}
	failed := make([]error, len(q.IDs.V))
	var ids []string // the valid ones
	for i, id := range q.IDs.V {
		if failed[i] = job.CheckRefID(fmt.Sprintf("ids[%d]", i), id); failed[i] == nil {
			ids = append(ids, id)
		}
	}
	jobs, err := s.jobsByID(x, ids, body)
	if err != nil {
		return err
	}
	found := make([]*jobpb.Job, len(q.IDs.V))
	all := true
	for i, id := range q.IDs.V {
		switch {
		case failed[i] != nil:
		case len(jobs) == 0:
			failed[i] = job.Errorf(job.CodeReplyFull, "the reply had no room for this job; ask for it again")
		case jobs[0].Seq == 0:
			failed[i], jobs = job.NoSuchJob(id), jobs[1:]
		default:
			found[i], jobs = jobs[0], jobs[1:]
		}
		all = all && failed[i] == nil
	}
	x.json.beginObject()
	x.json.boolean("success", all)
	x.json.beginList("results")
	for i, err := range failed {
		x.json.beginObject()
		if err != nil {
			x.json.failure(asError(err))
		} else {
			x.json.boolean("success", true)
			x.json.job(found[i])
			if body {
				x.json.body("body", found[i].BodyKind, found[i].Body)
			}
		}
		x.json.endObject()
	}
	x.json.endList()
	x.json.endObject()
	return nil
}

// jobsByID reads the jobs with the first of the ids, and claims memory for a response with
// them.
func (s *server) jobsByID(x *call, ids []string, body bool) ([]*jobpb.Job, error) {
	stale, err := x.stale()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	jobs, err := s.reads.JobsByID(ctx, ids, body, stale)
	if err != nil {
		return nil, err
	}
	var room int64
	for _, j := range jobs {
		room += jobRoom(j)
	}
	return jobs, x.claim(room)
}
