package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/raftconfig"
)

// watchLeader updates s.leaders when the leader changes.
func (s *Shard) watchLeader() {
	seen := make(chan raft.Observation, 16)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	s.raft.RegisterObserver(o)
	defer s.raft.DeregisterObserver(o)
	// Raft may drop observations that come fast. So the leader is read at each observation
	// and also at intervals.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		term := s.raft.CurrentTerm()
		addr, id := s.raft.LeaderWithID()
		if id != "" && s.raft.CurrentTerm() == term {
			s.replay.led(term)
		}
		now := leaderrpc.Leader{ID: string(id), Addr: string(addr)}
		if old, _ := s.leaders.Get(); old != now {
			s.leaders.Set(now, time.Now())
			s.log.Info("leader changed", "leader", raftconfig.NodeID(now.ID))
			s.waits.Leave(now)
		}
		select {
		case <-seen:
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}
