package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// Health judges the cluster as the leader sees it. Without a leader it is not
// healthy, and the reasons are this node's. It blocks for some seconds at most.
func (m *Membership) Health(ctx context.Context) (job.Health, error) {
	out, err := viaLeader(ctx, m, readCall, m.healthHere, func(ctx context.Context, c memberpb.MembershipClient) (job.Health, error) {
		resp, err := c.Health(ctx, &memberpb.HealthRequest{})
		return job.Health{
			Healthy: resp.GetHealthy(), FailureTolerance: int(resp.GetFailureTolerance()), Reasons: resp.GetReasons(),
			ClusterVersion: resp.GetClusterVersion(), Upgrade: resp.GetUpgrade(),
		}, err
	})
	if errors.Is(err, errNoLeader) && ctx.Err() == nil {
		return m.healthLeaderless(), nil
	}
	return out, err
}

func (m *Membership) healthHere(context.Context) (job.Health, error) {
	g := m.reign.Load()
	if g == nil {
		return job.Health{}, errNotLeader
	}
	state := g.pilot.GetState()
	h := job.Health{FailureTolerance: state.FailureTolerance, ClusterVersion: m.cfg.ClusterVersion()}
	_, h.Upgrade = raiseTo(h.ClusterVersion, m.cfg.Runs, g.offers.all(m.configuration().Servers))
	if len(state.Servers) == 0 {
		h.Reasons = append(h.Reasons, "the leader is new and has not asked the members yet")
	}
	leader := state.Servers[raft.ServerID(m.cfg.ServerID)]
	for id, s := range state.Servers {
		if why := ailment(nodeIDOf(string(id)), s, leader); why != "" {
			h.Reasons = append(h.Reasons, why)
		}
	}
	if problems := g.problems.Load(); problems != nil {
		for _, why := range *problems {
			h.Reasons = append(h.Reasons, why)
		}
	}
	h.Reasons = append(h.Reasons, m.diskReasons(g)...)
	h.Reasons = append(h.Reasons, m.clockReasons(g)...)
	slices.Sort(h.Reasons)
	h.Healthy = len(h.Reasons) == 0
	return h, nil
}

// diskReasons are the disks that are low or slow, and what follows from it.
func (m *Membership) diskReasons(g *reign) (reasons []string) {
	for id, c := range m.conditions(g) {
		node := nodeIDOf(string(id))
		if c.DiskLow {
			reasons = append(reasons, fmt.Sprintf("%s has little room on its disk: %d MiB are free", node, c.DiskFree>>20))
		}
		if c.LogWrite >= slowWrite {
			reasons = append(reasons, fmt.Sprintf("%s has a slow disk: a write to its log takes %v", node, c.LogWrite.Round(time.Millisecond)))
		}
	}
	if why := m.AddsRefused(); why != "" {
		reasons = append(reasons, "adds are refused: "+why)
	}
	return reasons
}

// ailment says in a sentence what is wrong with a server; empty when nothing is.
func ailment(node string, s, leader *autopilot.ServerState) string {
	switch {
	case s.Server.NodeStatus != autopilot.NodeAlive:
		return node + " is not alive: gossip does not hear it"
	case s.Stats.LastContact < 0:
		return node + " does not answer, or has never heard the leader"
	case s.Stats.LastContact > lastContactLimit:
		return fmt.Sprintf("%s last heard the leader %s ago", node, s.Stats.LastContact.Round(time.Millisecond))
	case leader != nil && s.Stats.LastIndex+lagLimit < leader.Stats.LastIndex:
		return fmt.Sprintf("%s is %d log entries behind", node, leader.Stats.LastIndex-s.Stats.LastIndex)
	case leader != nil && s.Stats.LastTerm != leader.Stats.LastTerm:
		return fmt.Sprintf("%s has no entry of the current term %d yet", node, leader.Stats.LastTerm)
	case !s.Health.Healthy:
		return node + " is not healthy"
	case s.State == autopilot.RaftNonVoter:
		return node + " does not vote yet: it must stay caught up for a while first"
	}
	return ""
}

// healthLeaderless is what a node can say by itself.
func (m *Membership) healthLeaderless() job.Health {
	h := job.Health{ClusterVersion: m.cfg.ClusterVersion(), Reasons: []string{"no leader is known to " + m.cfg.NodeID}}
	live := make(map[string]bool)
	for _, n := range m.members() {
		live[n.ServerID] = true
	}
	servers := m.configuration().Servers
	if len(servers) == 0 {
		h.Reasons = append(h.Reasons, m.cfg.NodeID+" is in no cluster yet")
	}
	if m.Removed() {
		h.Reasons = append(h.Reasons, m.cfg.NodeID+" was removed from the cluster")
	}
	for _, s := range servers {
		if !live[string(s.ID)] {
			h.Reasons = append(h.Reasons, nodeIDOf(string(s.ID))+" is not alive: gossip does not hear it")
		}
	}
	return h
}
