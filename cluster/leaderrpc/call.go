package leaderrpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"tarry/job"
)

// Router sends one node's requests to the leader. C is the client of the service that
// handles them.
type Router[C any] struct {
	Self string // this node's server id
	// Leader returns the present leader, and a channel that closes when the leader
	// changes; nil: the caller must poll.
	Leader func() (Leader, <-chan struct{})
	// Client returns a client of a server at a cluster address.
	Client func(ctx context.Context, serverID, addr string) (C, error)

	retries retries
}

// Rules are the deadlines of a kind of request, and whether it may be repeated.
type Rules struct {
	Within time.Duration // limit of the whole request; 0: as long as its caller waits
	Hold   time.Duration // limit of the search for a leader that accepts it; 0: only the present one is asked
	Read   bool          // it may be sent again after any failure
}

// A method of the service is twice in a Call: as its handler in this process, and as
// the client's method.
type (
	handler[Req, Resp any]   func(context.Context, Req) (Resp, error)
	method[C, Req, Resp any] func(C, context.Context, Req, ...grpc.CallOption) (Resp, error)
)

// Call makes a request at the leader: in this process, or at another node in one hop.
// It blocks while there is no leader, and follows the leader when it moves.
func Call[C, Req, Resp any](ctx context.Context, w *Router[C], r Rules, req Req, here handler[Req, Resp], there method[C, Req, Resp]) (resp Resp, err error) {
	if r.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Within)
		defer cancel()
	}
	until := time.Now().Add(r.Hold)
	var finding context.Context // ends after Hold; set when a leader has to be found
	again := retry{of: &w.retries}
	defer again.end()
	for {
		l, changed := w.Leader()
		switch l.ID {
		case "":
			err = ErrNotLeader
		case w.Self:
			resp, err = here(ctx, req)
		default:
			resp, err = Ask(ctx, w, r, l, req, there)
		}
		if !errors.Is(err, ErrNotLeader) {
			return resp, err
		}
		if finding == nil {
			var found context.CancelFunc
			finding, found = context.WithDeadline(ctx, until)
			defer found()
		}
		if !again.wait(finding, changed) {
			return resp, NoLeader()
		}
	}
}

// Ask sends a request to l once. ErrNotLeader: nothing was done, or the request is a
// read; it may be sent again.
func Ask[C, Req, Resp any](ctx context.Context, w *Router[C], r Rules, l Leader, req Req, there method[C, Req, Resp]) (resp Resp, err error) {
	client, err := w.Client(ctx, l.ID, l.Addr)
	if err != nil {
		return resp, ErrNotLeader
	}
	ctx, stop := while(ctx, l, w.Leader)
	defer stop()
	if resp, err = there(client, ctx, req); err != nil {
		return resp, outcome(err, r.Read)
	}
	return resp, nil
}

// outcome returns what a failed call means: the leader's error, or the outcome of a
// call to which no handler replied.
func outcome(err error, read bool) error {
	lost, ok := errors.AsType[*lostCall](err)
	if !ok {
		return err
	}
	code := lost.status.Code()
	switch {
	case !lost.sent, read && code != codes.Unimplemented && code != codes.InvalidArgument:
		return ErrNotLeader
	case code == codes.Unimplemented, code == codes.InvalidArgument, code == codes.NotFound, code == codes.PermissionDenied:
		return job.NotApplied("the leader refused the message: %s", lost)
	}
	return job.Unknown("the outcome is unknown: the connection to the leader failed after the request was sent: %s", lost)
}
