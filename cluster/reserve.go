package cluster

import (
	"context"
	"time"

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
	return s.waits.Reserve(ctx, r, wait)
}

// waitQueue returns the queue of the reserves that wait on this node; nil unless it is the
// established leader.
func (s *Shard) waitQueue() waits.Queue {
	if d := s.dispatcher(); d != nil {
		return d
	}
	return nil
}

// giveBack releases jobs that no consumer received. It does not block. If it fails,
// their reservations expire.
func (s *Shard) giveBack(jobs []*jobpb.Reserved) {
	if len(jobs) > 0 {
		s.submit(dispatch.GiveBack(jobs), true, func([]*jobpb.Result, error) {})
	}
}
