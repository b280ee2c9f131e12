package history

import (
	"sync"
	"time"
)

// Kind is what a client asked for.
type Kind uint8

// The kinds of calls. A reserve is recorded as one Deliver for each job that came
// back, or as one Deliver without ID when its outcome is unknown. When it had room for
// more jobs it is a Reserve, too. A beanstalkd
// delete is a Delete, also by the job's holder.
const (
	Add Kind = iota
	Deliver
	Finish
	Delete
	Release
	Touch
	Bury
	Kick
	KickTopic
	Get   // of a job
	Count // of a topic's jobs
	Update
	Limit  // of a topic: Limits is in force from the end of the call on
	Pause  // of a topic, for as long as Delay
	Resume // of a topic
	Schedule
	Unschedule // Plan has what it counted
	Move       // of a job
	MoveTopic  // of all jobs of a topic
	Purge      // of all jobs of a topic in a State
	Grant      // Credential is good from the end of the call on
	Revoke     // Credential is good no more from the end of the call on
	Reserve    // that had room for more than it Brought
	Quota      // of a namespace, whose topics begin with Topic: Limits is in force from the end of the call on
	kinds
)

var kindNames = [kinds]string{"add", "deliver", "finish", "delete", "release", "touch", "bury", "kick", "kick-topic", "get", "count", "update", "limit", "pause", "resume", "schedule", "unschedule", "move", "move-topic", "purge", "grant", "revoke", "reserve", "quota"}

func (k Kind) String() string { return kindNames[k] }

// reads reports whether calls of the kind change nothing.
func (k Kind) reads() bool { return k == Get || k == Count || k == Reserve }

// Outcome is what the client knows of the effect of its call.
type Outcome uint8

// OK: done. Fail: certainly not done. Unknown: may have been done, now or later.
const (
	OK Outcome = iota
	Fail
	Unknown
	outcomes
)

func (o Outcome) String() string { return [outcomes]string{"ok", "fail", "unknown"}[o] }

// Op is one call on one job, as its client saw it. Instants are microseconds of
// the recorder's clock, which follows the wall clock of the recorder's start and
// never jumps.
type Op struct {
	Kind     Kind
	Outcome  Outcome `json:",omitempty"`
	Code     string  `json:",omitempty"` // why it was refused, in the server's words
	Client   int
	Node     string
	Invoke   int64
	Complete int64 // when the client had its answer; no bound on the effect when unknown

	// ID is the producer's name for the job. Over beanstalkd, where a put has no
	// id of the client's, it is the first word of the body.
	ID    string `json:",omitempty"`
	Topic string `json:",omitempty"` // empty where the client did not learn it
	Seq   uint64 `json:",omitempty"` // given by the server; 0 while unknown

	// Add: what was asked for. MaxAttempts 0 is without limit.
	Delay       time.Duration `json:",omitempty"` // Release has one too
	TTR         time.Duration `json:",omitempty"` // Touch has one too; Deliver when it is not the job's
	MaxAttempts int           `json:",omitempty"`
	Body        string        `json:",omitempty"` // Deliver: what came back

	// Deliver: what came back. Calls with a token carry its Generation. Over
	// beanstalkd there is none: Lease, the recorder's own number, then tells the
	// reservations apart, and ReservedUntil is the earliest that it can be.
	Generation    uint64 `json:",omitempty"`
	Lease         uint64 `json:",omitempty"`
	Attempts      int    `json:",omitempty"` // Get has it too, and an Add that is Imported
	Due           int64  `json:",omitempty"` // microseconds; 0 unknown; Add has one too
	ReservedUntil int64  `json:",omitempty"` // microseconds; Touch has one too
	// Stream numbers the stream that a job came over, 0 for none, and Credit is
	// how many unfinished jobs it may have.
	Stream uint64 `json:",omitempty"`
	Credit int    `json:",omitempty"`
	// Post is there when the job was posted to a target. Until Check looks at it
	// such a delivery has neither a Generation nor a ReservedUntil, and begins when
	// it ends. TTR is how long its reservation lasts.
	Post *Post `json:",omitempty"`

	// Reserve, and Deliver when its outcome is unknown: from where jobs were asked for, the
	// names with spaces between them.
	Topics  string `json:",omitempty"`
	Brought int    `json:",omitempty"` // Reserve: jobs

	Header string `json:",omitempty"` // Add: a header's value; Deliver: what came back, of posts

	// What few adds ask for. IfExists is empty for conflict.
	IfExists string           `json:",omitempty"`
	Backoff  [3]time.Duration `json:",omitzero"` // the shortest waits after the first, the second and each later attempt that fails
	// Result is how an add was answered: created, existing, replaced or
	// postponed; empty where the client did not look.
	Result string `json:",omitempty"`

	// Imported: the add gives the job the Due and the Attempts that it had elsewhere.
	Imported bool `json:",omitempty"`

	To string `json:",omitempty"` // Move, MoveTopic, KickTopic: another topic

	// Reason goes with a Bury. A KickTopic that has one kicks jobs that have it. A
	// Get of a job that is pushed has its last error.
	Reason string  `json:",omitempty"`
	Rate   float64 `json:",omitempty"` // KickTopic: the jobs fall due so many a second; 0: at once

	Moves bool `json:",omitempty"` // Update: Delay is asked for. Body and MaxAttempts are when they are not zero

	// Conditions of an update, a delete, or an add that replaces or postpones.
	IfRevision uint64 `json:",omitempty"`
	IfState    string `json:",omitempty"`
	Revision   uint64 `json:",omitempty"` // of the job after the call; 0 where the client did not learn it

	// Group numbers the calls that do several things, all of them or none, each
	// of which is an Op. A call that is repeated keeps its number.
	Group uint64 `json:",omitempty"`

	// Credential names the text of a token: what the call made or ended, or was made with.
	// Empty: that of the run, or none.
	Credential string `json:",omitempty"`

	State  string  `json:",omitempty"` // Get: what the job was
	Counts *Counts `json:",omitempty"` // Count: what came back
	Limits *Limits `json:",omitempty"` // Limit: what was set
	Plan   *Plan   `json:",omitempty"` // Schedule, Unschedule
}

// Gone is the State of a job that is not there.
const Gone = "gone"

// The Codes that depend on the state of the job: it does not exist, is reserved, is
// dead, or does not meet the condition.
const (
	notFound        = "not_found"
	alreadyReserved = "already_reserved"
	alreadyDead     = "already_dead"
	conditionFailed = "condition_failed"
)

// What an add does when its id is taken, and how it is answered then.
const (
	replace      = "replace"
	replaceEnded = "replace_ended"
	postpone     = "postpone"
	created      = "created"
	replaced     = "replaced"
	postponed    = "postponed"
)

// Counts are the counters of a topic that only grow, as one read saw them.
type Counts struct {
	Stale                    bool  // the node answered from what it had, not from the latest
	Conn                     int64 // the client's connection, by number
	Added, Finished, Deleted uint64
}

// mayReplace reports whether o is an add that can take the place of a job with its id.
func (o *Op) mayReplace() bool {
	return o.Kind == Add && (o.IfExists == replace || o.IfExists == replaceEnded)
}

// moves reports whether the call gives a job that is there another due instant.
func (o *Op) moves() bool { return o.Moves || (o.Kind == Add && o.IfExists == postpone) }

// Limits are those of a topic, or of a namespace; 0 is none.
type Limits struct {
	Pending  int     `json:",omitempty"` // most jobs that are delayed or ready
	Reserved int     `json:",omitempty"` // most jobs that are reserved
	Rate     float64 `json:",omitempty"` // most reservations a second
	Burst    int     `json:",omitempty"` // and at once
	Retain   int     `json:",omitempty"` // seconds, longer than any run, that jobs stay known after their end
	Push     bool    `json:",omitempty"` // the jobs are posted to a target; no client reserves or kicks them

	RefuseLate bool `json:",omitempty"` // a finish is refused once its reservation has expired
	Tokens     bool `json:",omitempty"` // a finish without a token is refused

	// Jobs expire so long after their due instant, and then drop or are dead.
	Expire time.Duration `json:",omitempty"`
	Expiry string        `json:",omitempty"`
	Spread time.Duration `json:",omitempty"` // jobs that are to wait are due within so long after it

	// Of a namespace, which has one of them: most jobs in all states, and most adds a second
	// through each node, of which a second may come at once.
	Jobs    int     `json:",omitempty"`
	AddRate float64 `json:",omitempty"`
}

// writes reports whether the call shows that the cluster accepts writes. A post does
// not, because it may have been sent long before.
func (o *Op) writes() bool { return o.Outcome == OK && !o.Kind.reads() && o.Post == nil }

// maybe reports whether the call may have had its effect.
func (o *Op) maybe() bool { return o.Outcome != Fail }

// Recorder collects operations from many goroutines.
type Recorder struct {
	base time.Time // carries the monotonic clock

	mu        sync.Mutex
	ops       []Op
	lastWrite int64
}

// NewRecorder starts an empty history now.
func NewRecorder() *Recorder { return &Recorder{base: time.Now()} }

// Now is the recorder's clock in microseconds.
func (r *Recorder) Now() int64 { return r.base.UnixMicro() + time.Since(r.base).Microseconds() }

// Record adds operations whose instants came from Now.
func (r *Recorder) Record(ops ...Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, ops...)
	for i := range ops {
		if ops[i].writes() {
			r.lastWrite = max(r.lastWrite, ops[i].Invoke)
		}
	}
}

// LastWrite is when the latest of the acknowledged writes was sent; 0 without one.
func (r *Recorder) LastWrite() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastWrite
}

// Ops is the history so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Op(nil), r.ops...)
}
