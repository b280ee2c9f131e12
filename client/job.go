package client

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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

// Body is the body of a job in its JSON form. Create one with Text, Bytes or JSON. The zero
// Body is no body, which the server rejects.
type Body struct {
	// Value is any JSON value. A string is the body's unescaped bytes.
	Value json.RawMessage `json:"body,omitzero"`
	// Base64 is set instead when the bytes are not UTF-8.
	Base64 string `json:"body_base64,omitzero"`
}

// Text returns a body with the bytes of s.
func Text(s string) Body { return Bytes([]byte(s)) }

// Bytes returns a body with the bytes b.
func Bytes(b []byte) Body {
	if !utf8.Valid(b) {
		return Body{Base64: base64.StdEncoding.EncodeToString(b)}
	}
	// Valid UTF-8 always has a quoted form.
	quoted, _ := jsontext.AppendQuote(nil, b)
	return Body{Value: quoted}
}

// JSON returns a body that is the JSON value with this text. White space between its tokens
// is removed when it is sent.
func JSON(text []byte) Body { return Body{Value: text} }

// IsJSON reports whether the body is a JSON value other than a string.
func (b Body) IsJSON() bool { return len(b.Value) > 0 && b.Value[0] != '"' }

// Bytes returns the bytes of the body; for a JSON value its text.
func (b Body) Bytes() []byte {
	if b.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(b.Base64)
		if err != nil {
			return nil
		}
		return raw
	}
	if len(b.Value) == 0 || b.Value[0] != '"' {
		return b.Value
	}
	raw, err := jsontext.AppendUnquote(nil, b.Value)
	if err != nil {
		return nil
	}
	return raw
}

func (b *Backoff) isZero() bool {
	return len(b.Delays) == 0 && b.Base.Duration == 0 && b.Factor == 0 && b.Max.Duration == 0 && b.Jitter == 0
}
