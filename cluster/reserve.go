package cluster

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/cluster/waits"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// Watch implements api.Queue.
func (s *Shard) Watch() job.Watch { return s.machine.Watch() }

// SettingsVersion grows whenever settings of topics have changed on this node.
func (s *Shard) SettingsVersion() uint64 { return s.machine.SettingsVersion() }

// Reserve implements api.Queue. The wait may span several leaders.
func (s *Shard) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	if s.machine.Follows() {
		return nil, errStandby()
	}
	return s.waits.Reserve(ctx, reserveOf(ctx, r), wait)
}

// reserveOf returns r with the principal of ctx, unless it has one.
func reserveOf(ctx context.Context, r *jobpb.Reserve) *jobpb.Reserve {
	p := auth.FromContext(ctx)
	if p.IsAnonymous() || r.Principal != "" {
		return r
	}
	r = proto.CloneOf(r) // it is the caller's
	r.Principal = p.Encode()
	return r
}

// FinishAndReserve implements api.Queue.
func (s *Shard) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	return s.endAndReserve(ctx, &noderpc.FinishAndReserveRequest{Finishes: finishes, Reserve: r}, len(finishes))
}

// DeleteAndReserve implements api.Queue.
func (s *Shard) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	results, jobs, err := s.endAndReserve(ctx, &noderpc.FinishAndReserveRequest{Delete: d, Reserve: r}, 1)
	if err != nil {
		return nil, nil, err
	}
	return results[0], jobs, nil
}

// endAndReserve asks the leader in one hop, and the leader's dispatcher decides whether a
// Reserve follows the n operations that end jobs in their entry.
func (s *Shard) endAndReserve(ctx context.Context, req *noderpc.FinishAndReserveRequest, n int) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	if s.machine.Follows() {
		return nil, nil, errStandby()
	}
	// It goes on if the caller's client hangs up: jobs that the leader has assigned are then
	// received here, and can be released.
	ctx = context.WithoutCancel(ctx)
	rules := leaderrpc.Rules{Within: s.cfg.OpTimeout, Hold: s.cfg.HoldTime}
	req.Shard, req.Reserve, req.Principal = s.cfg.Number, reserveOf(ctx, req.Reserve), auth.FromContext(ctx).Encode()
	resp, err := leaderrpc.Call(ctx, &s.toLeader, rules, req, s.finishAndReserve, noderpc.NodeClient.FinishAndReserve)
	if err == nil && len(resp.Results) != n {
		err = job.Unknown("the leader returned %d results for %d operations", len(resp.Results), n)
	}
	if err != nil {
		return nil, nil, err
	}
	return resp.Results, resp.Jobs, nil
}

// finishAndReserve serves a FinishAndReserve on this node if it is the established leader.
func (s *Shard) finishAndReserve(ctx context.Context, req *noderpc.FinishAndReserveRequest) (*noderpc.FinishAndReserveResponse, error) {
	if !s.leadsSoon(ctx) {
		return nil, leaderrpc.ErrNotLeader
	}
	d := s.dispatcher()
	if d == nil {
		return nil, leaderrpc.ErrNotLeader
	}
	w := &dispatch.Waiter{Reserve: req.Reserve, Poll: true, Advance: advanceOp(), Now: s.Now().UnixMilli()}
	for _, f := range req.Finishes {
		w.First = append(w.First, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}, Principal: req.Principal})
	}
	if req.Delete != nil {
		w.First = append(w.First, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: req.Delete}, Principal: req.Principal})
	}
	type outcome struct {
		jobs []*jobpb.Reserved
		err  error
	}
	done := make(chan outcome, 1)
	w.Done = func(jobs []*jobpb.Reserved, err error) { done <- outcome{jobs, err} }
	d.Add(w)
	select {
	case o := <-done:
		switch {
		case o.err == nil:
			return &noderpc.FinishAndReserveResponse{Results: w.Results, Jobs: o.jobs}, nil
		case errors.Is(o.err, dispatch.ErrStopped):
			return nil, leaderrpc.ErrNotLeader
		}
		return nil, forwarded(o.err)
	case <-ctx.Done():
		d.Cancel(w, false)
		return nil, errOutcomeUnknown(context.Cause(ctx))
	}
}

// waitQueue returns the queue of the reserves that wait on this node; nil unless it is the
// established leader.
func (s *Shard) waitQueue() waits.Queue {
	if l := s.leadership.Load(); l != nil {
		return leaderQueue{s, l}
	}
	return nil
}

// leaderQueue is the dispatcher. What is due and has not been made ready yet is, for whoever
// comes to reserve it, and what falls due soon may be committed ahead.
type leaderQueue struct {
	shard *Shard
	*leadership
}

// Add implements waits.Queue.
func (q leaderQueue) Add(w *dispatch.Waiter) {
	now := q.shard.Now().UnixMilli()
	poll := w.Poll // Cancel may set it later
	if due := q.shard.machine.NextDue(); poll && due != 0 && due <= now {
		w.Advance, w.Now = advanceOp(), now
	}
	q.dispatcher.Add(w)
	if poll {
		return
	}
	if due := q.dispatcher.NextDue(); due != 0 && due <= now {
		q.shard.timer.Notify()
	}
	q.ahead.notify()
}

// Cancel implements waits.Queue.
func (q leaderQueue) Cancel(w *dispatch.Waiter, keep bool) { q.dispatcher.Cancel(w, keep) }

// giveBack releases jobs that no consumer received. It does not block. If it fails,
// their reservations expire.
func (s *Shard) giveBack(jobs []*jobpb.Reserved) {
	if len(jobs) > 0 {
		s.submit(dispatch.GiveBack(jobs, 0), "", true, func([]*jobpb.Result, error) {})
	}
}
