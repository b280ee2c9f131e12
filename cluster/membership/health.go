package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// Health is the cluster's, as the leader sees it. Without a leader it is not
// healthy, and the problems are those of this node. It blocks for a few seconds at most.
func (m *Membership) Health(ctx context.Context) (*report.Health, error) {
	h, err := viaLeader(ctx, m, readCall, &memberpb.HealthRequest{}, (*server).Health, memberpb.MembershipClient.Health)
	if errors.Is(err, leaderrpc.ErrNoLeader) && ctx.Err() == nil {
		return m.healthLeaderless(), nil
	}
	h.Complete()
	return h, err
}

// LeaderHealth returns the cluster's health if this node leads; nil if not. It asks no other
// node and does not block.
func (m *Membership) LeaderHealth() *report.Health {
	l := m.leadership.Load()
	if l == nil {
		return nil
	}
	state := l.autopilot.GetState()
	h := &report.Health{FailureTolerance: int32(state.FailureTolerance), ClusterVersion: m.cfg.Facts.Version()}
	servers := m.configuration().Servers
	if !m.cfg.Facts.Follows() {
		_, h.Upgrade = raiseTo(h.ClusterVersion, m.cfg.Runs, l.offers.all(servers))
	}
	if len(state.Servers) == 0 {
		h.Problems = append(h.Problems, report.NewProblem(report.NewLeader, "", "the leader is new and has not asked the members yet"))
	}
	h.Problems = append(h.Problems, m.serverProblems(l, state.Servers)...)
	if len(raftconfig.Voters(m.configuration())) == 2 {
		h.Problems = append(h.Problems, report.NewProblem(report.TwoVoters, "", "two nodes vote, and writes need both: if either fails, writes stop; add a third"))
	}
	if problems := l.problems.Load(); problems != nil {
		h.Problems = slices.AppendSeq(h.Problems, maps.Values(*problems))
	}
	h.Problems = append(h.Problems, m.groupProblems()...)
	h.Problems = append(h.Problems, l.disks.Problems(time.Now())...)
	h.Problems = append(h.Problems, m.clocks.Problems()...)
	h.Problems = append(h.Problems, l.rings.problems(servers, m.ringState())...)
	h.Problems = append(h.Problems, m.cfg.Condition.Problems(time.Now())...)
	h.Problems = append(h.Problems, backupProblems(m.memberBackups(l))...)
	slices.SortFunc(h.Problems, func(a, b *report.Problem) int { return strings.Compare(a.Text, b.Text) })
	h.Conclude()
	return h
}

// serverProblems returns what is wrong with the servers of the configuration.
func (m *Membership) serverProblems(l *leadership, servers map[raft.ServerID]*autopilot.ServerState) (list []*report.Problem) {
	live := make(map[raft.ServerID]bool)
	for _, n := range m.members() {
		live[raft.ServerID(n.ServerID)] = true
	}
	leader := servers[raft.ServerID(m.cfg.ServerID)]
	for id, s := range servers {
		node := raftconfig.NodeID(id)
		if p := m.otherData(string(id)); p != nil && s.Stats.LastContact < 0 {
			list = append(list, p)
		} else if p := ailment(node, s, leader, live[id], l.progress.stands(id, time.Now())); p != nil {
			list = append(list, p)
		} else if l.drains.has(id) {
			list = append(list, isDrained(node))
		}
		if s.Server.NodeType == nonVoter && s.State != autopilot.RaftNonVoter {
			list = append(list, report.NewProblem(report.NodeVotes, node, "%s votes, though it was started with --non-voter, which does not change a voter: restart it without the flag", node))
		}
	}
	return list
}

// otherData describes a live node with the id of a server, but not its data; nil: there is none.
func (m *Membership) otherData(serverID string) *report.Problem {
	for _, n := range m.members() {
		if n.NodeID == raftconfig.NodeID(serverID) && n.ServerID != serverID && !m.Configured(n.ServerID) && !m.cfg.Facts.Forgotten(n.ServerID) {
			return report.NewProblem(report.NodeEmpty, n.NodeID, "%s runs, but without the data of the member (server %s): its directory is an empty or another one (server %s)", n.NodeID, serverID, n.ServerID)
		}
	}
	return nil
}

// briefly cuts what another node says of itself.
func briefly(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 200)], "?")
}

// ailment describes what is wrong with a server; nil: nothing is. stands is why it does not take
// part, live is what gossip says of it now; s is some seconds old.
func ailment(node string, s, leader *autopilot.ServerState, live bool, stands string) *report.Problem {
	problem := func(k report.Kind, format string, args ...any) *report.Problem {
		return report.NewProblem(k, node, "%s "+format, slices.Concat([]any{node}, args)...)
	}
	switch {
	case !live:
		return isDown(node)
	case s.Server.NodeStatus != autopilot.NodeAlive:
		return problem(report.NodeUnchecked, "has come back, and the leader has not asked it yet")
	case stands != "":
		return problem(report.NodeStalled, "does not take part: %s", stands)
	case s.Stats.LastContact < 0:
		return problem(report.NodeSilent, "does not reply, or has never received a message from the leader")
	case s.Stats.LastContact > lastContactLimit:
		return problem(report.NodeSilent, "last received a message from the leader %s ago", s.Stats.LastContact.Round(time.Millisecond))
	case leader != nil && s.Stats.LastIndex+lagLimit < leader.Stats.LastIndex:
		return problem(report.NodeBehind, "is %d log entries behind", leader.Stats.LastIndex-s.Stats.LastIndex)
	case leader != nil && s.Stats.LastTerm != leader.Stats.LastTerm:
		return problem(report.NodeBehind, "has no entry of the current term %d yet", leader.Stats.LastTerm)
	case !s.Health.Healthy:
		return problem(report.NodeUnchecked, "is not healthy")
	case s.State == autopilot.RaftNonVoter && s.Server.NodeType == nonVoter:
		return nil
	case s.State == autopilot.RaftNonVoter:
		return problem(report.NodeNotVoting, "does not vote yet: it must stay caught up for a while first")
	}
	return nil
}

func isDown(node string) *report.Problem {
	return report.NewProblem(report.NodeDown, node, "%s is not alive: gossip has no sign of it", node)
}

// healthLeaderless is the health that a node reports without a leader.
func (m *Membership) healthLeaderless() *report.Health {
	h := &report.Health{ClusterVersion: m.cfg.Facts.Version()}
	self := m.cfg.NodeID
	add := func(k report.Kind, node, format string, args ...any) {
		h.Problems = append(h.Problems, report.NewProblem(k, node, format, args...))
	}
	add(report.NoLeader, self, "no leader is known to %s", self)
	live := make(map[string]bool)
	for _, n := range m.members() {
		live[n.ServerID] = true
	}
	servers := m.configuration().Servers
	if len(servers) == 0 {
		add(report.NodeOutside, self, "%s is in no cluster yet", self)
		others := m.others()
		if i := slices.IndexFunc(others, func(n gossip.Member) bool { return n.NodeID == self }); i >= 0 {
			add(report.DuplicateNode, self, "another node with the id %s is at %s, or was moments ago: if both run, stop the one that was started by mistake, and start it with another --node-id and an empty data directory", self, others[i].ClusterAddr)
		}
		if slices.ContainsFunc(others, func(n gossip.Member) bool { return n.ClusterID != "" && !n.Fresh }) {
			add(report.NodeEmpty, self, "%s has no data, and no leader of the cluster that it finds has taken it in: ask another node for cluster health; without a leader start that one's other nodes; if the disks of a majority are lost for good, see docs/operations.md, A lost majority (tarry recover), on a node that has data", self)
		}
	}
	if m.Removed() {
		add(report.NodeRemoved, self, "%s was removed from the cluster", self)
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
			h.Problems = append(h.Problems, cmp.Or(m.otherData(string(s.ID)), isDown(raftconfig.NodeID(s.ID))))
		}
	}
	if up <= voters/2 && voters > 0 {
		add(report.NoMajority, "", "of %d voters %d are alive, fewer than a majority: start the others; if their disks are lost for good, see docs/operations.md, A lost majority (tarry recover)", voters, up)
	}
	h.Conclude()
	return h
}

// applyLimit is how long a server may apply nothing while the leader has applied more. Heartbeats
// do not show it: they are answered beside Raft's main loop.
const applyLimit = 5 * time.Second

// memberProgress holds what the members last reported of their own work.
type memberProgress struct {
	mu sync.Mutex
	of map[raft.ServerID]*progress
}

type progress struct {
	trouble string    // that the server sees itself; empty: none
	applied uint64    // index
	behind  uint64    // how many entries more the leader had applied
	since   time.Time // of the first report with this applied index while it was behind
}

// record takes a report, and what the leader had applied before it asked.
func (p *memberProgress) record(id raft.ServerID, trouble string, applied, leader uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[raft.ServerID]*progress)
	}
	s := p.of[id]
	if s == nil {
		s = &progress{since: now}
		p.of[id] = s
	}
	if applied != s.applied || s.behind == 0 {
		s.since = now
	}
	s.trouble, s.applied, s.behind = trouble, applied, leader-min(leader, applied)
}

// forget drops what a server has reported: it does not reply, and may be busy with catching up when
// it does again.
func (p *memberProgress) forget(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, id)
}

// stands returns why a server does not take part although it replies; empty: it does.
func (p *memberProgress) stands(id raft.ServerID, now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[id]
	switch {
	case s == nil:
		return ""
	case s.trouble != "":
		return s.trouble
	case s.behind > 0 && now.Sub(s.since) > applyLimit:
		return fmt.Sprintf("it has applied nothing for %s, and is %d log entries behind", now.Sub(s.since).Round(time.Second), s.behind)
	}
	return ""
}
