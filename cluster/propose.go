package cluster

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// enqueueTimeout bounds how long Raft may take to accept an entry. Running into
// it means that nothing was done.
const enqueueTimeout = 2 * time.Second

// Do implements api.Queue. Operations of one call share an entry as far as its
// size allows; they are applied in their order. So each part waits for the outcome
// of the one before: parts under way together would pass each other when one of them
// has to be sent again, or on the way from a follower.
func (s *Shard) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if why := s.cfg.AddsRefused(); why != "" && slices.ContainsFunc(ops, isAdd) {
		return nil, errDiskLow(why)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.OpTimeout)
	defer cancel()
	var results []*jobpb.Result
	for left := ops; len(left) > 0; {
		n := fitting(left)
		part := make(chan doOutcome, 1)
		s.submit(left[:n], false, func(rs []*jobpb.Result, err error) { part <- doOutcome{rs, err} })
		select {
		case o := <-part:
			if o.err != nil && len(results) > 0 {
				return nil, job.Unknown("only a part of the batch was committed: %w", o.err)
			}
			if o.err != nil {
				return nil, o.err
			}
			results = append(results, o.results...)
			left = left[n:]
		case <-ctx.Done():
			return nil, job.Unknown("the request ended before its outcome was known: %w", context.Cause(ctx))
		}
	}
	s.countNamed(ops, results)
	return results, nil
}

// countNamed measures the deliveries of jobs that were reserved by their name,
// which do not come by the dispatcher.
func (s *Shard) countNamed(ops []*jobpb.Op, results []*jobpb.Result) {
	for i, op := range ops {
		if _, named := op.Kind.(*jobpb.Op_ReserveJob); named && i < len(results) {
			s.metrics.handedOut(results[i].Jobs, time.Now())
		}
	}
}

func isAdd(op *jobpb.Op) bool {
	switch op.Kind.(type) {
	case *jobpb.Op_Add, *jobpb.Op_Compose, *jobpb.Op_FireSchedule:
		return true
	}
	return false
}

type doOutcome struct {
	results []*jobpb.Result
	err     error
}

// fitting is how many of ops share the next entry; at least one.
func fitting(ops []*jobpb.Op) int {
	size := 0
	for i, op := range ops {
		if size += job.OpSize(op); size > maxPartBytes && i > 0 {
			return i
		}
	}
	return len(ops)
}

// submit hands ops to the batcher as one unit. It does not block; done is called
// once.
func (s *Shard) submit(ops []*jobpb.Op, force bool, done func([]*jobpb.Result, error)) {
	size := 0
	for _, op := range ops {
		size += job.OpSize(op)
	}
	run := make([]byte, 0, size)
	for _, op := range ops {
		var err error
		if run, err = job.AppendOp(run, op); err != nil {
			done(nil, job.Errorf(job.CodeInternal, "encode the request: %w", err))
			return
		}
	}
	// A follower may not have applied a raise yet: then its caller tries again.
	if err := job.CheckVersion(run, s.machine.Version()); err != nil {
		done(nil, job.NotApplied("%w", err))
		return
	}
	s.batcher.submit(&request{
		ops: run, count: len(ops), adds: slices.ContainsFunc(ops, isAdd), local: slices.ContainsFunc(ops, job.LeaderOnly), done: done,
		expires: time.Now().Add(s.cfg.HoldTime), late: time.Now().Add(s.cfg.HoldTime),
	}, force)
}

// route returns the way of batches to the present leader.
func (s *Shard) route() (route, <-chan struct{}) {
	l, changed := s.leaders.get()
	switch l.id {
	case "":
		return route{}, changed
	case s.cfg.ServerID:
		if s.term.Load() == nil {
			// Results are not built yet; becoming established is a change too.
			return route{}, changed
		}
		return route{send: s.proposeHere}, changed
	}
	return route{forwards: true, send: func(b *batch, settle func([]*jobpb.Result, error)) { s.proposeTo(l, b, settle) }}, changed
}

// proposeHere makes the batch one entry of this node's log.
func (s *Shard) proposeHere(b *batch, settle func([]*jobpb.Result, error)) {
	now, epoch := s.now()
	data := job.AppendClockEpoch(job.AppendEntryHeader(make([]byte, 0, b.bytes+32), now.UnixMilli()), epoch)
	for _, r := range b.requests {
		data = append(data, r.ops...)
	}
	f := s.raft.Apply(data, enqueueTimeout)
	// The channel has a place for each batch that may be in flight.
	s.commits <- commit{future: f, start: time.Now(), settle: settle}
}

// commit is a batch of which Raft has not said the outcome yet.
type commit struct {
	future raft.ApplyFuture
	start  time.Time
	settle func([]*jobpb.Result, error)
}

// settleCommits waits for commits in their order, until s.commits is closed.
func (s *Shard) settleCommits() {
	for c := range s.commits {
		rs, err := applyOutcome(c.future)
		if stuck := s.transfers.saw(c.future.Error(), time.Now()); stuck != nil {
			s.fatal(stuck)
		}
		s.metrics.commit(time.Since(c.start), err)
		c.settle(rs, err)
	}
}

// applyOutcome tells apart what was not done from what nobody knows
// (reference: Raft's documentation of Apply and its errors).
func applyOutcome(f raft.ApplyFuture) ([]*jobpb.Result, error) {
	switch err := f.Error(); {
	case err == nil:
	case errors.Is(err, raft.ErrNotLeader),
		errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return nil, errRetry
	case errors.Is(err, raft.ErrAbortedByRestore):
		return nil, job.NotApplied("a restore replaced the state while the request was under way")
	default:
		return nil, job.Unknown("the outcome is unknown: %w", err)
	}
	rs, ok := f.Response().([]*jobpb.Result)
	if !ok || rs == nil {
		return nil, job.Unknown("the outcome is unknown: this node stopped leading while the request was applied")
	}
	return rs, nil
}

// proposeTo sends the batch to another node that leads.
func (s *Shard) proposeTo(l leader, b *batch, settle func([]*jobpb.Result, error)) {
	ops := make([]byte, 0, b.bytes)
	for _, r := range b.requests {
		ops = append(ops, r.ops...)
	}
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.OpTimeout)
		defer cancel()
		ctx, stop := s.leaders.while(ctx, l)
		defer stop()
		settle(s.forward(ctx, l, &noderpc.ProposeRequest{Shard: s.cfg.Number, Count: uint32(b.count), Ops: ops}))
	})
}

func (s *Shard) forward(ctx context.Context, l leader, req *noderpc.ProposeRequest) ([]*jobpb.Result, error) {
	client, err := s.cfg.Peer(ctx, l.id, l.addr)
	if err != nil {
		return nil, errRetry
	}
	sent := new(atomic.Bool)
	resp, err := client.Propose(context.WithValue(ctx, sentKey{}, sent), req)
	if err != nil {
		if !sent.Load() {
			return nil, errRetry
		}
		switch status.Code(err) {
		case codes.ResourceExhausted, codes.Unimplemented, codes.InvalidArgument, codes.NotFound, codes.PermissionDenied:
			return nil, job.NotApplied("the leader refused the message: %s", status.Convert(err).Message())
		}
		return nil, job.Unknown("the outcome is unknown: the connection to the leader failed after the request was sent: %s", status.Convert(err).Message())
	}
	switch resp.Refusal {
	case noderpc.Refusal_NONE:
	case noderpc.Refusal_NOT_LEADER, noderpc.Refusal_DRAINING:
		return nil, errRetry
	case noderpc.Refusal_NEWER:
		return nil, job.NotApplied("%s", resp.Message)
	case noderpc.Refusal_DISK_LOW:
		return nil, errDiskLow(resp.Message)
	case noderpc.Refusal_OVERLOADED:
		return nil, &job.Error{Code: job.CodeOverloaded, Message: resp.Message, RetryAfter: time.Second}
	default:
		return nil, job.Unknown("the outcome is unknown: %s", resp.Message)
	}
	var rs jobpb.Results
	if err := rs.UnmarshalVT(resp.Results); err != nil {
		return nil, job.Unknown("the outcome is unknown: the leader's answer does not decode: %w", err)
	}
	return rs.Results, nil
}

// sentKey carries a flag into a call that tells whether its message left for
// the wire: if not, nothing can have been done.
type sentKey struct{}

// sentTracker sets that flag.
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
