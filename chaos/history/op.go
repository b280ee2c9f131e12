package history

import (
	"sync"
	"time"
)

// Kind is what a client asked for.
type Kind uint8

// The kinds of calls. A reserve is recorded as one Deliver for each job that came
// back, or as one Deliver without ID when its outcome is unknown. A beanstalkd
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
	kinds
)

var kindNames = [kinds]string{"add", "deliver", "finish", "delete", "release", "touch", "bury", "kick", "kick-topic", "get", "count"}

func (k Kind) String() string { return kindNames[k] }

// reads reports whether calls of the kind change nothing.
func (k Kind) reads() bool { return k == Get || k == Count }

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
	Attempts      int    `json:",omitempty"` // Get has it too
	Due           int64  `json:",omitempty"` // microseconds; 0 unknown
	ReservedUntil int64  `json:",omitempty"` // microseconds; Touch has one too

	State  string  `json:",omitempty"` // Get: what the job was
	Counts *Counts `json:",omitempty"` // Count: what came back
}

// Gone is the State of a job that is not there.
const Gone = "gone"

// notFound is the Code of a call on a job that is not there.
const notFound = "not_found"

// Counts are the counters of a topic that only grow, as one read saw them.
type Counts struct {
	Stale                    bool  // the node answered from what it had, not from the latest
	Conn                     int64 // the client's connection, by number
	Added, Finished, Deleted uint64
}

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
		if ops[i].Outcome == OK && !ops[i].Kind.reads() {
			r.lastWrite = max(r.lastWrite, ops[i].Complete)
		}
	}
}

// LastWrite is when the latest acknowledged write was answered; 0 without one.
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
