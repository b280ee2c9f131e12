package job

import (
	"errors"
	"fmt"
	"time"

	"tarry/job/jobpb"
)

// Code is the snake_case word by which a client distinguishes errors.
type Code string

const (
	// The request is wrong; repeating it unchanged does not help.
	CodeInvalid          Code = "invalid_argument"   // a field is malformed or out of range
	CodeBadJSON          Code = "bad_json"           // the request is not the JSON asked for
	CodeTooLarge         Code = "too_large"          // a body or request over its limit
	CodeReplyFull        Code = "reply_full"         // of one job of several: the reply had no room for it
	CodeForbidden        Code = "forbidden"          // nothing that the caller holds allows it
	CodeNotFound         Code = "not_found"          // no such job, member or path
	CodeIDConflict       Code = "id_conflict"        // the id is taken by a job of other content
	CodeStaleToken       Code = "stale_token"        // the token's reservation has ended
	CodeTokenRequired    Code = "token_required"     // the topic requires the token of the reservation
	CodeNotReserved      Code = "not_reserved"       // the operation needs a reserved job
	CodeNotKickable      Code = "not_kickable"       // the job is neither dead nor delayed
	CodeAlreadyReserved  Code = "already_reserved"   // a consumer has reserved the job
	CodeAlreadyDead      Code = "already_dead"       // the job is dead; it has no due instant
	CodeConditionFailed  Code = "condition_failed"   // the job does not meet the request's condition
	CodeTooManyTopics    Code = "too_many_topics"    // the limit on live topics
	CodeTooManySchedules Code = "too_many_schedules" // the limit on schedules
	CodeTooManyTokens    Code = "too_many_tokens"    // the limit on tokens of clients
	CodeQuorumWouldFail  Code = "quorum_would_fail"  // a removal that would break the quorum
	CodeCrossSlot        Code = "cross_slot"         // what is done for all or none of its jobs needs them in one slot
	CodeConflict         Code = "conflict"           // the request contradicts the cluster's state
	CodeLogTruncated     Code = "log_truncated"      // the log has not the entries any more that a standby needs

	// The request is valid, but the cluster did not accept it. Nothing was done.
	CodeNotApplied   Code = "not_applied"   // no leader, transfer in progress, node draining
	CodeTopicFull    Code = "topic_full"    // the topic's limit on waiting jobs
	CodeOverQuota    Code = "over_quota"    // a quota of the namespace
	CodeTopicLimited Code = "topic_limited" // the topic's limit on reserved jobs, or its rate
	CodeOverloaded   Code = "overloaded"    // a bound on waiting work is reached
	CodeRateLimited  Code = "rate_limited"  // a limit of the token on this node
	CodeDiskLow      Code = "disk_low"      // adds are refused until disks have free space
	CodeStandby      Code = "standby"       // the cluster is a standby: it only follows its primary

	// It may or may not have been done.
	CodeUnknown Code = "unknown"

	// A defect of Tarry.
	CodeInternal Code = "internal"
)

// Error is an error as a client sees it. Every error that leaves the system is one, or is
// wrapped by one.
type Error struct {
	Code    Code
	Message string // a sentence that names the field and the limit
	// Field is the field of the request that is wrong, as the client knows it: a member
	// such as jobs[3].delay, or a query parameter. Empty: none, or the whole request.
	Field string
	// RetryAfter is how long a client should wait before it tries again; 0: unknown.
	RetryAfter time.Duration
	cause      error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an Error. It wraps the operand of a %w in the format.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Invalid returns the error of a field that is malformed or out of range. The message
// begins with the field.
func Invalid(field, format string, args ...any) *Error {
	return FieldErrorf(CodeInvalid, field, format, args...)
}

// FieldErrorf is Errorf with a field, with which the message begins.
func FieldErrorf(code Code, field, format string, args ...any) *Error {
	e := Errorf(code, format, args...)
	e.Message, e.Field = field+" "+e.Message, field
	return e
}

// In sets the field, for a message that does not begin with it.
func (e *Error) In(field string) *Error {
	e.Field = field
	return e
}

// NotApplied returns the error of a request of which nothing was done.
func NotApplied(format string, args ...any) *Error {
	e := Errorf(CodeNotApplied, format, args...)
	e.RetryAfter = time.Second
	return e
}

// Unknown returns the error of a request that may or may not have been done.
func Unknown(format string, args ...any) *Error { return Errorf(CodeUnknown, format, args...) }

// InItem returns err as one about an item of a list: jobs[3].delay.
func InItem(list string, i int, err error) error {
	e := *asError(err)
	item := fmt.Sprintf("%s[%d]", list, i)
	e.Message = item + ": " + e.Message
	if e.Field != "" {
		item += "." + e.Field
	}
	e.Field = item
	return &e
}

// Under returns err as one about a field of an object: filter.reason.
func Under(object string, err error) error {
	e := *asError(err)
	e.Message = object + "." + e.Message
	if e.Field != "" {
		e.Field = object + "." + e.Field
	}
	return &e
}

// asError returns err as an Error.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeInternal, "%w", err)
}

// CodeOf returns the code of err; CodeInternal if it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// ResultError returns the Error of a result; nil if r is OK.
func ResultError(r *jobpb.Result) error {
	if r.Code == jobpb.Code_OK {
		return nil
	}
	return &Error{Code: resultCodes[r.Code], Message: r.Message, Field: r.GetDetails().GetField()}
}

// ErrorResult returns the result of an operation that failed with err, or whose outcome is unknown
// since: ResultError returns an error with its code.
func ErrorResult(err error) *jobpb.Result {
	e := asError(err)
	r := &jobpb.Result{Code: jobpb.Code_INTERNAL, Message: e.Message}
	for result, code := range resultCodes {
		if code == e.Code {
			r.Code = result
		}
	}
	if e.Field != "" {
		r.Details = &jobpb.Details{Field: e.Field}
	}
	return r
}

var resultCodes = map[jobpb.Code]Code{
	jobpb.Code_NOT_FOUND:          CodeNotFound,
	jobpb.Code_ID_CONFLICT:        CodeIDConflict,
	jobpb.Code_STALE_TOKEN:        CodeStaleToken,
	jobpb.Code_TOKEN_REQUIRED:     CodeTokenRequired,
	jobpb.Code_NOT_RESERVED:       CodeNotReserved,
	jobpb.Code_NOT_KICKABLE:       CodeNotKickable,
	jobpb.Code_INVALID:            CodeInvalid,
	jobpb.Code_ALREADY_RESERVED:   CodeAlreadyReserved,
	jobpb.Code_ALREADY_DEAD:       CodeAlreadyDead,
	jobpb.Code_CONDITION_FAILED:   CodeConditionFailed,
	jobpb.Code_TOO_MANY_TOPICS:    CodeTooManyTopics,
	jobpb.Code_TOPIC_FULL:         CodeTopicFull,
	jobpb.Code_CLUSTER_MISMATCH:   CodeConflict,
	jobpb.Code_TOO_MANY_SCHEDULES: CodeTooManySchedules,
	jobpb.Code_TOPIC_LIMITED:      CodeTopicLimited,
	jobpb.Code_FORBIDDEN:          CodeForbidden,
	jobpb.Code_TOO_MANY_TOKENS:    CodeTooManyTokens,
	jobpb.Code_OVER_QUOTA:         CodeOverQuota,
	jobpb.Code_STANDBY:            CodeStandby,
	jobpb.Code_CROSS_SLOT:         CodeCrossSlot,
	jobpb.Code_NOT_APPLIED:        CodeNotApplied,
	jobpb.Code_OVERLOADED:         CodeOverloaded,
	jobpb.Code_DISK_LOW:           CodeDiskLow,
	jobpb.Code_OUTCOME_UNKNOWN:    CodeUnknown,
	jobpb.Code_INTERNAL:           CodeInternal,
}

// CodeOfResult returns the Code of a result's code; empty for OK.
func CodeOfResult(c jobpb.Code) Code { return resultCodes[c] }
