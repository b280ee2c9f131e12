package cluster

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"tarry/auth"
	"tarry/cluster/framerpc"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// FinishAndReserve implements api.Queue.
func (s *Shard) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	return s.endAndReserve(ctx, &noderpc.FinishAndReserveRequest{Finishes: finishes, Reserve: r, Waits: waits}, len(finishes))
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
	resp, err := leaderrpc.Call(ctx, &s.toLeader, rules, req, s.finishAndReserve, s.finishAndReserveAt)
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
	l := s.leadership.Load()
	if l == nil {
		return nil, leaderrpc.ErrNotLeader
	}
	d := l.dispatcher
	w, out := s.reserving(req.Reserve)
	w.First, w.Poll, w.Advance, w.Now = ends(req), true, advanceOp(), s.Now().UnixMilli()
	d.Add(w)
	// If nothing is ready, what falls due soon is committed ahead with the finishes, or in the next
	// entry, and not after their reply: so a single consumer does not wait for one after the other.
	var next *dispatch.Waiter
	var later *dispatch.Outcome
	if req.Waits && d.Alone(w) {
		next, later = s.reserving(req.Reserve)
		leaderQueue{s, l}.Add(next)
	}
	giveUp := func() {
		if next != nil {
			abandon(d, next, later)
		}
	}
	var o dispatch.Got
	select {
	case o = <-out.C:
	case <-ctx.Done():
		select {
		case o = <-out.C: // the results are known: they are not lost
		default:
			abandon(d, w, out)
			giveUp()
			return nil, errOutcomeUnknown(context.Cause(ctx))
		}
	}
	switch {
	case o.Err == nil:
		if next != nil {
			o.Jobs = s.soon(ctx, d, next, later)
		}
		return &noderpc.FinishAndReserveResponse{Results: w.Results, Jobs: o.Jobs}, nil
	case errors.Is(o.Err, dispatch.ErrStopped):
		giveUp()
		return nil, leaderrpc.ErrNotLeader
	}
	giveUp()
	return nil, forwarded(o.Err)
}

// ends returns the operations of a FinishAndReserve that end jobs.
func ends(req *noderpc.FinishAndReserveRequest) (ops []*jobpb.Op) {
	for _, f := range req.Finishes {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}, Principal: req.Principal})
	}
	if req.Delete != nil {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: req.Delete}, Principal: req.Principal})
	}
	return ops
}

// reserving returns a waiter, and where its outcome arrives.
func (s *Shard) reserving(r *jobpb.Reserve) (*dispatch.Waiter, *dispatch.Outcome) {
	out := dispatch.NewOutcome(s.giveBack)
	return &dispatch.Waiter{Reserve: r, Done: out.Done}, out
}

// soon returns the jobs that a waiter gets within the longest time by which anything is committed
// ahead. An error leaves it without jobs: the caller goes on to wait, and gets it then.
func (s *Shard) soon(ctx context.Context, d *dispatch.Dispatcher, w *dispatch.Waiter, out *dispatch.Outcome) []*jobpb.Reserved {
	over := time.NewTimer(maxLead)
	defer over.Stop()
	select {
	case o := <-out.C:
		return o.Jobs
	case <-over.C:
		d.Cancel(w, true)
	}
	// A reserve that is under way is nearly always committed by now. If there is no majority any
	// more, what is known of the finishes must reach the caller before its own time is over.
	over.Reset(s.cfg.OpTimeout / 2)
	select {
	case o := <-out.C:
		return o.Jobs
	case <-over.C:
	case <-ctx.Done():
	}
	abandon(d, w, out)
	return nil
}

// abandon ends a wait whose consumer is gone. It does not block.
func abandon(d *dispatch.Dispatcher, w *dispatch.Waiter, out *dispatch.Outcome) {
	d.Cancel(w, false)
	out.Abandon()
}

// lateJobs gives back what the leader reserved for a FinishAndReserve whose caller on this node
// gave up before the reply. It must not block.
func (s *Shard) lateJobs(reply []byte) {
	resp := new(noderpc.FinishAndReserveResponse)
	if resp.UnmarshalVTUnsafe(reply) == nil { // otherwise their reservations expire
		s.giveBack(resp.Jobs)
	}
}

// finishAndReserveAt makes the call at another node.
func (s *Shard) finishAndReserveAt(c noderpc.NodeClient, ctx context.Context, req *noderpc.FinishAndReserveRequest, _ ...grpc.CallOption) (*noderpc.FinishAndReserveResponse, error) {
	return c.FinishAndReserve(ctx, req, framerpc.Late{Do: s.lateJobs})
}
