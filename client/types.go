package client

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Add is a job to add.
type Add struct {
	// ID names the job, unique while it lives. Empty: Client.Add gives it a
	// random one.
	ID    string
	Topic string
	Body  Body
	// Delay and DueAt say when the job is due: after a while, or at an instant.
	// At most one may be set; neither means now.
	Delay time.Duration
	DueAt time.Time
	// TTR is how long one reservation lasts; 0 means as the topic's settings
	// say, and without them 60 s.
	TTR time.Duration
	// Priority orders the ready jobs of a topic, smallest first; nil means 1024.
	Priority *uint32
	// MaxAttempts is how often the job is handed out before it is dead; 0 means
	// without limit, nil means as the topic's settings say, and without them 16.
	MaxAttempts *uint32
	// Backoff says how long the job waits after an attempt that failed; nil
	// means as the topic's settings say, and without them not at all.
	Backoff *Backoff
	// Headers come back with each reservation: up to 64 names and 8 KiB.
	Headers map[string]string
	// IfExists says what to do when ID is taken; empty means Conflict.
	IfExists IfExists
	// Condition is asked of the job that Replace or Postpone finds.
	Condition
}

// Backoff says how long a job waits after it was released without a delay or
// overran its TTR: either Delays, one for each attempt and the last for all
// later ones; or Base after the first attempt, Factor times more after each
// further one (0 means 2), up to Max (0 means an hour).
type Backoff struct {
	Delays []Duration `json:"delays,omitempty"`
	Base   Duration   `json:"base,omitzero"`
	Factor float64    `json:"factor,omitzero"`
	Max    Duration   `json:"max,omitzero"`
	// Jitter is the share, 0 to 1, of a wait of which a random part is taken off.
	Jitter float64 `json:"jitter,omitzero"`
}

// IfExists says what an add does when its id is taken.
type IfExists string

const (
	Conflict IfExists = "conflict" // the very same job is Existing, another an error with CodeIDConflict
	Keep     IfExists = "keep"     // whatever is there is Existing
	Replace  IfExists = "replace"  // the new job takes its place, unless it is reserved
	Postpone IfExists = "postpone" // a delayed or ready job gets the new due instant and keeps the rest
)

// Condition narrows a call to a job that is still as it was seen; otherwise the
// call fails with CodeConditionFailed and changes nothing. The zero value asks
// for nothing.
type Condition struct {
	IfRevision uint32   `json:"if_revision,omitzero"`
	IfState    []string `json:"if_state,omitempty"` // any of "delayed", "ready", "reserved", "dead", "finished", "deleted"
}

// Update is what to change of a job; what is zero or nil stays.
type Update struct {
	Delay       *time.Duration // until it is due, from now; 0 is now
	DueAt       time.Time
	TTR         time.Duration
	Priority    *uint32
	MaxAttempts *uint32
	Body        *Body
	Backoff     *Backoff          // &Backoff{} takes it away
	Headers     map[string]string // all of them; an empty map takes them away
	Condition
}

// Added is what became of an add.
type Added struct {
	ID       string    `json:"id"`
	Seq      uint64    `json:"seq"`
	State    string    `json:"state"` // "delayed" or "ready"; anything when Existing
	DueAt    time.Time `json:"due_at"`
	Revision uint32    `json:"revision"`
	// Existing is set when no job was made because one was there already.
	Existing bool `json:"existing"`
	// Replaced is set when another job gave way, Postponed when the job that
	// was there got another due instant.
	Replaced  bool `json:"replaced,omitzero"`
	Postponed bool `json:"postponed,omitzero"`
}

// AddResult is one item of AddBatch; Err is nil or an *Error.
type AddResult struct {
	Added
	Err error
}

// Ref names a job by its id, or one reservation of it by its token, or both.
// With a token a call applies only while that very reservation lasts.
type Ref struct {
	ID    string `json:"id,omitzero"`
	Token string `json:"token,omitzero"`
}

// Reserve asks for jobs.
type Reserve struct {
	Topics []string
	Max    int           // 1 to 1000 jobs; 0 means 1
	Wait   time.Duration // how long to wait for a job; 0: not at all
	TTR    time.Duration // how long the reservations last; 0: each job's own
	// Consumer says who asks, in up to 64 bytes: the jobs show it while they are
	// reserved, and their history keeps it.
	Consumer string
}

// Reserved is a job that was handed out to the caller.
type Reserved struct {
	ID            string            `json:"id"`
	Seq           uint64            `json:"seq"`
	Topic         string            `json:"topic"`
	Token         string            `json:"token"`
	Attempts      uint32            `json:"attempts"`
	Priority      uint32            `json:"priority"`
	DueAt         time.Time         `json:"due_at"`
	ReservedUntil time.Time         `json:"reserved_until"`
	TTR           Duration          `json:"ttr"`
	Headers       map[string]string `json:"headers,omitempty"`
	Body
}

// Ref names this reservation.
func (r *Reserved) Ref() Ref { return Ref{ID: r.ID, Token: r.Token} }

// Release says how a job is given back.
type Release struct {
	// Delay until it is due again; 0: as its backoff says, and without one at
	// once, in its old place.
	Delay    time.Duration
	AtOnce   bool    // whatever its backoff says
	Priority *uint32 // nil: as before
	Reason   string  // kept with the job
}

// Bury says how a job is set aside.
type Bury struct {
	Priority *uint32 // nil: as before
	Reason   string  // kept with the job
}

// Changed is what became of a job.
type Changed struct {
	ID            string    `json:"id"`
	Seq           uint64    `json:"seq"`
	State         string    `json:"state"`
	Revision      uint32    `json:"revision,omitzero"`
	DueAt         time.Time `json:"due_at,omitzero"`
	ReservedUntil time.Time `json:"reserved_until,omitzero"`
}

// Job is everything known of a job.
type Job struct {
	ID            string            `json:"id"`
	Seq           uint64            `json:"seq"`
	Topic         string            `json:"topic"`
	State         string            `json:"state"`
	Revision      uint32            `json:"revision"`
	Priority      uint32            `json:"priority"`
	DueAt         time.Time         `json:"due_at"`
	Delay         Duration          `json:"delay"`
	TTR           Duration          `json:"ttr"`
	Attempts      uint32            `json:"attempts"`
	MaxAttempts   uint32            `json:"max_attempts"`
	CreatedAt     time.Time         `json:"created_at"`
	ModifiedAt    time.Time         `json:"modified_at"` // falling due is no change
	ReservedUntil time.Time         `json:"reserved_until,omitzero"`
	ReservedBy    string            `json:"reserved_by,omitzero"` // Reserve.Consumer
	DiedAt        time.Time         `json:"died_at,omitzero"`
	FinishedAt    time.Time         `json:"finished_at,omitzero"`
	DeletedAt     time.Time         `json:"deleted_at,omitzero"`
	RetainedUntil time.Time         `json:"retained_until,omitzero"`
	ExpiresAt     time.Time         `json:"expires_at,omitzero"` // zero: never
	Reason        string            `json:"reason"`
	LastError     string            `json:"last_error,omitzero"`
	Reserves      uint32            `json:"reserves"`
	Timeouts      uint32            `json:"timeouts"`
	Releases      uint32            `json:"releases"`
	Buries        uint32            `json:"buries"`
	Kicks         uint32            `json:"kicks"`
	Backoff       *Backoff          `json:"backoff,omitzero"`
	Headers       map[string]string `json:"headers,omitempty"`
	Body
}

// History is what happened to a job. Its first event is the add.
type History struct {
	ID     string  `json:"id"`
	Seq    uint64  `json:"seq"`
	Topic  string  `json:"topic"`
	State  string  `json:"state"`
	Events []Event `json:"events"`
	// Dropped counts the events after the add that were forgotten, because
	// only the latest are kept.
	Dropped uint64 `json:"dropped"`
}

// Event is one thing that happened to a job.
type Event struct {
	At       time.Time `json:"at"`
	Event    string    `json:"event"` // what, such as "reserved"
	State    string    `json:"state"` // of the job after it
	Attempt  uint32    `json:"attempt,omitzero"`
	DueAt    time.Time `json:"due_at,omitzero"`
	Consumer string    `json:"consumer,omitzero"`
	Reason   string    `json:"reason,omitzero"`
}

// Topic is the counts of a topic: jobs by state now, and totals.
type Topic struct {
	Name        string    `json:"topic"`
	Delayed     uint64    `json:"delayed"`
	Ready       uint64    `json:"ready"`
	Reserved    uint64    `json:"reserved"`
	Dead        uint64    `json:"dead"`
	Retained    uint64    `json:"retained"` // finished and deleted, still known
	OldestDueAt time.Time `json:"oldest_due_at,omitzero"`
	// Paused says that no job is handed out: until PausedUntil, and when that is
	// zero until the topic is resumed.
	Paused      bool      `json:"paused"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// ThrottledUntil is when the topic's rate allows another job, if none was
	// allowed when the topic last changed; it may have passed.
	ThrottledUntil time.Time `json:"throttled_until,omitzero"`
	Added          uint64    `json:"added"`
	Finished       uint64    `json:"finished"`
	Deleted        uint64    `json:"deleted"`
	Timeouts       uint64    `json:"timeouts"`
	Died           uint64    `json:"died"`
	Expired        uint64    `json:"expired,omitzero"` // dropped or dead because nobody took them in time
	// SettingsRevision is not 0 when the topic has settings.
	SettingsRevision uint64 `json:"settings_revision,omitzero"`
}

// Stats are the counts of all topics together.
type Stats struct {
	Topics   uint64 `json:"topics"` // those that have jobs, or had some within the last hour
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"` // finished and deleted, still known
}

// Member is a node of the cluster.
type Member struct {
	ID           string `json:"id"`
	Address      string `json:"address"`
	HTTPAddress  string `json:"http_address"`
	Role         string `json:"role"` // "leader" or "follower"
	Voter        bool   `json:"voter"`
	Alive        bool   `json:"alive"`
	AppliedIndex uint64 `json:"applied_index"`
	Lag          uint64 `json:"lag"` // log entries behind the leader
	Version      string `json:"version"`

	ClusterVersion    uint32 `json:"cluster_version"`     // as the node's state has it
	MinClusterVersion uint32 `json:"min_cluster_version"` // that the node's release runs; 0 while it does not answer
	MaxClusterVersion uint32 `json:"max_cluster_version"`
}

// Health is the cluster's state for an operator.
type Health struct {
	Healthy          bool     `json:"healthy"`
	FailureTolerance int      `json:"failure_tolerance"` // voters that may still fail
	Reasons          []string `json:"reasons"`
	ClusterVersion   uint32   `json:"cluster_version"`
	Upgrade          string   `json:"upgrade"` // what a raise of the cluster version waits for; empty: nothing is to be raised
}

// Verification compares the states of all nodes at one index of the log.
type Verification struct {
	Equal   bool         `json:"equal"`
	Index   uint64       `json:"index"`
	Digests []NodeDigest `json:"digests"`
}

// NodeDigest is one node's part of a Verification.
type NodeDigest struct {
	ID     string `json:"id"`
	Digest string `json:"digest"` // empty when Error is set
	Error  string `json:"error,omitzero"`
}

// Duration is a time.Duration that is a number of seconds in JSON.
type Duration struct{ time.Duration }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, d.Seconds(), 'f', -1, 64), nil
}

// maxSeconds is the longest Duration; a time.Duration holds a little more.
const maxSeconds = 9e9

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	s, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return err
	}
	if math.Abs(s) > maxSeconds {
		return fmt.Errorf("%g seconds is out of range", s)
	}
	// The server counts milliseconds; rounding undoes the binary fraction.
	d.Duration = time.Duration(math.Round(s*1000)) * time.Millisecond
	return nil
}
