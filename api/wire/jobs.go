package wire

import (
	"maps"
	"slices"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// Batch is a request of many items. A malformed request fails as a whole; an item that
// breaks a limit fails alone.
type Batch[T any] struct {
	Jobs List[T, BatchLimit] `json:"jobs"`
}

func (b *Batch[T]) Check() error {
	return CheckItems("jobs", len(b.Jobs.V))
}

func CheckItems(field string, n int) error {
	if n == 0 || n > job.MaxBatch {
		return job.Invalid(field, "has %d items; it takes 1 to %d", n, job.MaxBatch)
	}
	return nil
}

type AddBatch struct {
	Batch[AddRequest] `required:"jobs"`
	Atomic            Opt[bool] `json:"atomic" help:"All jobs are added, or none."`
}

// UpdateItem is one change in a list.
type UpdateItem struct {
	ID Opt[string] `json:"id"`
	UpdateRequest
}

// ChangeItem is one change of an existing job. Each verb takes some of the fields. ID
// is for batches; a single call has the id in its path.
type ChangeItem struct {
	ID       Opt[string]  `json:"id"`
	Token    Opt[string]  `json:"token"`
	Delay    Opt[float64] `json:"delay"`
	Priority Opt[int64]   `json:"priority"`
	TTR      Opt[float64] `json:"ttr"`
	Reason   Opt[string]  `json:"reason"`
	To       Opt[string]  `json:"to" help:"The topic that the job goes to." limit:"name"`
	ToTopic  Opt[string]  `json:"to_topic"`
}

// Given lists the fields that the request has, besides id.
func (q *ChangeItem) Given() []string {
	var names []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"token", q.Token.Set}, {"delay", q.Delay.Set}, {"priority", q.Priority.Set},
		{"ttr", q.TTR.Set}, {"reason", q.Reason.Set}, {"to", q.To.Set}, {"to_topic", q.ToTopic.Set},
	} {
		if m.set {
			names = append(names, m.name)
		}
	}
	return names
}

// Filter selects jobs: those that match all of its fields.
type Filter struct {
	IDPrefix Opt[string] `json:"id_prefix"`
	Reason   Opt[string] `json:"reason"`
	Exact    Opt[string] `json:"exact_reason"`
	DueFrom  Timestamp   `json:"due_from"`
	DueTo    Timestamp   `json:"due_to"`
	DiedFrom Timestamp   `json:"died_from"`
	DiedTo   Timestamp   `json:"died_to"`
	Headers  Headers     `json:"headers"`
}

// Proto returns the filter, which the caller must check; nil means every job.
func (q *Filter) Proto(now time.Time) (*jobpb.Filter, error) {
	f := &jobpb.Filter{IdPrefix: q.IDPrefix.V, Reason: q.Reason.V}
	if q.Exact.Set {
		f.ExactReason = &q.Exact.V
	}
	for _, one := range []struct {
		field string
		in    Timestamp
		out   *int64
	}{
		{"due_from", q.DueFrom, &f.DueFromMs}, {"due_to", q.DueTo, &f.DueToMs},
		{"died_from", q.DiedFrom, &f.DiedFromMs}, {"died_to", q.DiedTo, &f.DiedToMs},
	} {
		if !one.in.Set {
			continue
		}
		var err error
		if *one.out, err = one.in.Millis(one.field, now); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Headers.V)) {
		f.Headers = append(f.Headers, &jobpb.Header{Name: name, Value: q.Headers.V[name]})
	}
	if f.SizeVT() == 0 {
		return nil, nil
	}
	return f, nil
}

// GetRequest names the jobs to show.
type GetRequest struct {
	IDs List[string, BatchLimit] `json:"ids" required:"ids" help:"The ids of the jobs, 1 to 1000." limit:"name"`
}

// ImportItem is a job of an import: an add with its due time, and what the job had elsewhere.
type ImportItem struct {
	NewJob    `due_at:"When the job becomes or became due: RFC 3339 text or milliseconds since 1970. The topic's spread is not added." delay:"The delay that gave it its due time, in seconds." delay.limit:"import delay"`
	State     Opt[string] `json:"state" help:"Which of delayed and ready a job is that waits depends on due_at; a waiting job unless given." of:"delayed ready dead"`
	CreatedAt Timestamp   `json:"created_at" help:"When it was added; now unless given, and at the latest now."`
	DiedAt    Timestamp   `json:"died_at" help:"When a dead job died; now unless given, and at the latest now."`
	Attempts  Opt[int64]  `json:"attempts" help:"Attempts so far: fewer than max_attempts, unless the job is dead." limit:"uint32"`
	Reserves  Opt[int64]  `json:"reserves" help:"How often it was handed out." limit:"uint32"`
	Timeouts  Opt[int64]  `json:"timeouts" help:"How often a reservation expired." limit:"uint32"`
	Releases  Opt[int64]  `json:"releases" help:"How often it was given back." limit:"uint32"`
	Buries    Opt[int64]  `json:"buries" help:"How often it was set aside." limit:"uint32"`
	Kicks     Opt[int64]  `json:"kicks" help:"How often it was brought back." limit:"uint32"`
	Reason    Opt[string] `json:"reason"`
	LastError Opt[string] `json:"last_error" help:"The last reason that a consumer gave: at most 1000 bytes." limit:"reason"`
}

// SetPast sets what happened to the job before.
func (q *ImportItem) SetPast(to *jobpb.ImportJob, now time.Time) (err error) {
	to.CreatedMs = now.UnixMilli()
	if q.CreatedAt.Set {
		if to.CreatedMs, err = q.CreatedAt.Millis("created_at", now); err != nil {
			return err
		}
	}
	if to.Dead {
		to.DiedMs = now.UnixMilli()
	}
	if q.DiedAt.Set {
		if to.DiedMs, err = q.DiedAt.Millis("died_at", now); err != nil {
			return err
		}
	}
	for _, n := range []struct {
		field string
		given Opt[int64]
		to    *uint32
	}{
		{"attempts", q.Attempts, &to.Attempts}, {"reserves", q.Reserves, &to.Reserves}, {"timeouts", q.Timeouts, &to.Timeouts},
		{"releases", q.Releases, &to.Releases}, {"buries", q.Buries, &to.Buries}, {"kicks", q.Kicks, &to.Kicks},
	} {
		if *n.to, err = Uint32Of(n.field, n.given.V); err != nil {
			return err
		}
	}
	return nil
}

// AddRequest is one job to add, alone or in a batch.
type AddRequest struct {
	NewJob   `required:"topic"`
	IfExists Opt[string] `json:"if_exists"`
	Condition
}

// NewJob is a job that a request makes.
type NewJob struct {
	Topic       Opt[string]    `json:"topic"`
	ID          Opt[string]    `json:"id"`
	Delay       Opt[float64]   `json:"delay"`
	DueAt       Timestamp      `json:"due_at"`
	ExpiresAt   Timestamp      `json:"expires_at"`
	TTR         Opt[float64]   `json:"ttr"`
	Priority    Opt[int64]     `json:"priority"`
	MaxAttempts Opt[int64]     `json:"max_attempts"`
	Body        Body           `json:"body"`
	BodyBase64  Opt[string]    `json:"body_base64"`
	Backoff     BackoffRequest `json:"backoff"`
	Headers     Headers        `json:"headers"`
	PushURL     Opt[string]    `json:"push_url"`
}

// SetExpiry reads when the job expires, which must be after it is due.
func (q *NewJob) SetExpiry(add *jobpb.Add, now time.Time) error {
	at, err := q.ExpiresAt.Millis("expires_at", now)
	if err != nil {
		return err
	}
	if add.Options == nil {
		add.Options = &jobpb.JobOptions{}
	}
	add.Options.ExpiresMs = at
	return nil
}

// UpdateRequest has the changes to a job.
type UpdateRequest struct {
	Delay       Opt[float64]   `json:"delay"`
	DueAt       Timestamp      `json:"due_at"`
	ExpiresAt   Timestamp      `json:"expires_at" help:"When the job is dropped, or dead if its topic says so, unless somebody has it then: RFC 3339 text, milliseconds since 1970, or never."`
	TTR         Opt[float64]   `json:"ttr"`
	Priority    Opt[int64]     `json:"priority"`
	MaxAttempts Opt[int64]     `json:"max_attempts"`
	Body        Body           `json:"body"`
	BodyBase64  Opt[string]    `json:"body_base64"`
	Backoff     BackoffRequest `json:"backoff"`
	Headers     Headers        `json:"headers"`
	PushURL     Opt[string]    `json:"push_url"`
	Condition
}

func (q *UpdateRequest) SetDue(update *jobpb.Update, now time.Time) error {
	if q.Delay.Set {
		update.DelayMs = new(job.MillisOf(q.Delay.V))
	}
	if !q.DueAt.Set {
		return nil
	}
	due, err := q.DueAt.Millis("due_at", now)
	update.DueMs = &due
	if q.Delay.Set {
		return nil // the error that both are given is more helpful; oplog.CheckOp returns it
	}
	return err
}

// Expiry reads when the job expires; 0: never from now on.
func (q *UpdateRequest) Expiry(now time.Time) (int64, error) {
	if !q.ExpiresAt.Number && q.ExpiresAt.Text == "never" {
		return 0, nil
	}
	at, err := q.ExpiresAt.Millis("expires_at", now)
	if err == nil && at <= now.UnixMilli() {
		err = job.Invalid("expires_at", "is %s, which has passed; delete the job instead", job.Instant(at))
	}
	return at, err
}

// SetOptions sets the backoff and the headers. An empty list removes the backoff. The
// headers replace all existing ones.
func (q *UpdateRequest) SetOptions(update *jobpb.Update) error {
	if q.Backoff.none() {
		update.Backoff, q.Backoff.Set = &jobpb.Backoff{}, false
	}
	e, err := OptionsOf(&q.Backoff, q.Headers)
	if err != nil {
		return err
	}
	if q.Backoff.Set {
		update.Backoff = e.GetBackoff()
	}
	if q.Headers.Set {
		update.Headers = &jobpb.Headers{List: e.GetHeaders()}
	}
	return nil
}

// Condition has the fields that restrict a request to a job in a certain revision or state.
type Condition struct {
	IfRevision Opt[int64]                `json:"if_revision"`
	IfState    List[string, StatesLimit] `json:"if_state"`
}

func (c *Condition) Proto() (*jobpb.Condition, error) {
	if !c.IfRevision.Set && !c.IfState.Set {
		return nil, nil
	}
	made := &jobpb.Condition{}
	if c.IfRevision.Set {
		revision, err := Uint32Of("if_revision", c.IfRevision.V)
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			return nil, job.Invalid("if_revision", "is 0; revisions start with 1")
		}
		made.Revision = revision
	}
	if c.IfState.Set && len(c.IfState.V) == 0 {
		return nil, job.Invalid("if_state", "is empty; it takes a list of delayed, ready, reserved, dead, finished and deleted")
	}
	for _, name := range c.IfState.V {
		state, ok := StatesByName[name]
		if !ok {
			return nil, job.Invalid("if_state", "has %.40q; it takes delayed, ready, reserved, dead, finished and deleted", name)
		}
		if !slices.Contains(made.States, state) {
			made.States = append(made.States, state)
		}
	}
	return made, nil
}

// StatesByName has the states of jobs by their names in requests.
var StatesByName = map[string]jobpb.State{
	"delayed":  jobpb.State_STATE_DELAYED,
	"ready":    jobpb.State_STATE_READY,
	"reserved": jobpb.State_STATE_RESERVED,
	"dead":     jobpb.State_STATE_DEAD,
	"finished": jobpb.State_STATE_FINISHED,
	"deleted":  jobpb.State_STATE_DELETED,
}

var ifExists = map[string]jobpb.IfExists{
	"conflict": jobpb.IfExists_IF_EXISTS_CONFLICT,
	"keep":     jobpb.IfExists_IF_EXISTS_KEEP,
	"replace":  jobpb.IfExists_IF_EXISTS_REPLACE,
	"postpone": jobpb.IfExists_IF_EXISTS_POSTPONE,

	"replace_ended": jobpb.IfExists_IF_EXISTS_REPLACE_ENDED,
}

// SetIfExists sets what an add does if a job with its id exists.
func (q *AddRequest) SetIfExists(add *jobpb.Add) error {
	what, ok := ifExists[q.IfExists.Or("conflict")]
	if !ok {
		return job.Invalid("if_exists", "is %.40q; it takes conflict, keep, replace, replace_ended and postpone", q.IfExists.V)
	}
	if q.IfExists.Set && add.Id == "" {
		return job.Invalid("if_exists", "is given without an id")
	}
	c, err := q.Condition.Proto()
	if err != nil {
		return err
	}
	if c != nil && what != jobpb.IfExists_IF_EXISTS_REPLACE && what != jobpb.IfExists_IF_EXISTS_POSTPONE {
		return job.Invalid("if_revision", "and if_state need if_exists to be replace or postpone")
	}
	add.IfExists, add.Condition = what, c
	return nil
}

type Added struct {
	ID        string `json:"id"`
	Seq       uint64 `json:"seq"`
	State     string `json:"state"`
	DueAt     Time   `json:"due_at,omitzero"`
	Revision  uint64 `json:"revision"`
	Existing  bool   `json:"existing"`
	Ended     bool   `json:"ended,omitzero"`
	Replaced  bool   `json:"replaced,omitzero"`
	Postponed bool   `json:"postponed,omitzero"`
}

type AddResult struct {
	Success   bool   `json:"success"`
	ID        string `json:"id,omitzero"`
	Seq       uint64 `json:"seq,omitzero"`
	State     string `json:"state,omitzero"`
	DueAt     Time   `json:"due_at,omitzero"`
	Revision  uint64 `json:"revision,omitzero"`
	Existing  bool   `json:"existing,omitzero"`
	Ended     bool   `json:"ended,omitzero"`
	Replaced  bool   `json:"replaced,omitzero"`
	Postponed bool   `json:"postponed,omitzero"`
	Failure
}

type AddResults struct {
	Results []AddResult `json:"results"`
}

type Changed struct {
	ID            string `json:"id"`
	Seq           uint64 `json:"seq"`
	State         string `json:"state"`
	Revision      uint64 `json:"revision,omitzero"`
	DueAt         Time   `json:"due_at,omitzero"`
	ReservedUntil Time   `json:"reserved_until,omitzero"`
}

type ChangeResult struct {
	Success       bool   `json:"success"`
	ID            string `json:"id,omitzero"`
	Seq           uint64 `json:"seq,omitzero"`
	State         string `json:"state,omitzero"`
	Revision      uint64 `json:"revision,omitzero"`
	DueAt         Time   `json:"due_at,omitzero"`
	ReservedUntil Time   `json:"reserved_until,omitzero"`
	Failure
}

type ChangeResults struct {
	Results []ChangeResult `json:"results"`
}

type GetResults struct {
	Results []GetResult `json:"results"`
}

type Finished struct {
	ID            string      `json:"id,omitzero"`
	Seq           uint64      `json:"seq,omitzero"`
	State         string      `json:"state,omitzero"`
	Revision      uint64      `json:"revision,omitzero"`
	DueAt         Time        `json:"due_at,omitzero"`
	ReservedUntil Time        `json:"reserved_until,omitzero"`
	Results       []AddResult `json:"results,omitzero"`
}

type JobPage struct {
	Jobs       []Job  `json:"jobs"`
	Next       string `json:"next,omitzero"`
	Incomplete bool   `json:"incomplete,omitzero"`
}

// Rest is what a call that changes found jobs has left.
type Rest struct {
	Skipped    uint64 `json:"skipped,omitzero" help:"Jobs that are found and stay as they are."`
	Reason     string `json:"reason,omitzero" help:"Why the first job was skipped."`
	Incomplete bool   `json:"incomplete,omitzero"`
	More       bool   `json:"more,omitzero"`
	Next       string `json:"next,omitzero" help:"The cursor of the call that goes on."`
}

type UpdatedJobs struct {
	Updated uint64 `json:"updated" help:"Jobs changed."`
	Rest    `skipped:"Jobs that are found but cannot be changed, such as reserved ones."`
}

type DeletedJobs struct {
	Deleted uint64 `json:"deleted"`
	Rest    `skipped:"Jobs that are found but cannot be deleted."`
}

type KickedJobs struct {
	Kicked uint64 `json:"kicked"`
	Rest   `skipped:"Jobs that are found but are neither dead nor delayed."`
}

type Backoff struct {
	Delays []Seconds `json:"delays,omitzero"`
	Base   Seconds   `json:"base,omitzero"`
	Factor float64   `json:"factor,omitzero"`
	Max    Seconds   `json:"max,omitzero" help:"The longest wait, in seconds." limit:"delay"`
	Jitter float64   `json:"jitter,omitzero"`
}

type History struct {
	ID      string  `json:"id"`
	Seq     uint64  `json:"seq"`
	Topic   string  `json:"topic"`
	State   string  `json:"state"`
	Events  []Event `json:"events" help:"What happened, oldest first."`
	Dropped uint64  `json:"dropped" help:"Events after the first that are not kept any more."`
}

type Event struct {
	At       Time    `json:"at"`
	Event    string  `json:"event" help:"What happened, such as reserved or timed_out."`
	State    string  `json:"state"`
	Attempt  *uint64 `json:"attempt,omitzero" help:"The attempt that it belongs to."`
	DueAt    Time    `json:"due_at,omitzero"`
	Consumer string  `json:"consumer,omitzero"`
	Reason   string  `json:"reason,omitzero"`
}

type Explanation struct {
	ID     string  `json:"id"`
	Seq    uint64  `json:"seq"`
	Topic  string  `json:"topic"`
	State  string  `json:"state"`
	DueAt  Time    `json:"due_at,omitzero"`
	Late   Seconds `json:"late"`
	Text   string  `json:"text"`
	Causes []Cause `json:"causes" help:"What keeps, or kept, the job from its consumer."`
}

type Cause struct {
	Cause string  `json:"cause" help:"What it is." of:"not_due paused rate max_reserved jobs_ahead no_consumer reserved dead finished deleted not_recorded expires expired no_target"`
	Late  Seconds `json:"late,omitzero"`
	Until Time    `json:"until,omitzero" help:"When it ends; of a cause, at the latest."`
	At    Time    `json:"at,omitzero"`
	Count uint64  `json:"count,omitzero"`
	// What the text has beside the instant.
	Consumer string `json:"consumer,omitzero" help:"Who has reserved the job, if it said so."`
	Reason   string `json:"reason,omitzero" help:"Why the job is dead, 100 characters at most; absent if no reason was given."`
	Then     string `json:"then,omitzero" help:"What becomes of a job that expires." of:"dead dropped"`
	Text     string `json:"text"`
}

type (
	ChangeBatch struct {
		Batch[ChangeItem] `required:"jobs"`
	}
	UpdateBatch struct {
		Batch[UpdateItem] `required:"jobs"`
	}
	ImportBatch struct {
		Batch[ImportItem] `required:"jobs" jobs:"The jobs to import, 1 to 1000."`
	}
)

// What each change takes of a ChangeItem.
type (
	FinishRequest struct {
		ID    Opt[string]                  `json:"id"`
		Token Opt[string]                  `json:"token"`
		Then  List[AddRequest, BatchLimit] `json:"then" help:"Jobs to add in the same step as the finish."`
	}
	ReleaseRequest struct {
		ID       Opt[string]  `json:"id"`
		Token    Opt[string]  `json:"token"`
		Delay    Opt[float64] `json:"delay"`
		Priority Opt[int64]   `json:"priority"`
		Reason   Opt[string]  `json:"reason"`
	}
	TouchRequest struct {
		ID    Opt[string]  `json:"id"`
		Token Opt[string]  `json:"token"`
		TTR   Opt[float64] `json:"ttr"`
	}
	BuryRequest struct {
		ID       Opt[string] `json:"id"`
		Token    Opt[string] `json:"token"`
		Priority Opt[int64]  `json:"priority"`
		Reason   Opt[string] `json:"reason"`
	}
	KickRequest struct {
		ToTopic Opt[string] `json:"to_topic"`
	}
	MoveRequest struct {
		ID    Opt[string] `json:"id"`
		Token Opt[string] `json:"token"`
		To    Opt[string] `json:"to" help:"The topic that the job goes to." limit:"name"`
	}
)

// Job and JobReply have the fields of job.Fields, and a body. GetResult has those or says why the
// job is not there.
type (
	Job       struct{}
	JobReply  struct{}
	GetResult struct{}
)
