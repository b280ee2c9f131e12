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
	// Code is the kind of failure: errors.Is(err, client.CodeNotFound) asks for one.
	Code Code
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

// Is reports whether target is the code of the error.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// Code is the kind of failure of a call, and what errors.Is compares an error with.
// docs/http-api.md lists all codes; the constants are those that callers commonly need.
type Code string

// Error implements error.
func (c Code) Error() string { return string(c) }

const (
	CodeNotFound        Code = "not_found"
	CodeIDConflict      Code = "id_conflict"
	CodeStaleToken      Code = "stale_token"
	CodeTokenRequired   Code = "token_required"
	CodeInvalidArgument Code = "invalid_argument"
	CodeNotReserved     Code = "not_reserved"
	CodeNotApplied      Code = "not_applied"
	// The job is not in the state that the call needs.
	CodeAlreadyReserved Code = "already_reserved"
	CodeAlreadyDead     Code = "already_dead"
	CodeConditionFailed Code = "condition_failed"
	CodeOverloaded      Code = "overloaded"
	CodeTopicFull       Code = "topic_full"   // try again later, or not: the call does not do so itself
	CodeRateLimited     Code = "rate_limited" // a limit of the token on the node
	CodeOverQuota       Code = "over_quota"   // of the namespace; the call does not try again either
	CodeDiskLow         Code = "disk_low"
	CodeStandby         Code = "standby" // the cluster only follows its primary; the call does not try again
	CodeLogTruncated    Code = "log_truncated"
	CodeConflict        Code = "conflict"   // the call contradicts the cluster's state
	CodeReplyFull       Code = "reply_full" // of one job of several; GetBatch handles it
	CodeForbidden       Code = "forbidden"
	CodeUnknown         Code = "unknown"
)

// notDone reports whether certainly nothing was done, and another attempt may succeed.
func (e *Error) notDone() bool {
	return e.Code == CodeNotApplied || e.Code == CodeOverloaded || e.Code == CodeRateLimited || e.Code == CodeDiskLow
}

func errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if inner, ok := cause.(*Error); ok {
		cause = inner.cause // one error has one code
	}
	return &Error{Code: code, Message: err.Error(), Unknown: code == CodeUnknown, cause: cause}
}
