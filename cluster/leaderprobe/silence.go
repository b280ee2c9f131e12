package leaderprobe

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

const (
	// silenceBefore is how long a leader is silent before a follower probes it:
	// twice the longest time between two heartbeats.
	silenceBefore = 250 * time.Millisecond
	// probeAgain is the time between two probes, probeTimeout bounds each.
	probeAgain   = 25 * time.Millisecond
	probeTimeout = 100 * time.Millisecond
	// unanswered is how many probes in a row go without a reply before the leader
	// counts as gone: a single packet may be lost.
	unanswered = 2
)

// watchSilence starts elections early until ctx ends.
func (f *follower) watchSilence(ctx context.Context) {
	var s silentLeader
	for wait := time.Duration(0); sleep.For(ctx, wait); {
		if f.alone() {
			if err := f.standForElection(); err != nil {
				f.Logger.Debug("could not stand for election; Raft's heartbeat timeout will start one", "error", err)
			}
		}
		wait = f.look(ctx, &s)
	}
}

// alone reports whether this node knows no leader and is the only one with a vote. Then
// it need not wait for another.
func (f *follower) alone() bool {
	if _, leader := f.raft.LeaderWithID(); leader != "" || f.raft.State() != raft.Follower {
		return false
	}
	voters := f.voters()
	return len(voters) == 1 && voters[0] == f.ServerID
}

// silentLeader counts the probes of a silent leader that went without a reply.
type silentLeader struct {
	id    raft.ServerID
	count int
}

// look probes the leader if it is silent, and returns when to look again.
func (f *follower) look(ctx context.Context, s *silentLeader) time.Duration {
	addr, id := f.raft.LeaderWithID()
	silent := time.Since(f.raft.LastContact())
	if id != s.id || silent < silenceBefore {
		*s = silentLeader{id: id}
	}
	if id == "" || f.raft.State() != raft.Follower {
		return silenceBefore
	}
	if silent < silenceBefore {
		return max(silenceBefore-silent, probeAgain)
	}
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	switch probe(probing, string(addr)) {
	case present:
		s.count = 0
	case ended:
		s.count = unanswered
	case absent:
		s.count++
	}
	wait, votes := f.staggered(id)
	if s.count < unanswered || !votes {
		return probeAgain
	}
	after := f.Lease + wait // Raft rejects a heartbeat timeout below the lease
	if silent = time.Since(f.raft.LastContact()); silent < after {
		return min(after-silent, probeAgain)
	}
	f.Logger.Info("the leader does not respond; electing another", "leader", raftconfig.NodeID(id), "silent", silent.Round(time.Millisecond))
	f.checkHeartbeat(ctx, id)
	return silenceBefore
}

// checkHeartbeat makes Raft check the time since the last heartbeat. It shortens the
// heartbeat timeout for a moment, because Raft checks when that becomes shorter.
func (f *follower) checkHeartbeat(ctx context.Context, leader raft.ServerID) {
	set := func(heartbeat, election time.Duration) {
		err := f.Reload(func(c *raft.ReloadableConfig) { c.HeartbeatTimeout, c.ElectionTimeout = heartbeat, election })
		if err != nil {
			f.Logger.Warn("could not change Raft's timeouts", "error", err)
		}
	}
	defer set(f.Heartbeat, f.Election)
	set(f.Lease, f.Lease)
	for deadline := time.Now().Add(silenceBefore); time.Now().Before(deadline); {
		_, now := f.raft.LeaderWithID()
		if now != leader || !sleep.For(ctx, probeAgain/5) {
			return // it has checked
		}
	}
}
