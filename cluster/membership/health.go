package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/job"
)

// Health is the cluster's, as the leader sees it. Without a leader it is not
// healthy, and the reasons are this node's. It blocks for a few seconds at most.
func (m *Membership) Health(ctx context.Context) (job.Health, error) {
	resp, err := viaLeader(ctx, m, readCall, &memberpb.HealthRequest{}, (*server).Health, memberpb.MembershipClient.Health)
	if errors.Is(err, leaderrpc.ErrNoLeader) && ctx.Err() == nil {
		return m.healthLeaderless(), nil
	}
	return job.Health{
		Healthy: resp.GetHealthy(), FailureTolerance: int(resp.GetFailureTolerance()), Reasons: resp.GetReasons(),
		ClusterVersion: resp.GetClusterVersion(), Upgrade: resp.GetUpgrade(),
	}, err
}

// LeaderHealth returns the cluster's health if this node leads; ok is false if not. It
// asks no other node and does not block.
func (m *Membership) LeaderHealth() (h job.Health, ok bool) {
	h, err := m.healthHere(context.Background())
	return h, err == nil
}

func (m *Membership) healthHere(context.Context) (job.Health, error) {
	l := m.leadership.Load()
	if l == nil {
		return job.Health{}, errNotLeader
	}
	state := l.autopilot.GetState()
	h := job.Health{FailureTolerance: state.FailureTolerance, ClusterVersion: m.cfg.Facts.Version()}
	if !m.cfg.Facts.Follows() {
		_, h.Upgrade = raiseTo(h.ClusterVersion, m.cfg.Runs, l.offers.all(m.configuration().Servers))
	}
	if len(state.Servers) == 0 {
		h.Reasons = append(h.Reasons, "the leader is new and has not asked the members yet")
	}
	leader := state.Servers[raft.ServerID(m.cfg.ServerID)]
	live := make(map[raft.ServerID]bool)
	for _, n := range m.members() {
		live[raft.ServerID(n.ServerID)] = true
	}
	for id, s := range state.Servers {
		if why := m.otherData(string(id)); why != "" && s.Stats.LastContact < 0 {
			h.Reasons = append(h.Reasons, why)
		} else if why := ailment(raftconfig.NodeID(id), s, leader, live[id], l.progress.stands(id, time.Now())); why != "" {
			h.Reasons = append(h.Reasons, why)
		} else if l.drains.has(id) {
			h.Reasons = append(h.Reasons, drainedReason(raftconfig.NodeID(id)))
		}
		if s.Server.NodeType == nonVoter && s.State != autopilot.RaftNonVoter {
			h.Reasons = append(h.Reasons, raftconfig.NodeID(id)+" votes, though it was started with --non-voter, which does not change a voter: restart it without the flag")
		}
	}
	if problems := l.problems.Load(); problems != nil {
		for _, why := range *problems {
			h.Reasons = append(h.Reasons, why)
		}
	}
	h.Reasons = append(h.Reasons, l.disks.Reasons(time.Now())...)
	h.Reasons = append(h.Reasons, m.clocks.Reasons()...)
	h.Reasons = append(h.Reasons, l.rings.reasons(m.configuration().Servers, m.ringState())...)
	h.Reasons = append(h.Reasons, m.cfg.Condition.Warnings(time.Now())...)
	h.Reasons = append(h.Reasons, backupReasons(m.memberBackups(l))...)
	slices.Sort(h.Reasons)
	h.Healthy = len(h.Reasons) == 0
	return h, nil
}

// otherData describes a live node with the id of a server, but not its data; empty: there is none.
func (m *Membership) otherData(serverID string) string {
	for _, n := range m.members() {
		if n.NodeID == raftconfig.NodeID(serverID) && n.ServerID != serverID && !m.Configured(n.ServerID) && !m.cfg.Facts.Forgotten(n.ServerID) {
			return fmt.Sprintf("%s runs, but without the data of the member (server %s): its directory is an empty or another one (server %s)", n.NodeID, serverID, n.ServerID)
		}
	}
	return ""
}

// briefly cuts what another node says of itself.
func briefly(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 200)], "?")
}

// ailment describes what is wrong with a server; empty: nothing is. stands is why it does not take
// part, live is what gossip says of it now; s is some seconds old.
func ailment(node string, s, leader *autopilot.ServerState, live bool, stands string) string {
	switch {
	case !live:
		return node + " is not alive: gossip has no sign of it"
	case s.Server.NodeStatus != autopilot.NodeAlive:
		return node + " has come back, and the leader has not asked it yet"
	case stands != "":
		return node + " does not take part: " + stands
	case s.Stats.LastContact < 0:
		return node + " does not reply, or has never received a message from the leader"
	case s.Stats.LastContact > lastContactLimit:
		return fmt.Sprintf("%s last received a message from the leader %s ago", node, s.Stats.LastContact.Round(time.Millisecond))
	case leader != nil && s.Stats.LastIndex+lagLimit < leader.Stats.LastIndex:
		return fmt.Sprintf("%s is %d log entries behind", node, leader.Stats.LastIndex-s.Stats.LastIndex)
	case leader != nil && s.Stats.LastTerm != leader.Stats.LastTerm:
		return fmt.Sprintf("%s has no entry of the current term %d yet", node, leader.Stats.LastTerm)
	case !s.Health.Healthy:
		return node + " is not healthy"
	case s.State == autopilot.RaftNonVoter && s.Server.NodeType == nonVoter:
		return ""
	case s.State == autopilot.RaftNonVoter:
		return node + " does not vote yet: it must stay caught up for a while first"
	}
	return ""
}

// healthLeaderless is the health that a node reports without a leader.
func (m *Membership) healthLeaderless() job.Health {
	h := job.Health{ClusterVersion: m.cfg.Facts.Version(), Reasons: []string{job.ReasonNoLeader + m.cfg.NodeID}}
	live := make(map[string]bool)
	for _, n := range m.members() {
		live[n.ServerID] = true
	}
	servers := m.configuration().Servers
	if len(servers) == 0 {
		h.Reasons = append(h.Reasons, m.cfg.NodeID+" is in no cluster yet")
		others := m.others()
		if i := slices.IndexFunc(others, func(n gossip.Member) bool { return n.NodeID == m.cfg.NodeID }); i >= 0 {
			h.Reasons = append(h.Reasons, fmt.Sprintf("another node with the id %s is at %s, or was moments ago: if both run, stop the one that was started by mistake, and start it with another --node-id and an empty data directory", m.cfg.NodeID, others[i].ClusterAddr))
		}
		if slices.ContainsFunc(others, func(n gossip.Member) bool { return n.ClusterID != "" && !n.Fresh }) {
			h.Reasons = append(h.Reasons, m.cfg.NodeID+" has no data, and no leader of the cluster that it finds has taken it in: ask another node for cluster health; without a leader start that one's other nodes; if the disks of a majority are lost for good, see docs/operations.md, A lost majority (tarry recover), on a node that has data")
		}
	}
	if m.Removed() {
		h.Reasons = append(h.Reasons, m.cfg.NodeID+" was removed from the cluster")
	}
	voters, up := 0, 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
			if live[string(s.ID)] {
				up++
			}
		}
		if !live[string(s.ID)] {
			h.Reasons = append(h.Reasons, cmp.Or(m.otherData(string(s.ID)), raftconfig.NodeID(s.ID)+" is not alive: gossip has no sign of it"))
		}
	}
	if up <= voters/2 && voters > 0 {
		h.Reasons = append(h.Reasons, fmt.Sprintf("of %d voters %d are alive, fewer than a majority: start the others; if their disks are lost for good, see docs/operations.md, A lost majority (tarry recover)", voters, up))
	}
	return h
}
