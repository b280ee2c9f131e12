package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// addRequest is one job to add, alone or in a batch.
type addRequest struct {
	newJob
	IfExists opt[string] `json:"if_exists"`
	condition
}

// newJob is a job that a request makes.
type newJob struct {
	Topic       opt[string]  `json:"topic"`
	ID          opt[string]  `json:"id"`
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
}

// op returns the operation, with defaults for missing fields.
func (q *addRequest) op(s *server, now time.Time) (*jobpb.Op, error) {
	add, err := q.add(s, now)
	if err == nil {
		err = q.ifExists(add)
	}
	if err != nil {
		return nil, err
	}
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: add}}, nil
}

// add returns the add of the job.
func (q *newJob) add(s *server, now time.Time) (*jobpb.Add, error) {
	add := &jobpb.Add{Id: q.ID.v, Topic: q.Topic.v}
	if q.ID.set { // for an empty id in the operation the server would choose one
		if err := job.CheckID("id", add.Id); err != nil {
			return nil, err
		}
	}
	var err error
	if q.DueAt.set {
		if q.Delay.set {
			return nil, job.Invalid("delay", "and due_at are both given; give one")
		}
		if add.DueMs, err = q.DueAt.millis("due_at", now); err != nil {
			return nil, err
		}
	}
	add.DelayMs, add.TtrMs = job.MillisOf(q.Delay.v), job.MillisOf(q.TTR.or(job.DefaultTTR.Seconds()))
	if add.Priority, err = uint32Of("priority", q.Priority.or(job.DefaultPriority)); err != nil {
		return nil, err
	}
	if add.MaxAttempts, err = uint32Of("max_attempts", q.MaxAttempts.or(job.DefaultMaxAttempts)); err != nil {
		return nil, err
	}
	add.TopicTtr, add.TopicAttempts = !q.TTR.set, !q.MaxAttempts.set
	b, err := pickBody(q.Body, q.BodyBase64, s.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	add.Body, add.BodyKind = b.b, b.kind
	if q.Backoff.set || q.Headers.set {
		if add.Options, err = optionsOf(&q.Backoff, q.Headers); err != nil {
			return nil, err
		}
	}
	if q.ExpiresAt.set {
		if err := q.setExpiry(add, now); err != nil {
			return nil, err
		}
	}
	if q.PushURL.set {
		if err := q.setPushURL(add, s); err != nil {
			return nil, err
		}
	}
	return add, nil
}

// setPushURL reads where the job is posted to. Whether its topic permits that is up to the
// state machine.
func (q *newJob) setPushURL(add *jobpb.Add, s *server) error {
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

// setExpiry reads when the job expires, which must be after it is due.
func (q *newJob) setExpiry(add *jobpb.Add, now time.Time) error {
	at, err := q.ExpiresAt.millis("expires_at", now)
	if err != nil {
		return err
	}
	if add.Options == nil {
		add.Options = &jobpb.JobOptions{}
	}
	add.Options.ExpiresMs = at
	return nil
}

// timestamp is an optional field with a time: RFC 3339 text, or a number of milliseconds
// since 1970. null counts as missing.
type timestamp struct {
	set    bool
	number bool
	text   string // as the client sent it, without the quotes
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (i *timestamp) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
		raw, err := dec.ReadValue()
		i.set, i.number, i.text = true, true, string(raw)
		return err
	}
	i.set = true
	return json.UnmarshalDecode(dec, (*timestampText)(&i.text))
}

// timestampText is a type, so that an error of the decoder can name both forms.
type timestampText string

// leastNumber is the smallest number of milliseconds that is accepted. As a number of
// seconds, which other systems use, it would be in the year 5138.
const leastNumber = 100_000_000_000

// millis returns the time in milliseconds since 1970. It rounds up, so that no job is early.
// A time in the past is allowed and means now.
func (i timestamp) millis(field string, now time.Time) (int64, error) {
	var ms int64
	if i.number {
		var err error
		if ms, err = strconv.ParseInt(i.text, 10, 64); err != nil {
			return 0, job.Invalid(field, "is %.60s; a number must be a whole one, of milliseconds since 1970", i.text)
		}
		if ms < leastNumber {
			return 0, job.Invalid(field, "is %d; a number is of milliseconds since 1970 and at least %d, in 1973: is this one of seconds?", ms, leastNumber)
		}
	} else {
		t, err := time.Parse(time.RFC3339, i.text)
		if err != nil {
			return 0, job.Invalid(field, "is %.60q; it takes an RFC 3339 timestamp with a zone, such as 2030-01-31T12:00:00.250Z, or a number of milliseconds since 1970", i.text)
		}
		ms = t.UnixMilli()
		if t.Nanosecond()%int(time.Millisecond) != 0 {
			ms++
		}
	}
	// 0 would mean that there is no timestamp.
	return max(ms, 1), job.Newest().CheckDue(field, ms, now.UnixMilli())
}

func (s *server) add(x *call) error {
	var q addRequest
	if err := x.decode(s.maxJobRequest(), &q); err != nil {
		return err
	}
	if keys := x.r.Header.Values(keyHeader); len(keys) > 0 && !q.ID.set {
		if len(keys) > 1 {
			return job.Invalid(keyHeader, "is given %d times", len(keys))
		}
		if err := job.CheckID(keyHeader, keys[0]); err != nil {
			return err
		}
		q.ID = opt[string]{set: true, v: keys[0]}
	}
	traceOf(x.r).addTo(&q.Headers)
	op, err := q.op(s, time.Now())
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
func check(op *jobpb.Op) error { return job.CheckOp(op, job.Newest()) }

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
	c, err := queryCondition(x.r.URL.Query())
	if err != nil {
		return err
	}
	return s.changed(x, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, Condition: c}}})
}
