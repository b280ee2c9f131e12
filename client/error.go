package client

import (
	"errors"
	"fmt"
	"time"
)

// Error is a call that failed.
type Error struct {
	// Status is the HTTP status; 0: no node responded.
	Status int
	// Code is the kind of failure; docs/http-api.md lists the codes.
	Code string
	// Message is a sentence for people.
	Message string
	// Field is the invalid field of the request, such as jobs[3].delay, or the invalid
	// query parameter; "" when there is none.
	Field string
	// Unknown is set if the call may have been applied.
	Unknown bool
	// RetryAfter is how long to wait before another attempt, if the server said so.
	RetryAfter time.Duration

	cause  error
	unsent bool // no connection was made
	// refusesNode is set if the node's certificate is not accepted, which another attempt does
	// not change.
	refusesNode bool
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Codes that callers commonly need.
const (
	CodeNotFound      = "not_found"
	CodeIDConflict    = "id_conflict"
	CodeStaleToken    = "stale_token"
	CodeTokenRequired = "token_required"
	CodeNotReserved   = "not_reserved"
	CodeNotApplied    = "not_applied"
	// The job is not in the state that the call needs.
	CodeAlreadyReserved = "already_reserved"
	CodeAlreadyDead     = "already_dead"
	CodeConditionFailed = "condition_failed"
	CodeOverloaded      = "overloaded"
	CodeTopicFull       = "topic_full"   // try again later, or not: the call does not do so itself
	CodeRateLimited     = "rate_limited" // a limit of the token on the node
	CodeOverQuota       = "over_quota"   // of the namespace; the call does not try again either
	CodeDiskLow         = "disk_low"
	CodeStandby         = "standby" // the cluster only follows its primary; the call does not try again
	CodeLogTruncated    = "log_truncated"
	CodeConflict        = "conflict"   // the call contradicts the cluster's state
	CodeReplyFull       = "reply_full" // of one job of several; GetBatch handles it
	CodeForbidden       = "forbidden"
	CodeUnknown         = "unknown"
)

// CodeOf returns the code of an error of a call; empty: it has none.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// notDone reports whether certainly nothing was done, and another attempt may succeed.
func (e *Error) notDone() bool {
	return e.Code == CodeNotApplied || e.Code == CodeOverloaded || e.Code == CodeRateLimited || e.Code == CodeDiskLow
}

func errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Unknown: code == CodeUnknown, cause: errors.Unwrap(err)}
}
