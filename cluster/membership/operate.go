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

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/internal/sleep"
	"tarry/job"
)

// Members lists the servers of the cluster as the leader knows them, ordered by
// id. Without a leader it returns what this node knows, and no one has
// the leader's role. It blocks for a few seconds at most.
func (m *Membership) Members(ctx context.Context) ([]*report.Member, error) {
	resp, err := viaLeader(ctx, m, readCall, &memberpb.MembersRequest{}, (*server).Members, memberpb.MembershipClient.Members)
	if errors.Is(err, leaderrpc.ErrNoLeader) && ctx.Err() == nil {
		return m.membersHere(ctx)
	}
	return resp.GetMembers(), err
}

// LeaderApplied returns the last entry that the present leader has applied. It asks the
// leader, for two seconds at most.
func (m *Membership) LeaderApplied(ctx context.Context) (uint64, error) {
	l, ok := m.Leader()
	if !ok {
		return 0, leaderrpc.ErrNoLeader
	}
	a, err := m.ask(ctx, l.ServerID, l.ClusterAddr)
	if err != nil {
		return 0, err
	}
	return a.AppliedIndex, nil
}

// membersHere lists the servers from this node's configuration.
func (m *Membership) membersHere(ctx context.Context) ([]*report.Member, error) {
	r := m.raft.Load()
	if r == nil {
		return nil, job.NotApplied("this node is starting")
	}
	_, leader := r.LeaderWithID()
	last := r.LastIndex()
	live := make(map[string]gossip.Member)
	for _, n := range m.members() {
		live[n.ServerID] = n
	}
	var out []*report.Member
	var nodes []gossip.Member
	for _, s := range m.configuration().Servers {
		n, alive := live[string(s.ID)]
		n.ServerID, n.NodeID = string(s.ID), raftconfig.NodeID(s.ID)
		if n.ClusterAddr == "" {
			n.ClusterAddr = string(s.Address)
		}
		role := "follower"
		if s.ID == leader {
			role = "leader"
		}
		nodes = append(nodes, n)
		out = append(out, &report.Member{
			Id: n.NodeID, Address: string(s.Address), HttpAddress: m.HTTPAddr(n.ServerID), Role: role,
			Voter: s.Suffrage == raft.Voter, NonVoter: n.NonVoter, Alive: alive, Version: n.Version,
		})
	}
	for i, a := range m.askAll(ctx, nodes) {
		if a == nil {
			out[i].Alive = false // gossip takes seconds to see that it is gone
			out[i].Lag = m.lastLag(raft.ServerID(nodes[i].ServerID), last)
			continue
		}
		m.overrule(&nodes[i]) // it has replied now
		out[i].HttpAddress, out[i].NonVoter, out[i].Version = nodes[i].HTTPAddr, nodes[i].NonVoter, nodes[i].Version
		out[i].Address, out[i].AppliedIndex = cmp.Or(a.ClusterAddr, out[i].Address), a.AppliedIndex
		out[i].Lag = last - min(last, a.AppliedIndex)
		out[i].Draining, out[i].DiskFreeBytes, out[i].DiskLow = a.Drained, a.DiskFreeBytes, a.DiskLow
		out[i].MinVersion, out[i].MaxVersion, out[i].ClusterVersion = a.MinVersion, a.MaxVersion, a.ClusterVersion
	}
	slices.SortFunc(out, func(a, b *report.Member) int { return strings.Compare(a.Id, b.Id) })
	return out, nil
}

// lastLag returns the lag of a silent server by autopilot's last statistics; the whole log
// if there are none.
func (m *Membership) lastLag(id raft.ServerID, last uint64) uint64 {
	if l := m.leadership.Load(); l != nil {
		if s := l.autopilot.GetState().Servers[id]; s != nil {
			return last - min(last, s.Stats.LastIndex)
		}
	}
	return last
}

// Transfer transfers leadership to the voter with this node id, or to the best follower if
// it is empty. It blocks until that is done, for a few seconds at most. A transfer to the
// present leader succeeds.
func (m *Membership) Transfer(ctx context.Context, nodeID string) error {
	_, err := viaLeader(ctx, m, writeCall, &memberpb.TransferRequest{Id: nodeID}, (*server).Transfer, memberpb.MembershipClient.Transfer)
	return err
}

func (m *Membership) transferHere(ctx context.Context, nodeID string) error {
	r := m.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return errNotLeader
	}
	if nodeID == m.cfg.NodeID {
		return nil
	}
	if target, ok := findServer(m.configuration(), nodeID); ok { // otherwise handOver fails, or chooses
		if err := m.clocks.CheckLeader(ctx, target.ID); err != nil {
			return err
		}
	}
	term := r.CurrentTerm()
	if err := m.handOver(nodeID); err != nil {
		return err
	}
	for {
		switch _, id := r.LeaderWithID(); {
		case id != "" && string(id) != m.cfg.ServerID:
			return nil
		case r.State() == raft.Leader && r.CurrentTerm() > term: // for example because the other node is drained
			return job.Errorf(job.CodeConflict, "leadership was handed over and has come back to %s: the other node could not lead, or is drained", m.cfg.NodeID)
		}
		if !sleep.For(ctx, 20*time.Millisecond) {
			return job.Unknown("leadership was given up, but no new leader is known yet")
		}
	}
}

// handOver transfers leadership. Raft ends the attempt after an election timeout.
func (m *Membership) handOver(nodeID string) error {
	r := m.raft.Load()
	c := m.configuration()
	var target *raft.Server
	for _, s := range c.Servers {
		if nodeID != "" && (raftconfig.NodeID(s.ID) == nodeID || string(s.ID) == nodeID) {
			target = &s
		}
	}
	var f raft.Future
	switch {
	case nodeID != "" && target == nil:
		return unknownMember(nodeID, c)
	case target != nil && target.Suffrage != raft.Voter && m.neverVotes(target.ID):
		return job.Errorf(job.CodeConflict, "%s was started with --non-voter and never leads", nodeID)
	case target != nil && target.Suffrage != raft.Voter:
		return job.Errorf(job.CodeConflict, "%s is not a voter yet and cannot lead", nodeID)
	case len(raftconfig.Voters(c)) < 2:
		return job.Errorf(job.CodeConflict, "%s is the only voter; there is no other to lead", m.cfg.NodeID)
	case target != nil:
		f = r.LeadershipTransferToServer(target.ID, target.Address)
	default:
		f = r.LeadershipTransfer()
	}
	if err := f.Error(); err != nil {
		return job.NotApplied("leadership was not handed over: %w", err)
	}
	return nil
}

func unknownMember(id string, c raft.Configuration) error {
	return job.Errorf(job.CodeNotFound, "%.64q is not a member; the members are %s", id, strings.Join(nodeIDs(c.Servers), ", "))
}

// Remove removes a node from the cluster for good. It is refused with
// CodeQuorumWouldFail when the voters left alive would be no quorum, and with
// CodeNotFound when there is no such member. A leader that is to be removed transfers
// leadership first. No server of the node joins again before Admit. It blocks for a few
// seconds at most.
func (m *Membership) Remove(ctx context.Context, nodeID string) error {
	_, err := viaLeader(ctx, m, writeCall, &memberpb.RemoveRequest{Id: nodeID}, (*server).Remove, memberpb.MembershipClient.Remove)
	return err
}

func (m *Membership) removeHere(ctx context.Context, nodeID string) error {
	r := m.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return errNotLeader
	}
	end, err := m.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	// After a node lost its data, two servers have its node id for a moment.
	var removed []raft.ServerID
	for {
		c := m.configuration()
		target, ok := findServer(c, nodeID)
		if !ok && len(removed) == 0 {
			return unknownMember(nodeID, c)
		}
		if !ok {
			return m.awaitRemoval(ctx, removed)
		}
		if err := m.mayRemove(ctx, c, target.ID); err != nil {
			return err
		}
		if string(target.ID) == m.cfg.ServerID {
			if err := m.handOver(""); err != nil {
				return err
			}
			return errNotLeader // the caller goes on with the next leader
		}
		if err := m.forget(ctx, string(target.ID), nodeOf(c, target)); err != nil {
			return removalError(nodeID, err)
		}
		if err := m.removeServer(target.ID); err != nil {
			return removalError(nodeID, err)
		}
		removed = append(removed, target.ID)
	}
}

// removalError makes the outcome of a failed removal unknown: once forgetting was
// proposed, any leader may complete the rest.
func removalError(nodeID string, err error) error {
	var typed *job.Error
	if errors.As(err, &typed) && (typed.Code == job.CodeNotApplied || typed.Code == job.CodeConditionFailed) {
		return err
	}
	return job.Unknown("the removal of %s may be completed by the next leader: %w", nodeID, err)
}

// nodeOf returns the node that is removed with a server: its own, unless another server of
// that node stays.
func nodeOf(c raft.Configuration, leaving raft.Server) string {
	node := raftconfig.NodeID(leaving.ID)
	for _, s := range c.Servers {
		if s.ID != leaving.ID && raftconfig.NodeID(s.ID) == node {
			return ""
		}
	}
	return node
}

// findServer finds a member by node id, or by its exact server id.
func findServer(c raft.Configuration, id string) (raft.Server, bool) {
	for _, s := range c.Servers {
		if string(s.ID) == id || raftconfig.NodeID(s.ID) == id {
			return s, true
		}
	}
	return raft.Server{}, false
}

// Leave removes this node from its cluster, under the rules of Remove, and
// returns when it is out. The caller then stops the process.
func (m *Membership) Leave(ctx context.Context) error {
	if m.Removed() {
		return nil
	}
	if err := m.Remove(ctx, m.cfg.ServerID); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	m.removed.Store(true)
	return nil
}
