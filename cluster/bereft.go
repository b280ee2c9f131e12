package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/transport"
)

// A follower of Raft notices by silence alone that its leader is gone. It looks at
// random moments, so that takes up to three heartbeat timeouts. But a leader whose
// process has ended, or whose machine is gone, can be told from one that is slow:
// connections to it are refused, or get no answer, while the kernel of a busy
// machine still answers. So a follower whose leader has been silent for a little
// knocks, and when nobody is there it has Raft look now, with the shortest timeouts
// that the leader's lease allows.
//
// That says when to look and nothing else. Whether there is an election, and who
// wins it, Raft decides, after a pre-vote that every follower refuses which still
// has its leader.
const (
	// silenceBefore is how long a leader is silent before a follower knocks:
	// twice the longest time between two heartbeats.
	silenceBefore = 250 * time.Millisecond
	// knockAgain is the time between two knocks, knockTimeout bounds each.
	knockAgain   = 25 * time.Millisecond
	knockTimeout = 100 * time.Millisecond
	// unanswered is how many knocks in a row go without an answer before the
	// leader counts as gone: a single packet may be lost.
	unanswered = 2
	// turn sets the followers apart, in the order of the configuration. The
	// pre-vote of the first is refused by the others, which have not given up
	// the leader yet; the second that looks finds the first one's vote. Two that
	// look together would vote for themselves. It is more than what their last
	// heartbeats may lie apart.
	turn = 150 * time.Millisecond
)

// watchForLostLeader hastens elections until the shard stops.
func (s *Shard) watchForLostLeader(t raft.Transport) {
	var w lostLeader
	for wait := time.Duration(0); pause(s.ctx, wait, nil); {
		if s.alone() {
			if err := s.standForElection(t); err != nil {
				s.log.Debug("could not stand for election; the heartbeat timeout will do", "error", err)
			}
		}
		wait = s.lookAfterLeader(&w)
	}
}

// alone reports whether this node knows no leader and is the only one with a vote:
// it has nobody to wait for.
func (s *Shard) alone() bool {
	if _, leader := s.raft.LeaderWithID(); leader != "" || s.raft.State() != raft.Follower {
		return false
	}
	f := s.raft.GetConfiguration() // of memory; does not block
	if f.Error() != nil {
		return false
	}
	var voters []raft.ServerID
	for _, server := range f.Configuration().Servers {
		if server.Suffrage == raft.Voter {
			voters = append(voters, server.ID)
		}
	}
	return len(voters) == 1 && voters[0] == raft.ServerID(s.cfg.ServerID)
}

// lostLeader counts the knocks at a silent leader that went without an answer.
type lostLeader struct {
	id    raft.ServerID
	count int
}

// lookAfterLeader does what the leader's silence calls for, and says when to look
// again.
func (s *Shard) lookAfterLeader(w *lostLeader) time.Duration {
	addr, id := s.raft.LeaderWithID()
	silent := time.Since(s.raft.LastContact())
	if id != w.id || silent < silenceBefore {
		*w = lostLeader{id: id}
	}
	if id == "" || s.raft.State() != raft.Follower {
		return silenceBefore
	}
	if silent < silenceBefore {
		return max(silenceBefore-silent, knockAgain)
	}
	ctx, cancel := context.WithTimeout(s.ctx, knockTimeout)
	defer cancel()
	switch transport.Knock(ctx, string(addr)) {
	case transport.Present:
		w.count = 0
	case transport.Ended:
		w.count = unanswered
	case transport.Absent:
		w.count++
	}
	at, votes := s.turnAfter(id)
	if w.count < unanswered || !votes {
		return knockAgain
	}
	if silent = time.Since(s.raft.LastContact()); silent < at {
		return min(at-silent, knockAgain)
	}
	s.log.Info("the leader is gone; looking for another now", "leader", nodeID(string(id)), "silent", silent.Round(time.Millisecond))
	s.lookNow(id)
	return silenceBefore
}

// turnAfter is how long the leader must have been silent before this node looks,
// and whether it has a vote at all.
func (s *Shard) turnAfter(leader raft.ServerID) (at time.Duration, votes bool) {
	f := s.raft.GetConfiguration() // of memory; does not block
	if f.Error() != nil {
		return 0, false
	}
	at = s.cfg.Lease // Raft takes no heartbeat timeout below it
	for _, server := range f.Configuration().Servers {
		switch {
		case server.Suffrage != raft.Voter || server.ID == leader:
		case server.ID == raft.ServerID(s.cfg.ServerID):
			return at, true
		default:
			at += turn
		}
	}
	return 0, false
}

// lookNow has Raft look at its leader's silence, by a heartbeat timeout that is
// shorter for a moment: Raft checks when it becomes shorter.
func (s *Shard) lookNow(leader raft.ServerID) {
	set := func(heartbeat, election time.Duration) {
		err := s.reloadRaft(func(c *raft.ReloadableConfig) { c.HeartbeatTimeout, c.ElectionTimeout = heartbeat, election })
		if err != nil {
			s.log.Warn("could not change Raft's timeouts", "error", err)
		}
	}
	defer set(s.cfg.Heartbeat, s.cfg.Election)
	set(s.cfg.Lease, s.cfg.Lease)
	for deadline := time.Now().Add(silenceBefore); time.Now().Before(deadline); {
		_, now := s.raft.LeaderWithID()
		if now != leader || !pause(s.ctx, knockAgain/5, nil) {
			return // it has looked
		}
	}
}

// reloadRaft changes settings of the running Raft.
func (s *Shard) reloadRaft(change func(*raft.ReloadableConfig)) error {
	s.raftSettings.Lock()
	defer s.raftSettings.Unlock()
	c := s.raft.ReloadableConfig()
	change(&c)
	return s.raft.ReloadConfig(c)
}
