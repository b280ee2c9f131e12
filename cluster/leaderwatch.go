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

// leaderAddress is where clients reach the leader.
type leaderAddress struct {
	id    string // Raft server id
	http  string // host:port
	until time.Time
}

// leaderAddressLasts is how long an address is used before the members' replies are looked at
// again: the address of a node changes when it is restarted.
const leaderAddressLasts = time.Second

// LeaderAddress implements api.Operator. Each reply names the leader, so the address is
// kept and no lock is taken each time.
func (n *Node) LeaderAddress() string {
	l, _ := n.shard.leaders.Get()
	if l.ID == "" {
		return ""
	}
	now := time.Now()
	if a := n.leaderAddress.Load(); a != nil && a.id == l.ID && now.Before(a.until) {
		return a.http
	}
	http := n.members.HTTPAddr(l.ID)
	if http != "" {
		n.leaderAddress.Store(&leaderAddress{l.ID, http, now.Add(leaderAddressLasts)})
	}
	return http
}
