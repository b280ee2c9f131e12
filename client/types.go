package client

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// NewJob is a job to add.
type NewJob struct {
	// ID is the job's id, unique while the job exists. Empty: the client chooses a random
	// one.
	ID    string
	Topic string
	Body  Body
	// Delay and DueAt are when the job becomes due: after a time, or at a time. At most one
	// may be set; neither means now.
	Delay time.Duration
	DueAt time.Time
	// ExpiresAt is when the job is dropped, or dead if its topic says so, unless somebody
	// has it then; zero means never, or as the topic's settings say.
	ExpiresAt time.Time
	// TTR is how long one reservation lasts; 0 means the topic's setting, or 60 s if there
	// is none.
	TTR time.Duration
	// Priority orders the ready jobs of a topic, smallest first; nil means 1024.
	Priority *uint32
	// MaxAttempts is how often the job is delivered before it is dead; 0 means no limit, nil
	// means the topic's setting, or 16 if there is none.
	MaxAttempts *uint32
	// Backoff is how long the job waits after a failed attempt; nil means the topic's
	// setting, or if there is none 1 s after the first release, doubling up to an hour.
	Backoff *Backoff
	// Headers are returned with each reservation: up to 64 names and 8 KiB. The names
	// traceparent and tracestate are those of the job's trace (docs/tracing.md).
	Headers map[string]string
	// PushURL is where the job is posted instead of the URL of its topic. It needs a topic
	// whose Push has JobURLs.
	PushURL string
	// IfExists is what to do if a job with ID exists; empty means Conflict.
	IfExists IfExists
	// Condition is a condition on the existing job for Replace and Postpone.
	Condition
}

// Backoff is how long a job waits after it was released without a delay or its lease
// expired: either Delays, one for each attempt and the last for all later ones; or Base
// after the first attempt, multiplied by Factor (0 means 2) after each further one, up to Max
// (0 means an hour).
type Backoff struct {
	Delays []Duration `json:"delays,omitempty"`
	Base   Duration   `json:"base,omitzero"`
	Factor float64    `json:"factor,omitzero"`
	Max    Duration   `json:"max,omitzero"`
	// Jitter is the share of a wait, 0 to 1, from which a random part is subtracted.
	Jitter float64 `json:"jitter,omitzero"`
}

// IfExists is what an add does if a job with its id exists.
type IfExists string

const (
	Conflict IfExists = "conflict" // if it is the same job Existing is set, otherwise CodeIDConflict
	Keep     IfExists = "keep"     // the existing job stays, and Existing is set
	Replace  IfExists = "replace"  // the new job replaces it, unless it is reserved
	Postpone IfExists = "postpone" // a delayed or ready job gets the new due time and keeps the rest
	// ReplaceEnded replaces a job that is dead, or finished or deleted and retained; else it is as
	// Conflict. It needs cluster version 2.
	ReplaceEnded IfExists = "replace_ended"
)

// State is the state of a job.
type State string

const (
	StateDelayed  State = "delayed"
	StateReady    State = "ready"
	StateReserved State = "reserved"
	StateDead     State = "dead"
	StateFinished State = "finished" // and kept by its topic's retention, as a deleted one
	StateDeleted  State = "deleted"
)

// Condition is a condition on the job's revision or state. If the job does not meet it the
// call fails with CodeConditionFailed and changes nothing. The zero value is no condition.
type Condition struct {
	IfRevision uint32  `json:"if_revision,omitzero"`
	IfState    []State `json:"if_state,omitempty"` // any of these
}

// Update has the changes to a job. Fields that are zero or nil stay.
type Update struct {
	Delay       *time.Duration // until it is due, from now; 0 is now
	DueAt       time.Time
	ExpiresAt   time.Time
	NeverExpire bool // takes ExpiresAt away
	TTR         time.Duration
	Priority    *uint32
	MaxAttempts *uint32
	Body        *Body
	Backoff     *Backoff          // &Backoff{} removes it
	Headers     map[string]string // replaces all; an empty map removes them
	PushURL     *string           // an empty one removes it
	Condition
}

// Added is the result of an add.
type Added struct {
	ID       string    `json:"id"`
	Seq      uint64    `json:"seq"`
	State    State     `json:"state"` // delayed or ready; any when Existing
	DueAt    time.Time `json:"due_at"`
	Revision uint32    `json:"revision"`
	// Existing is set if no job was added because one existed.
	Existing bool `json:"existing"`
	// Ended is set with Existing if that job is dead, finished or deleted, so that nothing runs
	// because of this add. ReplaceEnded adds a new job then.
	Ended bool `json:"ended,omitzero"`
	// Replaced is set if the job replaced another one, Postponed if the existing job got
	// another due time.
	Replaced  bool `json:"replaced,omitzero"`
	Postponed bool `json:"postponed,omitzero"`
}

// AddResult is one item of AddBatch; Err is nil or an *Error.
type AddResult struct {
	Added
	Err error
}

// Ref names a job by its id, or one reservation of it by its token, or both. A call with a
// token fails once that reservation has ended.
type Ref struct {
	ID    string `json:"id,omitzero"`
	Token string `json:"token,omitzero"`
}

// ReserveOptions selects the jobs to reserve.
type ReserveOptions struct {
	Topics []string
	Max    int           // 1 to 1000 jobs; 0 means 1
	Wait   time.Duration // how long to wait for a job; 0: not at all
	TTR    time.Duration // of the reservations; 0: each job's own
	// Consumer is a name of up to 64 bytes, shown with reserved jobs and in their history.
	Consumer string
}

// Reserved is a job that the caller has reserved.
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
	PushURL       string            `json:"push_url,omitzero"` // of a job that was not posted to it
	Body
}

// Ref names this reservation.
func (r Reserved) Ref() Ref { return Ref{ID: r.ID, Token: r.Token} }

// ReleaseOptions has the options for releasing a job.
type ReleaseOptions struct {
	Delay    time.Duration // until it is due again; 0: by its backoff
	AtOnce   bool          // ready again now, at its old position
	Priority *uint32       // nil: as before
	Reason   string        // kept with the job
}

// BuryOptions has the options for burying a job.
type BuryOptions struct {
	Priority *uint32 // nil: as before
	Reason   string  // kept with the job
}

// Changed is the result of a change of a job.
type Changed struct {
	ID            string    `json:"id"`
	Seq           uint64    `json:"seq"`
	State         State     `json:"state"`
	Revision      uint32    `json:"revision,omitzero"`
	DueAt         time.Time `json:"due_at,omitzero"`
	ReservedUntil time.Time `json:"reserved_until,omitzero"`
}

// Job is a job with all its fields.
type Job struct {
	ID            string            `json:"id"`
	Seq           uint64            `json:"seq"`
	Topic         string            `json:"topic"`
	State         State             `json:"state"`
	Revision      uint32            `json:"revision"`
	Priority      uint32            `json:"priority"`
	DueAt         time.Time         `json:"due_at"`
	Delay         Duration          `json:"delay"`
	TTR           Duration          `json:"ttr"`
	Attempts      uint32            `json:"attempts"`
	MaxAttempts   uint32            `json:"max_attempts"`
	CreatedAt     time.Time         `json:"created_at"`
	ModifiedAt    time.Time         `json:"modified_at"` // becoming due does not count
	ReservedUntil time.Time         `json:"reserved_until,omitzero"`
	ReservedBy    string            `json:"reserved_by,omitzero"` // ReserveOptions.Consumer
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
	PushURL       string            `json:"push_url,omitzero"`
	Headers       map[string]string `json:"headers,omitempty"`
	Body
}

// GetResult is one item of GetBatch; Err is nil or an *Error, such as one with CodeNotFound.
type GetResult struct {
	Job
	Err error
}

// History has the events of a job. The first one is the add.
type History struct {
	ID     string  `json:"id"`
	Seq    uint64  `json:"seq"`
	Topic  string  `json:"topic"`
	State  State   `json:"state"`
	Events []Event `json:"events"`
	// Dropped is the number of events after the add that were dropped, because only the
	// latest are kept.
	Dropped uint64 `json:"dropped"`
}

// Event is an event of a job.
type Event struct {
	At       time.Time `json:"at"`
	Event    string    `json:"event"` // what, such as "reserved"
	State    State     `json:"state"` // of the job after the event
	Attempt  uint32    `json:"attempt,omitzero"`
	DueAt    time.Time `json:"due_at,omitzero"`
	Consumer string    `json:"consumer,omitzero"`
	Reason   string    `json:"reason,omitzero"`
}

// Topic has the counts of a topic: jobs by state now, and totals.
type Topic struct {
	Name        string    `json:"topic"`
	Delayed     uint64    `json:"delayed"`
	Ready       uint64    `json:"ready"`
	Reserved    uint64    `json:"reserved"`
	Dead        uint64    `json:"dead"`
	Retained    uint64    `json:"retained"` // finished and deleted, and kept by the topic's retention
	OldestDueAt time.Time `json:"oldest_due_at,omitzero"`
	// Paused is set while no job is delivered: until PausedUntil, or if that is zero until
	// the topic is resumed.
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
	Expired        uint64    `json:"expired,omitzero"` // dropped or dead because they were not reserved in time
	// SettingsRevision is not 0 if the topic has settings.
	SettingsRevision uint64 `json:"settings_revision,omitzero"`
}

// Stats has the sums over all topics.
type Stats struct {
	Topics   uint64 `json:"topics"` // topics with jobs now or within the last hour
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"` // finished and deleted, and kept by their topics' retention
}

// RemovedNode is a node that was removed from the cluster, and must not join again before it
// is admitted.
type RemovedNode struct {
	ID        string    `json:"id"`
	RemovedAt time.Time `json:"removed_at"`
}

// Member is a node of the cluster.
type Member struct {
	ID           string `json:"id"`
	Address      string `json:"address"`
	HTTPAddress  string `json:"http_address"`
	Role         string `json:"role"` // "leader" or "follower"
	Voter        bool   `json:"voter"`
	NonVoter     bool   `json:"non_voter"` // it was started with --non-voter
	Alive        bool   `json:"alive"`
	Draining     bool   `json:"draining"` // it is drained, or about to stop: it does not lead, and clients should use other nodes
	AppliedIndex uint64 `json:"applied_index"`
	Lag          uint64 `json:"lag"`       // log entries behind the leader
	DiskFree     uint64 `json:"disk_free"` // bytes on the disk of its data directory; 0 while it does not reply
	DiskLow      bool   `json:"disk_low"`  // that is below its low-water mark
	Version      string `json:"version"`

	ClusterVersion    uint32 `json:"cluster_version"`     // in the node's state
	MinClusterVersion uint32 `json:"min_cluster_version"` // that the node's release runs; 0 while it does not reply
	MaxClusterVersion uint32 `json:"max_cluster_version"`

	// Admission is what a node needs to become a member, as the node that replied knows it: the
	// same for all members. Empty: the caller may not know it, or that node is of an older release.
	Admission string `json:"admission,omitzero"`
}

// Health is the cluster's state for an operator.
type Health struct {
	Healthy          bool     `json:"healthy"`           // despite problems that are only to be solved in time
	FailureTolerance int      `json:"failure_tolerance"` // voters that may still fail
	Severity         string   `json:"severity"`          // none, warning or critical; empty: an older node
	Reasons          []string `json:"reasons"`
	// Problems are the reasons with their severities.
	Problems       []Problem `json:"problems"`
	ClusterVersion uint32    `json:"cluster_version"`
	Upgrade        string    `json:"upgrade"` // what a raise of the cluster version waits for; empty: there is none to make
}

// Problem is a reason of Health.
type Problem struct {
	Severity  string    `json:"severity"` // warning or critical
	Reason    string    `json:"reason"`
	Kind      string    `json:"kind"`          // what it is about, such as node_down; empty: an older node
	Unhealthy bool      `json:"unhealthy"`     // the cluster is not healthy because of it
	Node      string    `json:"node,omitzero"` // the node that it is about; empty: no single one
	At        time.Time `json:"at,omitzero"`   // the instant that it is about; zero: there is none
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

// Duration is a time.Duration that is a number of seconds in JSON. DurationOf makes one.
type Duration struct{ time.Duration }

// DurationOf returns a Duration for settings, backoffs and schedules.
func DurationOf(d time.Duration) Duration { return Duration{d} }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, d.Seconds(), 'f', -1, 64), nil
}

// maxSeconds is the longest Duration; a time.Duration can be slightly longer.
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
