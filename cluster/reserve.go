package cluster

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/cluster/waits"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// Watch implements api.Queue.
func (s *Shard) Watch() job.Watch { return s.machine.Watch() }

// WatchWith is Watch for one that wakes by a channel that others share.
func (s *Shard) WatchWith(wake chan struct{}) job.Watch { return s.machine.WatchWith(wake) }

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
