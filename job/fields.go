package job

import (
	"strings"

	"tarry/job/jobpb"
)

// A Field is a row of the table of a job's fields except the body, which serves the HTTP
// API, the Go client's test and the docs. The values come from fsm (View.describe).
type Field struct {
	Name string // of the HTTP API
	Type FieldType
	Help string // what it is

	// In is the only state in which it is shown; STATE_NONE: it is shown in all.
	In jobpb.State
	// Optional: it is omitted if it is 0 or empty.
	Optional bool

	number func(*jobpb.Job) int64
	text   func(*jobpb.Job) string
}

// FieldType is the form of a field.
type FieldType int

const (
	FieldText     FieldType = iota
	FieldNumber             // a whole number
	FieldInstant            // RFC 3339; the number is Unix milliseconds
	FieldDuration           // seconds; the number is milliseconds
	FieldState              // the name of a jobpb.State
	FieldBackoff            // a jobpb.Backoff
	FieldHeaders            // a map of names to values
)

// Fields are all fields, in the order in which they are shown. A new one is a field of
// jobpb.Job, a row here, a member of client.Job, and its value in fsm.
var Fields = []*Field{
	{Name: "id", Type: FieldText, text: (*jobpb.Job).GetId, Help: "the producer's name of the job, or the server's"},
	{Name: "seq", Type: FieldNumber, number: asNumber((*jobpb.Job).GetSeq), Help: "the number of the job, in the order of the adds"},
	{Name: "topic", Type: FieldText, text: (*jobpb.Job).GetTopic, Help: "the topic that the job is in"},
	{Name: "state", Type: FieldState, Help: "`delayed`, `ready`, `reserved`, `dead`, `finished` or `deleted`"},
	{Name: "revision", Type: FieldNumber, number: asNumber((*jobpb.Job).GetRevision), Help: "1, and one more with every change; falling due is none"},
	{Name: "priority", Type: FieldNumber, number: asNumber((*jobpb.Job).GetPriority), Help: "the smallest is handed out first"},
	{Name: "due_at", Type: FieldInstant, number: (*jobpb.Job).GetDueMs, Help: "when the job becomes or became ready"},
	{Name: "delay", Type: FieldDuration, number: (*jobpb.Job).GetDelayMs, Help: "the delay that the last add, change or release gave it"},
	{Name: "ttr", Type: FieldDuration, number: (*jobpb.Job).GetTtrMs, Help: "how long a reservation lasts"},
	{Name: "attempts", Type: FieldNumber, number: asNumber((*jobpb.Job).GetAttempts), Help: "attempts so far; bringing back a dead job sets it to 0"},
	{Name: "max_attempts", Type: FieldNumber, number: asNumber((*jobpb.Job).GetMaxAttempts), Help: "attempts after which it is dead; 0 is no limit"},
	{Name: "created_at", Type: FieldInstant, number: (*jobpb.Job).GetCreatedMs, Help: "when it was added"},
	{Name: "modified_at", Type: FieldInstant, number: (*jobpb.Job).GetModifiedMs, Help: "when it last changed, other than by falling due"},
	{
		Name: "reserved_until", Type: FieldInstant, In: jobpb.State_STATE_RESERVED, Optional: true, number: (*jobpb.Job).GetReservedUntilMs,
		Help: "when the reservation expires",
	},
	{
		Name: "reserved_by", Type: FieldText, In: jobpb.State_STATE_RESERVED, Optional: true, text: (*jobpb.Job).GetReservedBy,
		Help: "the `consumer` that the reserve named",
	},
	{Name: "died_at", Type: FieldInstant, In: jobpb.State_STATE_DEAD, Optional: true, number: (*jobpb.Job).GetDiedMs, Help: "when it became dead"},
	{Name: "finished_at", Type: FieldInstant, In: jobpb.State_STATE_FINISHED, Optional: true, number: (*jobpb.Job).GetEndedMs, Help: "when it was finished"},
	{Name: "deleted_at", Type: FieldInstant, In: jobpb.State_STATE_DELETED, Optional: true, number: (*jobpb.Job).GetEndedMs, Help: "when it was deleted"},
	{Name: "retained_until", Type: FieldInstant, Optional: true, number: (*jobpb.Job).GetRetainedUntilMs, Help: "how long a finished or deleted job stays known"},
	{Name: "expires_at", Type: FieldInstant, Optional: true, number: (*jobpb.Job).GetExpiresMs, Help: "when it is dropped or dead if nobody has taken it"},
	{Name: "reason", Type: FieldText, text: (*jobpb.Job).GetReason, Help: "of the last release, bury or timeout"},
	{Name: "last_error", Type: FieldText, Optional: true, text: (*jobpb.Job).GetLastError, Help: "the last reason that a consumer gave"},
	{Name: "reserves", Type: FieldNumber, number: asNumber((*jobpb.Job).GetReserves), Help: "how often it was handed out"},
	{Name: "timeouts", Type: FieldNumber, number: asNumber((*jobpb.Job).GetTimeouts), Help: "how often a reservation expired"},
	{Name: "releases", Type: FieldNumber, number: asNumber((*jobpb.Job).GetReleases), Help: "how often it was given back"},
	{Name: "buries", Type: FieldNumber, number: asNumber((*jobpb.Job).GetBuries), Help: "how often it was set aside"},
	{Name: "kicks", Type: FieldNumber, number: asNumber((*jobpb.Job).GetKicks), Help: "how often it was brought back"},
	{Name: "backoff", Type: FieldBackoff, Optional: true, Help: "its waits after a failed attempt: [retries.md](retries.md)"},
	{
		Name: "push_url", Type: FieldText, Optional: true, text: func(j *jobpb.Job) string { return j.Options.GetPushUrl() },
		Help: "where the topic's push posts it, instead of the topic's URL: [push.md](push.md)",
	},
	{Name: "headers", Type: FieldHeaders, Optional: true, Help: "an object of names and values"},
}

// StateName returns the name by which users know a state.
func StateName(s jobpb.State) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}

// asNumber converts a getter to one that returns an int64.
func asNumber[N uint32 | uint64](get func(*jobpb.Job) N) func(*jobpb.Job) int64 {
	return func(j *jobpb.Job) int64 { return int64(get(j)) }
}

// Number returns a number, an instant or a duration.
func (f *Field) Number(j *jobpb.Job) int64 { return f.number(j) }

// Text returns a text.
func (f *Field) Text(j *jobpb.Job) string { return f.text(j) }

// Shown reports whether clients see it. An absent backoff and absent headers count as
// shown.
func (f *Field) Shown(j *jobpb.Job) bool {
	switch {
	case f.In != jobpb.State_STATE_NONE && j.State != f.In:
		return false
	case !f.Optional:
		return true
	case f.number != nil:
		return f.number(j) != 0
	case f.text != nil:
		return f.text(j) != ""
	}
	return true
}
