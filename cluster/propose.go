package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Do implements api.Queue. The operations of a call are applied in order and share an
// entry if they fit. If they need several entries, each part waits for the outcome of the
// one before, because concurrent parts could be reordered by a retry or on the way from a
// follower.
func (s *Shard) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if why := s.cfg.Host.AddsRefused(); why != "" && slices.ContainsFunc(ops, oplog.Adds) {
		return nil, errDiskLow(why)
	}
	if err := s.refusedByStandby(ops); err != nil {
		return nil, err
	}
	principal := auth.FromContext(ctx).Encode()
	mayAdd := func(op *jobpb.Op, add *jobpb.Add) bool {
		return s.verbsOn(auth.DecodePrincipal(cmp.Or(op.Principal, principal)), add.GetTopic())&auth.Add != 0
	}
	tokens, err := s.rateQuotas.take(s.machine.Namespaces(), ops, mayAdd, time.Now())
	if err != nil {
		return nil, err
	}
	results, err := s.doInParts(ctx, ops, principal)
	s.rateQuotas.giveBack(tokens, results, err)
	if err != nil {
		return nil, err
	}
	s.countNamed(ops, results)
	return results, nil
}

// doInParts does ops in as many entries as they need. With an error it returns the results of
// those that come before it.
func (s *Shard) doInParts(ctx context.Context, ops []*jobpb.Op, principal string) (results []*jobpb.Result, err error) {
	over := s.opLimit.begin()
	for left := ops; len(left) > 0; {
		n := fitting(left)
		part := make(chan doOutcome, 1)
		s.submit(left[:n], principal, false, func(rs []*jobpb.Result, err error) { part <- doOutcome{rs, err} })
		select {
		case o := <-part:
			if o.err != nil && len(results) > 0 {
				return results, job.Unknown("only a part of the batch was committed: %w", o.err)
			}
			if o.err != nil {
				return nil, o.err
			}
			results = append(results, o.results...)
			left = left[n:]
		case <-ctx.Done():
			return results, errOutcomeUnknown(context.Cause(ctx))
		case <-over:
			return results, errOutcomeUnknown(context.DeadlineExceeded)
		}
	}
	return results, nil
}

func errOutcomeUnknown(why error) *job.Error {
	return job.Unknown("the request ended before its outcome was known: %w", why)
}

// countNamed counts the deliveries of jobs that were reserved by id, because the
// dispatcher does not see these.
func (s *Shard) countNamed(ops []*jobpb.Op, results []*jobpb.Result) {
	for i, op := range ops {
		if _, named := op.Kind.(*jobpb.Op_ReserveJob); named && i < len(results) {
			s.handedOut(results[i].Jobs, s.cfg.Host.Wall())
		}
	}
}

type doOutcome struct {
	results []*jobpb.Result
	err     error
}

// fitting returns how many of ops fit in the next entry; at least one.
func fitting(ops []*jobpb.Op) int {
	size := 0
	for i, op := range ops {
		if size += oplog.OpSize(op); size > groupcommit.MaxPartBytes && i > 0 {
			return i
		}
	}
	return len(ops)
}

// submit passes ops to the batcher as one unit. It does not block. done is called once.
// principal is that of the ops that have none.
func (s *Shard) submit(ops []*jobpb.Op, principal string, force bool, done func([]*jobpb.Result, error)) {
	// A cluster that never had a token or a mode checks only what needs the verb admin.
	// Afterwards each operation has its principal: the mode may change before it is applied.
	named := s.machine.Auth().Revision > 0
	size := 0
	for _, op := range ops {
		size += oplog.OpSize(op) + oplog.PrincipalSize(principal)
	}
	run := make([]byte, 0, size)
	for _, op := range ops {
		of := ""
		if named || oplog.NeedsAdmin(op) {
			of = cmp.Or(op.Principal, principal)
		}
		var err error
		if run, err = oplog.AppendOpOf(run, op, of); err != nil {
			done(nil, job.Errorf(job.CodeInternal, "encode the request: %w", err))
			return
		}
	}
	// A follower may not have applied a raise of the version yet; its caller retries.
	kinds, err := oplog.CheckVersion(run, s.machine.Version())
	if err != nil {
		done(nil, job.NotApplied("%w", err))
		return
	}
	s.batcher.Submit(&groupcommit.Request{
		Ops: run, Count: len(ops), Callers: 1, Tenant: s.tenantOf(ops, principal), Adds: kinds.Adds, Local: kinds.LeaderOnly, Done: done,
		HoldUntil: time.Now().Add(s.cfg.HoldTime), Deadline: time.Now().Add(s.cfg.HoldTime),
	}, force)
}

// commitAlone has an operation committed as the only one of its entry, and waits until it is applied
// here. Only the leader can do that.
func (s *Shard) commitAlone(ctx context.Context, op *jobpb.Op) (*jobpb.Result, error) {
	run, err := oplog.AppendOp(nil, op)
	if err != nil {
		return nil, job.Errorf(job.CodeInternal, "encode the request: %w", err)
	}
	return await(ctx, func(done groupcommit.Complete) { s.committer.ProposeAlone(run, 1, done) })
}

// await returns the result of the one operation that propose proposes.
func await(ctx context.Context, propose func(groupcommit.Complete)) (*jobpb.Result, error) {
	done := make(chan doOutcome, 1)
	propose(func(rs []*jobpb.Result, err error) { done <- doOutcome{rs, err} })
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return o.results[0], nil
	case <-ctx.Done():
		return nil, errOutcomeUnknown(context.Cause(ctx))
	}
}

// KnowsLeader reports whether this node knows an established leader of the group, and whether that is
// this node. It does not block.
func (s *Shard) KnowsLeader() (known, here bool) {
	l, _ := s.leaders.Get()
	here = s.leadership.Load() != nil
	return here || l.ID != "" && l.ID != s.cfg.ServerID, here
}

// route returns the function that sends batches to the present leader.
func (s *Shard) route() (groupcommit.Route, <-chan struct{}) {
	l, changed := s.leaders.Get()
	switch l.ID {
	case "":
		return groupcommit.Route{}, changed
	case s.cfg.ServerID:
		if s.leadership.Load() == nil {
			// Results are not built yet. Becoming established closes changed too.
			return groupcommit.Route{}, changed
		}
		return groupcommit.Route{Send: s.committer.Propose}, changed
	}
	return groupcommit.Route{Forwards: true, Send: func(b *groupcommit.Batch, complete groupcommit.Complete) { s.proposeTo(l, b, complete) }}, changed
}

// proposeTo sends the batch to another node that leads.
func (s *Shard) proposeTo(l leaderrpc.Leader, b *groupcommit.Batch, complete groupcommit.Complete) {
	s.metrics.forwarded.Add(float64(b.Count))
	ops := b.AppendOps(make([]byte, 0, b.Bytes))
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.OpTimeout)
		defer cancel()
		req := &noderpc.ProposeRequest{Shard: s.cfg.Number, Count: uint32(b.Count), Ops: ops}
		resp, err := leaderrpc.Ask(ctx, &s.toLeader, leaderrpc.Rules{}, l, req, noderpc.NodeClient.Propose)
		complete(cloneJobs(resp.GetResults()), err)
	})
}

// cloneJobs copies the results that have jobs. All of rs alias one message, and a slow
// consumer of one job must not keep the bodies of the others in memory.
func cloneJobs(rs []*jobpb.Result) []*jobpb.Result {
	for i, r := range rs {
		if len(r.Jobs) > 0 {
			rs[i] = proto.CloneOf(r)
		}
	}
	return rs
}

// limitStep is by how much a timeLimit may be exceeded.
const limitStep = 100 * time.Millisecond

// timeLimit bounds many short waits by the same time. The waits that begin within
// limitStep share a timer: a context with a timer for each costs more than all else that
// a call does while it waits.
type timeLimit struct {
	limit time.Duration

	mu    sync.Mutex
	over  chan struct{} // of the waits that begin before until
	until time.Time
}

// begin returns a channel that closes after the limit, at most limitStep later.
func (l *timeLimit) begin() <-chan struct{} {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil || !now.Before(l.until) {
		over := make(chan struct{})
		l.over, l.until = over, now.Add(limitStep)
		time.AfterFunc(l.limit+limitStep, func() { close(over) })
	}
	return l.over
}

// errDiskLow is the error of adds while disks are low.
func errDiskLow(why string) *job.Error {
	return &job.Error{Code: job.CodeDiskLow, RetryAfter: 5 * time.Second,
		Message: why + "; finish or delete jobs, or free disk space; all other operations continue"}
}
