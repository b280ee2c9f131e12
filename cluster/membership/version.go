package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/job"
)

// The cluster version is raised by the leader when every member of Raft's
// configuration, voter or not, has just replied that it runs a higher one. A silent member
// may be of any release, so it delays the raise. Members are checked and added under one
// lock, so no member of an older release is added in between.

// offer is what a member reports of the cluster version.
type offer struct {
	runs    job.Versions
	cluster uint32 // as its state has it
	hold    bool   // its operator does not want the version raised
}

func offerOf(s *memberpb.StatusResponse) offer {
	return offer{runs: job.Versions{Min: s.MinVersion, Max: s.MaxVersion}, cluster: s.ClusterVersion, hold: s.HoldVersion}
}

// offers holds the last offer of each server.
type offers struct {
	mu sync.Mutex
	of map[raft.ServerID]offer
}

// record stores an offer and reports whether it differs from the last one.
func (o *offers) record(id raft.ServerID, now offer) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = make(map[raft.ServerID]offer)
	}
	news = o.of[id] != now
	o.of[id] = now
	return news
}

// all lists the offers of servers; the zero offer for one that never replied.
func (o *offers) all(servers []raft.Server) map[raft.ServerID]offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := make(map[raft.ServerID]offer, len(servers))
	for _, s := range servers {
		found[s.ID] = o.of[s.ID]
	}
	return found
}

// raiseTo returns the version to which the cluster can be raised: its present version plus
// one. If it is 0, why is what the raise waits for.
func raiseTo(present uint32, self job.Versions, offers map[raft.ServerID]offer) (to uint32, why string) {
	if self.Max <= present {
		return 0, ""
	}
	var waits []string
	for id, o := range offers {
		switch node := raftconfig.NodeID(id); {
		case o.runs == job.Versions{}:
			waits = append(waits, node+", which does not answer")
		case o.hold:
			waits = append(waits, node+", which was started with --hold-version")
		case o.runs.Max <= present:
			waits = append(waits, fmt.Sprintf("%s, which runs only %s", node, o.runs))
		}
	}
	if len(waits) == 0 {
		return present + 1, ""
	}
	slices.Sort(waits)
	return 0, fmt.Sprintf("version %d waits for %s", present+1, strings.Join(waits, "; "))
}

// raiseVersion raises the cluster version if that is possible now.
func (m *Membership) raiseVersion(ctx context.Context) error {
	if m.cfg.Runs.Max <= m.cfg.Facts.Version() || m.cfg.Facts.Follows() {
		return nil
	}
	end, err := m.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	servers := m.configuration().Servers
	nodes := make([]gossip.Member, len(servers))
	for i, s := range servers {
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		nodes[i].NodeID, nodes[i].ServerID, nodes[i].ClusterAddr = raftconfig.NodeID(s.ID), string(s.ID), string(addr)
	}
	fresh := make(map[raft.ServerID]offer, len(servers))
	for i, a := range m.askAll(ctx, nodes) {
		fresh[servers[i].ID] = offer{}
		if a != nil {
			fresh[servers[i].ID] = offerOf(a)
		}
	}
	to, _ := raiseTo(m.cfg.Facts.Version(), m.cfg.Runs, fresh)
	if to == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.Decisions.RaiseVersion(ctx, to); err != nil {
		return fmt.Errorf("raise the cluster version to %d: %w", to, err)
	}
	m.cfg.Logger.Info("the cluster version was raised; older releases cannot run this cluster's data any more", "version", to)
	return nil
}

// AllRun returns the highest version that all members are known to run, on the leader; at least
// the cluster's own.
func (m *Membership) AllRun() uint32 {
	l := m.leadership.Load()
	if l == nil {
		return m.cfg.Facts.Version()
	}
	most := m.cfg.Runs.Max
	for _, o := range l.offers.all(m.configuration().Servers) {
		most = min(most, o.runs.Max)
	}
	return max(most, m.cfg.Facts.Version())
}

// checkVersion returns an error when a node that would join cannot run the cluster's
// version.
func (m *Membership) checkVersion(ctx context.Context, n gossip.Member) error {
	a, err := m.ask(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return silent{fmt.Errorf("ask it which versions it runs: %w", err)}
	}
	if err := offerOf(a).runs.Check(m.cfg.Facts.Version()); err != nil {
		return fmt.Errorf("it cannot join: %w", err)
	}
	if err := m.checkShards(a); err != nil {
		return fmt.Errorf("it cannot join: %w", err)
	}
	return nil
}

// checkShards returns an error unless another node is of a cluster with as many shards as this node's.
func (m *Membership) checkShards(a *memberpb.StatusResponse) error {
	if theirs := max(int(a.Shards), 1); theirs != m.cfg.Shards {
		return fmt.Errorf("the number of shards (--shards) is %d on %s and %d on %s", theirs, a.NodeId, m.cfg.Shards, m.cfg.NodeID)
	}
	return nil
}
