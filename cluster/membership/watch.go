package membership

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
)

// watch is every node's periodic care: its gossip record is true, missing
// members are sought, and a removal is noticed.
func (m *Membership) watch(ctx context.Context) {
	// A first try at once, then at intervals that differ between nodes.
	next := time.Now()
	spread := m.recordState()
	heard := map[raft.ServerID]bool{}
	duplicates := map[string]string{}
	for {
		m.tellHeard(heard)
		m.warnOfDuplicates(ctx, duplicates)
		if s := m.recordState(); s != spread {
			if m.updateRecord() {
				spread = s
			}
		}
		if now := time.Now(); !now.Before(next) {
			m.followAdvertisedIP(ctx)
			m.rejoin(ctx)
			m.checkRemoved(ctx)
			again := m.cfg.Timing.Rejoin
			if !m.hasState() {
				again = m.cfg.Timing.Poll // nodes that start together miss each other at first
			}
			next = time.Now().Add(again*3/4 + rand.N(again/2))
		}
		t := time.NewTimer(m.cfg.Timing.Poll)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.toWatcher:
		case <-t.C:
		}
		t.Stop()
	}
}

// tellHeard logs which members of the cluster are heard now and were not, and the
// other way round. Only members in Raft's configuration count: gossip may be forged.
// heard is what was told before.
func (m *Membership) tellHeard(heard map[raft.ServerID]bool) {
	member := map[raft.ServerID]bool{}
	for _, s := range m.configuration().Servers {
		member[s.ID] = true
		_, now := m.PeerByServerID(string(s.ID))
		before, known := heard[s.ID]
		heard[s.ID] = now
		switch node := nodeIDOf(string(s.ID)); {
		case now && !known:
			m.cfg.Logger.Info("member is alive", "member", node, "address", s.Address)
		case now && !before:
			m.cfg.Logger.Info("member is back", "member", node, "address", s.Address)
		case !now && before:
			m.cfg.Logger.Warn("member has stopped or is not heard any more", "member", node, "address", s.Address)
		}
	}
	for id := range heard {
		if !member[id] {
			delete(heard, id)
			m.cfg.Logger.Info("member has left the cluster", "member", nodeIDOf(string(id)))
		}
	}
}

// recordState is the part of the gossip record that changes.
type recordState struct {
	cluster string
	fresh   bool
}

func (m *Membership) recordState() recordState {
	fresh := !m.hasState()
	if fresh {
		m.keepBinding()
	}
	return recordState{m.ClusterID(), fresh}
}

func (m *Membership) updateRecord() bool {
	p := m.pool.Load()
	if p == nil {
		return false
	}
	if err := p.Update(); err != nil {
		m.cfg.Logger.Debug("no other node has taken the changed record yet", "error", err)
	}
	return true
}

// keepBinding renews the binding to a cluster while one of its members is heard,
// and ends it long after the last was.
func (m *Membership) keepBinding() {
	id := m.affiliation.id()
	if id == "" {
		return
	}
	now := time.Now()
	for _, n := range m.others() {
		if n.ClusterID == id && !n.Fresh {
			m.affiliation.bind(id, now)
			return
		}
	}
	if m.affiliation.lapse(now) {
		m.cfg.Logger.Warn("no member of the cluster to join is heard any more; any cluster may take this node in", "cluster", id)
	}
}

// rejoin seeks members when fewer are heard than there should be. Gossip itself
// gives up on a dead node after half a minute, so without this the sides of a
// long partition would never find each other again.
func (m *Membership) rejoin(ctx context.Context) {
	p := m.pool.Load()
	if p == nil || !m.missesMembers() {
		return
	}
	addrs := m.seedList()
	for _, a := range p.Known() {
		if a != m.GossipAddr() && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return
	}
	n, err := p.Join(ctx, addrs)
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Debug("not every address to join answered", "answered", n, "error", err)
	}
	if f := m.foreign.Load(); f != nil && *f != m.foreignSaid {
		m.foreignSaid = *f // once for each
		m.cfg.Logger.Warn("another cluster was met and refused", "node", f.nodeID, "its_cluster", f.theirs, "our_cluster", f.ours)
	}
}

func (m *Membership) missesMembers() bool {
	live := make(map[string]bool)
	for _, n := range m.members() {
		live[n.ServerID] = true
	}
	for _, s := range m.configuration().Servers {
		if !live[string(s.ID)] {
			return true
		}
	}
	return len(live) < max(len(m.seedList()), 2)
}

func (m *Membership) seedList() []string {
	m.seedsMu.Lock()
	defer m.seedsMu.Unlock()
	return slices.Clone(m.seeds)
}

func (m *Membership) addSeeds(addrs []string) {
	m.seedsMu.Lock()
	defer m.seedsMu.Unlock()
	for _, a := range addrs {
		if !slices.Contains(m.seeds, a) && len(m.seeds) < maxSeeds {
			m.seeds = append(m.seeds, a)
		}
	}
}

// checkRemoved asks the others when this node has reason to think that it is no
// longer a member. One answer is enough: a forgotten server stays forgotten, and
// its id is of one cluster only.
func (m *Membership) checkRemoved(ctx context.Context) {
	r := m.raft.Load()
	if m.removed.Load() || !m.hasState() {
		return
	}
	if _, leader := r.LeaderWithID(); leader != "" && m.Configured(m.cfg.ServerID) {
		return
	}
	for _, a := range m.askAll(ctx, m.others()) {
		if a != nil && a.AskerForgotten {
			m.removed.Store(true)
			m.cfg.Logger.Error("this node was removed from the cluster; to bring it back, stop it, move its data directory away and start it again")
			return
		}
	}
}

// Configured reports whether a server is in Raft's latest configuration here.
func (m *Membership) Configured(serverID string) bool {
	for _, s := range m.configuration().Servers {
		if string(s.ID) == serverID {
			return true
		}
	}
	return false
}

// followAdvertisedIP starts gossip anew when the advertised name has another
// address than the one that gossip spreads, as after a container was connected
// to its network again.
func (m *Membership) followAdvertisedIP(ctx context.Context) {
	p := m.pool.Load()
	if p != nil {
		lookup, cancel := context.WithTimeout(ctx, askTimeout)
		ip, err := gossip.ResolveHost(lookup, m.cfg.AdvertiseHost)
		cancel()
		if err != nil || ip.Equal(p.IP()) {
			return
		}
		m.cfg.Logger.Warn("the advertised host has a new address; gossip starts anew", "host", m.cfg.AdvertiseHost, "old", p.IP(), "new", ip)
		m.pool.Store(nil)
		if err := p.Close(); err != nil {
			m.cfg.Logger.Debug("old gossip did not stop cleanly", "error", err)
		}
	}
	if err := m.openPool(ctx); err != nil && ctx.Err() == nil {
		m.cfg.Logger.Error("gossip did not start; trying again", "error", err)
	}
}
