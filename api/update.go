package api

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// updateRequest has the changes to a job.
type updateRequest struct {
	Delay       opt[float64] `json:"delay"`
	DueAt       timestamp    `json:"due_at"`
	ExpiresAt   timestamp    `json:"expires_at"`
	TTR         opt[float64] `json:"ttr"`
	Priority    opt[int64]   `json:"priority"`
	MaxAttempts opt[int64]   `json:"max_attempts"`
	Body        body         `json:"body"`
	BodyBase64  opt[string]  `json:"body_base64"`
	Backoff     backoff      `json:"backoff"`
	Headers     headers      `json:"headers"`
	PushURL     opt[string]  `json:"push_url"`
	condition
}

func (q *updateRequest) op(ref *jobpb.Ref, s *server, now time.Time) (*jobpb.Op, error) {
	update := &jobpb.Update{Ref: ref}
	var err error
	if update.Condition, err = q.condition.proto(); err != nil {
		return nil, err
	}
	if err := q.setDue(update, now); err != nil {
		return nil, err
	}
	if q.TTR.set {
		update.TtrMs = new(job.MillisOf(q.TTR.v))
	}
	if q.Priority.set {
		priority, err := uint32Of("priority", q.Priority.v)
		if err != nil {
			return nil, err
		}
		update.Priority = &priority
	}
	if q.MaxAttempts.set {
		attempts, err := uint32Of("max_attempts", q.MaxAttempts.v)
		if err != nil {
			return nil, err
		}
		update.MaxAttempts = &attempts
	}
	if q.Body.set || q.BodyBase64.set {
		b, err := pickBody(q.Body, q.BodyBase64, s.MaxBodyBytes)
		if err != nil {
			return nil, err
		}
		update.Body, update.BodyKind = b.b, b.kind
	}
	if err := q.setOptions(update); err != nil {
		return nil, err
	}
	if q.ExpiresAt.set {
		at, err := q.expiry(now)
		if err != nil {
			return nil, err
		}
		update.ExpiresMs = &at
	}
	if q.PushURL.set {
		url, err := s.pushURL(q.PushURL, true)
		if err != nil {
			return nil, err
		}
		update.PushUrl = &url
	}
	if update.DelayMs == nil && update.DueMs == nil && update.TtrMs == nil && update.Priority == nil && update.MaxAttempts == nil && update.Body == nil &&
		update.Backoff == nil && update.Headers == nil && update.ExpiresMs == nil && update.PushUrl == nil {
		return nil, job.Errorf(job.CodeInvalid, "the request changes nothing; give at least one of delay, due_at, expires_at, ttr, priority, max_attempts, backoff, headers, push_url and body")
	}
	return &jobpb.Op{Kind: &jobpb.Op_Update{Update: update}}, nil
}

func (q *updateRequest) setDue(update *jobpb.Update, now time.Time) error {
	if q.Delay.set {
		update.DelayMs = new(job.MillisOf(q.Delay.v))
	}
	if !q.DueAt.set {
		return nil
	}
	due, err := q.DueAt.millis("due_at", now)
	update.DueMs = &due
	if q.Delay.set {
		return nil // the error that both are given is more helpful; CheckOp returns it
	}
	return err
}

// expiry reads when the job expires; 0: never from now on.
func (q *updateRequest) expiry(now time.Time) (int64, error) {
	if !q.ExpiresAt.number && q.ExpiresAt.text == "never" {
		return 0, nil
	}
	at, err := q.ExpiresAt.millis("expires_at", now)
	if err == nil && at <= now.UnixMilli() {
		err = job.Invalid("expires_at", "is %s, which has passed; delete the job instead", job.Instant(at))
	}
	return at, err
}

// setOptions sets the backoff and the headers. An empty list removes the backoff. The
// headers replace all existing ones.
func (q *updateRequest) setOptions(update *jobpb.Update) error {
	if q.Backoff.none() {
		update.Backoff, q.Backoff.set = &jobpb.Backoff{}, false
	}
	e, err := optionsOf(&q.Backoff, q.Headers)
	if err != nil {
		return err
	}
	if q.Backoff.set {
		update.Backoff = e.GetBackoff()
	}
	if q.Headers.set {
		update.Headers = &jobpb.Headers{List: e.GetHeaders()}
	}
	return nil
}

// updateJob handles PATCH /v1/jobs/{id}.
func (s *server) updateJob(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	var q updateRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return err
	}
	op, err := q.op(&jobpb.Ref{Id: id}, s, time.Now())
	if err != nil {
		return err
	}
	c, err := queryCondition(x.r.URL.Query())
	if err != nil {
		return err
	}
	if c != nil && op.GetUpdate().Condition != nil {
		return job.Invalid("if_revision", "and if_state are given in the query and in the request; give them in the query")
	}
	if c != nil {
		op.GetUpdate().Condition = c
	}
	return s.changed(x, op)
}

// condition has the fields that restrict a request to a job in a certain revision or state.
type condition struct {
	IfRevision opt[int64]                `json:"if_revision"`
	IfState    list[string, statesLimit] `json:"if_state"`
}

func (c *condition) proto() (*jobpb.Condition, error) {
	if !c.IfRevision.set && !c.IfState.set {
		return nil, nil
	}
	made := &jobpb.Condition{}
	if c.IfRevision.set {
		revision, err := uint32Of("if_revision", c.IfRevision.v)
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			return nil, job.Invalid("if_revision", "is 0; revisions start with 1")
		}
		made.Revision = revision
	}
	if c.IfState.set && len(c.IfState.v) == 0 {
		return nil, job.Invalid("if_state", "is empty; it takes a list of delayed, ready, reserved, dead, finished and deleted")
	}
	for _, name := range c.IfState.v {
		state, ok := statesByName[name]
		if !ok {
			return nil, job.Invalid("if_state", "has %.40q; it takes delayed, ready, reserved, dead, finished and deleted", name)
		}
		if !slices.Contains(made.States, state) {
			made.States = append(made.States, state)
		}
	}
	return made, nil
}

// statesByName has the states of jobs by their names in requests.
var statesByName = map[string]jobpb.State{
	"delayed":  jobpb.State_STATE_DELAYED,
	"ready":    jobpb.State_STATE_READY,
	"reserved": jobpb.State_STATE_RESERVED,
	"dead":     jobpb.State_STATE_DEAD,
	"finished": jobpb.State_STATE_FINISHED,
	"deleted":  jobpb.State_STATE_DELETED,
}

// queryCondition parses the condition in the query of a DELETE, which has no body. States
// are separated by commas.
func queryCondition(query url.Values) (*jobpb.Condition, error) {
	var c condition
	if err := numberIn(query, "if_revision", &c.IfRevision); err != nil {
		return nil, err
	}
	if v := query.Get("if_state"); v != "" {
		c.IfState = list[string, statesLimit]{set: true, v: strings.Split(v, ",")}
	}
	return c.proto()
}

var ifExists = map[string]jobpb.IfExists{
	"conflict": jobpb.IfExists_IF_EXISTS_CONFLICT,
	"keep":     jobpb.IfExists_IF_EXISTS_KEEP,
	"replace":  jobpb.IfExists_IF_EXISTS_REPLACE,
	"postpone": jobpb.IfExists_IF_EXISTS_POSTPONE,

	"replace_ended": jobpb.IfExists_IF_EXISTS_REPLACE_ENDED,
}

// ifExists sets what an add does if a job with its id exists.
func (q *addRequest) ifExists(add *jobpb.Add) error {
	what, ok := ifExists[q.IfExists.or("conflict")]
	if !ok {
		return job.Invalid("if_exists", "is %.40q; it takes conflict, keep, replace, replace_ended and postpone", q.IfExists.v)
	}
	if q.IfExists.set && add.Id == "" {
		return job.Invalid("if_exists", "is given without an id")
	}
	c, err := q.condition.proto()
	if err != nil {
		return err
	}
	if c != nil && what != jobpb.IfExists_IF_EXISTS_REPLACE && what != jobpb.IfExists_IF_EXISTS_POSTPONE {
		return job.Invalid("if_revision", "and if_state need if_exists to be replace or postpone")
	}
	add.IfExists, add.Condition = what, c
	return nil
}
