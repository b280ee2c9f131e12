package leaderrpc

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"tarry/job"
)

// ErrNotLeader is the outcome of a request of which nothing was applied and which
// another leader may take.
var ErrNotLeader = errors.New("this node does not lead")

// ErrNoLeader is the cause of a NoLeader error.
var ErrNoLeader = errors.New("there is no leader: fewer than a majority of the nodes can reach each other, or an election is under way")

// NoLeader is the error of a request that no leader accepted in time.
func NoLeader() *job.Error {
	e := job.NotApplied("%w", ErrNoLeader)
	e.RetryAfter = time.Second
	return e
}

const (
	// maxMessage bounds the text of a failure, in bytes, because it is sent in a header.
	maxMessage = 4 << 10
	// maxRetryAfter bounds what another node makes a client wait.
	maxRetryAfter = time.Minute
)

// NewFailure encodes err.
func NewFailure(err error) *Failure {
	f := &Failure{Message: err.Error()}
	if e, ok := errors.AsType[*job.Error](err); ok {
		f.Code, f.Message, f.Field, f.RetryAfterMs = string(e.Code), e.Message, e.Field, e.RetryAfter.Milliseconds()
	}
	f.NotLeader = errors.Is(err, ErrNotLeader)
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), maxMessage)], "?")
	f.Field = strings.ToValidUTF8(f.Field[:min(len(f.Field), maxMessage)], "?")
	return f
}

// Err returns the encoded error: a *job.Error if it was one or wrapped one, ErrNotLeader,
// or an error with the same text.
func (f *Failure) Err() error {
	switch {
	case f.NotLeader:
		return ErrNotLeader
	case f.Code == "":
		return errors.New("the leader failed: " + f.Message)
	}
	retry := min(max(f.RetryAfterMs, 0), maxRetryAfter.Milliseconds())
	return &job.Error{Code: job.Code(f.Code), Message: f.Message, Field: f.Field, RetryAfter: time.Duration(retry) * time.Millisecond}
}

// statusOf returns the gRPC status of a handler's error. An error that is a status already
// stays as it is: the request was rejected before its handler.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	_, typed := errors.AsType[*job.Error](err)
	if !typed && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return status.FromContextError(err).Err()
	}
	f := NewFailure(err)
	st, derr := status.New(codes.FailedPrecondition, f.Message).WithDetails(f)
	if derr != nil {
		return status.Error(codes.Internal, f.Message)
	}
	return st.Err()
}

// errorOf is the inverse, at the caller. An error that is not from a handler becomes a
// lostCall.
func errorOf(err error, sent bool) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	for _, d := range st.Details() {
		if f, ok := d.(*Failure); ok {
			return f.Err()
		}
	}
	return &lostCall{status: st, sent: sent}
}

// lostCall is the error of a call to which no handler replied. Its text has none of
// gRPC's own words ("rpc error: code = ..."), because it reaches users.
type lostCall struct {
	status *status.Status
	sent   bool // the message was sent; if not, nothing was applied
}

func (e *lostCall) Error() string              { return e.status.Message() }
func (e *lostCall) GRPCStatus() *status.Status { return e.status }

// decodeFailures is the interceptor that converts failures to handlers' errors.
func decodeFailures(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := &trackedCall{Context: ctx}
	return errorOf(invoke(call, method, req, reply, cc, opts...), call.sent.Load())
}

// trackedCall is the context of a call that records whether its message was sent.
type trackedCall struct {
	context.Context
	sent atomic.Bool
}

type sentKey struct{}

// Value implements context.Context.
func (c *trackedCall) Value(key any) any {
	if key == (sentKey{}) {
		return &c.sent
	}
	return c.Context.Value(key)
}

// sentTracker is the gRPC stats handler that notifies a trackedCall.
type sentTracker struct{}

func (sentTracker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (sentTracker) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, out := s.(*stats.OutPayload); out {
		if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
			sent.Store(true)
		}
	}
}
func (sentTracker) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentTracker) HandleConn(context.Context, stats.ConnStats)                       {}
