package membership

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// An operator's call waits this long for a leader to appear. A read has a poorer
// answer to give instead, so it waits less.
const (
	holdRead  = time.Second
	holdWrite = 5 * time.Second
)

// callFor is how long a call may take in all when its caller sets no earlier end.
const callFor = 45 * time.Second

// errNotLeader says that this node did nothing, because it does not lead.
var errNotLeader = errors.New("this node is not the leader")

// errNoLeader ends a call for which no leader appeared in time.
var errNoLeader = errors.New("there is no leader: fewer than a majority of the nodes can reach each other, or an election is under way")

// A read may be asked again after any failure, a write only when the last
// attempt is known to have done nothing.
const (
	readCall  = false
	writeCall = true
)

// viaLeader runs a call where the leader is: here, or at another node in one
// hop. It follows the leader when it moves and waits for one to appear.
func viaLeader[T any](ctx context.Context, m *Membership, write bool,
	here func(context.Context) (T, error),
	there func(context.Context, memberpb.MembershipClient) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	hold := holdRead
	if write {
		hold = holdWrite
	}
	began := time.Now()
	for {
		out, err := attempt(ctx, m, write, here, there)
		if !errors.Is(err, errNotLeader) {
			return out, err
		}
		if time.Since(began) > hold || pause(ctx, 50*time.Millisecond) != nil {
			return out, job.NotApplied("%w; nothing was done", errNoLeader)
		}
	}
}

func attempt[T any](ctx context.Context, m *Membership, write bool,
	here func(context.Context) (T, error),
	there func(context.Context, memberpb.MembershipClient) (T, error),
) (T, error) {
	leader, ok := m.Leader()
	if ok && leader.ServerID == m.cfg.ServerID {
		return here(ctx)
	}
	var none T
	if !ok {
		return none, errNotLeader
	}
	c, err := m.client(ctx, leader.ServerID, leader.ClusterAddr)
	if err != nil {
		return none, errNotLeader // it was not reached, so nothing was done
	}
	out, err := there(ctx, c)
	if err == nil {
		return out, nil
	}
	return none, failureOf(err, write)
}

// failureOf turns what a call to the leader came back with into an error.
func failureOf(err error, write bool) error {
	st := status.Convert(err)
	for _, d := range st.Details() {
		f, ok := d.(*memberpb.Failure)
		if !ok {
			continue
		}
		if f.NotLeader {
			return errNotLeader
		}
		retry := min(max(f.RetryAfterMs, 0), callFor.Milliseconds())
		return &job.Error{Code: job.Code(f.Code), Message: f.Message, RetryAfter: time.Duration(retry) * time.Millisecond}
	}
	switch {
	case st.Code() == codes.PermissionDenied: // it does not know this node yet, or not any more
		return errNotLeader
	case write:
		return job.Unknown("the leader was asked, but its answer did not come: %s", st.Message())
	case st.Code() == codes.Unavailable:
		return errNotLeader
	}
	return job.NotApplied("the leader did not answer: %s", st.Message())
}

// statusOf is the inverse, on the leader.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	f := &memberpb.Failure{Code: string(job.CodeOf(err)), Message: err.Error()}
	var typed *job.Error
	switch {
	case errors.Is(err, errNotLeader):
		f.NotLeader, f.Code = true, string(job.CodeNotApplied)
	case errors.As(err, &typed):
		f.Message, f.RetryAfterMs = typed.Message, typed.RetryAfter.Milliseconds()
	}
	st, derr := status.New(codes.FailedPrecondition, f.Message).WithDetails(f)
	if derr != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return st.Err()
}
