package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/job"
)

// Codes that only HTTP knows.
const (
	codeMethod      job.Code = "method_not_allowed"
	codeEncoding    job.Code = "unsupported_encoding" // of the request's content
	codeCrossOrigin job.Code = "cross_origin"         // a browser's request from a foreign page
	codeNotReady    job.Code = "not_ready"
	codeTooSlow     job.Code = "request_timeout"
	codeWrongHost   job.Code = "wrong_host"
)

var statuses = map[job.Code]int{
	job.CodeInvalid:          http.StatusBadRequest,
	job.CodeBadJSON:          http.StatusBadRequest,
	job.CodeTooLarge:         http.StatusRequestEntityTooLarge,
	access.CodeUnauthorized:  http.StatusUnauthorized,
	job.CodeNotFound:         http.StatusNotFound,
	job.CodeIDConflict:       http.StatusConflict,
	job.CodeStaleToken:       http.StatusConflict,
	job.CodeTokenRequired:    http.StatusConflict,
	job.CodeNotReserved:      http.StatusConflict,
	job.CodeNotKickable:      http.StatusConflict,
	job.CodeAlreadyReserved:  http.StatusConflict,
	job.CodeAlreadyDead:      http.StatusConflict,
	job.CodeConditionFailed:  http.StatusPreconditionFailed,
	job.CodeTooManyTopics:    http.StatusConflict,
	job.CodeTooManyTokens:    http.StatusConflict,
	job.CodeTooManySchedules: http.StatusConflict,
	job.CodeQuorumWouldFail:  http.StatusConflict,
	job.CodeCrossSlot:        http.StatusConflict,
	job.CodeConflict:         http.StatusConflict,
	job.CodeNotApplied:       http.StatusServiceUnavailable,
	job.CodeOverloaded:       http.StatusTooManyRequests,
	job.CodeTopicFull:        http.StatusTooManyRequests,
	job.CodeOverQuota:        http.StatusTooManyRequests,
	job.CodeTopicLimited:     http.StatusTooManyRequests,
	job.CodeRateLimited:      http.StatusTooManyRequests,
	job.CodeDiskLow:          http.StatusInsufficientStorage,
	job.CodeStandby:          http.StatusServiceUnavailable,
	job.CodeLogTruncated:     http.StatusGone,
	job.CodeReplyFull:        http.StatusRequestEntityTooLarge, // only in items
	job.CodeForbidden:        http.StatusForbidden,
	job.CodeUnknown:          http.StatusGatewayTimeout,
	job.CodeInternal:         http.StatusInternalServerError,
	codeMethod:               http.StatusMethodNotAllowed,
	codeEncoding:             http.StatusUnsupportedMediaType,
	codeCrossOrigin:          http.StatusForbidden,
	codeNotReady:             http.StatusServiceUnavailable,
	codeTooSlow:              http.StatusRequestTimeout,
	httpx.CodeBadHTTP:        http.StatusBadRequest,
	codeWrongHost:            http.StatusMisdirectedRequest,
}

// outcomes are the outcomes of requests that failed on the server's side.
var outcomes = map[job.Code]string{
	job.CodeNotApplied:   "not_applied",
	job.CodeOverloaded:   "not_applied",
	job.CodeTopicFull:    "not_applied",
	job.CodeOverQuota:    "not_applied",
	job.CodeTopicLimited: "not_applied",
	job.CodeRateLimited:  "not_applied",
	job.CodeDiskLow:      "not_applied",
	job.CodeStandby:      "not_applied",
	job.CodeUnknown:      "unknown",
}

// asError converts err to the error that a client sees.
func asError(err error) *job.Error {
	var e *job.Error
	switch {
	case errors.As(err, &e):
		return withRetry(e)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return job.Unknown("the call did not end in time; its outcome is unknown")
	default:
		// The cause is logged, not shown: it is internal.
		return job.Errorf(job.CodeInternal, "the server failed to handle the request; its outcome is unknown")
	}
}

// withRetry sets when to retry on every error that allows it.
func withRetry(e *job.Error) *job.Error {
	if e.RetryAfter == 0 && outcomes[e.Code] == "not_applied" {
		c := *e
		c.RetryAfter = time.Second
		return &c
	}
	return e
}

func statusOf(e *job.Error) int {
	if status, ok := statuses[e.Code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// retryAfter returns the header's value: whole seconds, rounded up.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// maxMessage bounds the text of an error, in bytes. Some repeat the input of a client or a
// message of another node.
const maxMessage = 1000

// brief cuts text that is longer than an error may be.
func brief(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "..."
}

// failure adds the fields of a failed call or item.
func (w *writer) failure(e *job.Error) {
	w.boolean("success", false)
	w.text("code", string(e.Code))
	w.text("error", brief(e.Message))
	if e.Field != "" {
		w.text("field", brief(e.Field))
	}
	if o := outcomes[e.Code]; o != "" {
		w.text("outcome", o)
	}
}
