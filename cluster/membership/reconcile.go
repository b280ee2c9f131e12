package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
)

// reconcile makes Raft's configuration follow the live members, one member after
// the other. A member that cannot be taken in does not hold up the others.
func (m *Membership) reconcile(ctx context.Context) error {
	end, err := m.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	var errs []error
	problems := make(map[string]string)
	if id, err := m.finishRemoval(ctx); err != nil {
		// The others go on: a joiner may be what the rest of it waits for.
		node := nodeIDOf(string(id))
		problems[node] = fmt.Sprintf("the removal of %s (server %s) is half done: %v", node, id, err)
		errs = append(errs, fmt.Errorf("finish the removal of %s: %w", id, err))
	}
	for _, n := range m.others() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := m.settle(ctx, n); err != nil {
			problems[n.NodeID] = fmt.Sprintf("%s is alive but cannot be taken in: %v", n.NodeID, err)
			errs = append(errs, fmt.Errorf("node %s: %w", n.NodeID, err))
		}
	}
	if g := m.reign.Load(); g != nil {
		g.problems.Store(&problems)
	}
	return errors.Join(errs...)
}

// finishRemoval completes a removal of which only the first half, forgetting, was
// done: the leader before this one did not get further. It returns whose.
func (m *Membership) finishRemoval(ctx context.Context) (raft.ServerID, error) {
	c, index := m.configurationAt()
	for _, s := range c.Servers {
		if !m.cfg.Forgotten(string(s.ID)) {
			continue
		}
		if string(s.ID) == m.cfg.ServerID {
			return s.ID, m.handOver("")
		}
		if err := checkRemoval(c, m.aliveServers(ctx, c), s.ID); err != nil {
			return s.ID, err
		}
		return s.ID, m.removeServer(s.ID, index)
	}
	return "", nil
}

// settle brings one live node's place in the configuration up to date.
func (m *Membership) settle(ctx context.Context, n gossip.Member) error {
	if m.cfg.Forgotten(n.ServerID) {
		return nil // it was removed; it will find out
	}
	c, index := m.configurationAt()
	var older []raft.Server
	for _, s := range c.Servers {
		switch {
		case string(s.ID) == n.ServerID && string(s.Address) == n.ClusterAddr:
			return nil
		case string(s.ID) == n.ServerID:
			if err := m.checkMove(ctx, s, n); err != nil {
				return err
			}
			m.cfg.Logger.Info("member has a new address", "node", n.NodeID, "old", s.Address, "new", n.ClusterAddr)
			return m.addServer(n, index) // keeps a voter a voter
		case nodeIDOf(string(s.ID)) == n.NodeID:
			older = append(older, s)
		}
	}
	if n.Protocol != protocol {
		return fmt.Errorf("it speaks membership protocol %d, this node %d", n.Protocol, protocol)
	}
	if err := m.checkVersion(ctx, n); err != nil {
		return err
	}
	if len(older) > 0 {
		// One at a time; the next pass goes on.
		return m.replace(ctx, c, index, older[0], n)
	}
	if err := m.invite(ctx, n); err != nil {
		return err
	}
	if err := m.addServer(n, index); err != nil {
		return err
	}
	m.cfg.Logger.Info("node joined; it votes once it has caught up", "node", n.NodeID, "address", n.ClusterAddr)
	return nil
}

// checkMove is an error unless a member itself confirms the address that gossip gives
// for it, where anybody can say anything: at its present address when it answers
// there, else at the new one.
func (m *Membership) checkMove(ctx context.Context, s raft.Server, n gossip.Member) error {
	a, err := m.ask(ctx, n.ServerID, string(s.Address))
	if err != nil {
		if a, err = m.ask(ctx, n.ServerID, n.ClusterAddr); err != nil {
			return fmt.Errorf("gossip says that it moved from %s to %s: %w", s.Address, n.ClusterAddr, err)
		}
	}
	if a.ClusterAddr != n.ClusterAddr {
		return fmt.Errorf("gossip says that it moved from %s to %s, but it says that it is at %.255q", s.Address, n.ClusterAddr, a.ClusterAddr)
	}
	if ours := m.cfg.ClusterID(); a.ClusterId != "" && a.ClusterId != ours {
		return fmt.Errorf("at %s it says that it belongs to cluster %.64q", n.ClusterAddr, a.ClusterId)
	}
	return nil
}

// replace removes the server that a node id had before its data was lost. The
// newcomer is added in the same pass.
func (m *Membership) replace(ctx context.Context, c raft.Configuration, index uint64, old raft.Server, n gossip.Member) error {
	if m.bothLive(ctx, old.ID, n) {
		return fmt.Errorf("another node with the id %s is still alive at %s, or was moments ago (servers %s and %s); if both run, %s",
			n.NodeID, old.Address, old.ID, n.ServerID, wayOut(false, false))
	}
	if err := checkRemoval(c, m.aliveServers(ctx, c), old.ID); err != nil {
		return err
	}
	m.cfg.Logger.Info("node came back without its data; its earlier server is removed", "node", n.NodeID, "old", old.ID, "new", n.ServerID)
	if err := m.forget(ctx, string(old.ID)); err != nil {
		return err
	}
	if err := m.removeServer(old.ID, index); err != nil {
		return err
	}
	return m.settle(ctx, n)
}

// bothLive reports whether two machines were given the same node id, as far as this
// node can tell. Gossip alone is no witness where the newcomer has the old server's
// address: it believes in the earlier run for a while, a minute on a busy machine,
// because its probes reach a process there.
func (m *Membership) bothLive(ctx context.Context, old raft.ServerID, n gossip.Member) bool {
	earlier, alive := m.find(string(old))
	if !alive || earlier.ClusterAddr != n.ClusterAddr {
		return alive
	}
	_, err := m.ask(ctx, n.ServerID, n.ClusterAddr)
	return err != nil // the newcomer's answer proves that the address is its own now
}

// invite asks a node to come into this cluster and no other, and proves that the
// leader can reach it by the address it advertises.
func (m *Membership) invite(ctx context.Context, n gossip.Member) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return err
	}
	resp, err := c.Invite(ctx, &memberpb.InviteRequest{ServerId: m.cfg.ServerID, ClusterId: m.cfg.ClusterID(), Invited: n.ServerID, ClusterVersion: m.cfg.ClusterVersion()})
	if err != nil {
		return fmt.Errorf("invite it at %s: %w", n.ClusterAddr, err)
	}
	if !resp.Accepted {
		return fmt.Errorf("it cannot join: %s", resp.Reason)
	}
	return nil
}

func (m *Membership) addServer(n gossip.Member, prevIndex uint64) error {
	f := m.raft.Load().AddNonvoter(raft.ServerID(n.ServerID), raft.ServerAddress(n.ClusterAddr), prevIndex, changeTimeout)
	if err := f.Error(); err != nil {
		return fmt.Errorf("add it at %s: %w", n.ClusterAddr, err)
	}
	return nil
}

func (m *Membership) removeServer(id raft.ServerID, prevIndex uint64) error {
	if err := m.raft.Load().RemoveServer(id, prevIndex, changeTimeout).Error(); err != nil {
		return fmt.Errorf("remove %s: %w", id, err)
	}
	m.cfg.Logger.Info("server removed", "member", nodeIDOf(string(id)), "server", id)
	return nil
}

func (m *Membership) forget(ctx context.Context, serverID string) error {
	if m.cfg.Forgotten(serverID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.ProposeForget(ctx, serverID); err != nil {
		return fmt.Errorf("forget %s: %w", serverID, err)
	}
	return nil
}

// aliveServers asks every server of the configuration itself: gossip may take
// seconds to notice that one has gone.
func (m *Membership) aliveServers(ctx context.Context, c raft.Configuration) map[raft.ServerID]bool {
	nodes := make([]gossip.Member, len(c.Servers))
	for i, s := range c.Servers {
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		nodes[i].NodeID, nodes[i].ServerID, nodes[i].ClusterAddr = nodeIDOf(string(s.ID)), string(s.ID), string(addr)
	}
	alive := make(map[raft.ServerID]bool, len(nodes))
	for i, a := range m.askAll(ctx, nodes) {
		alive[c.Servers[i].ID] = a != nil
	}
	return alive
}

// acceptInvitation is an invitation as the invited node sees it; an empty answer
// accepts it.
func (m *Membership) acceptInvitation(req *memberpb.InviteRequest) (reason string) {
	if req.Invited != m.cfg.ServerID {
		return fmt.Sprintf("server %s is meant, but this is %s", req.Invited, m.cfg.ServerID)
	}
	r := m.raft.Load()
	if req.ClusterId == "" || r == nil {
		return "the cluster or this node is not ready yet"
	}
	if ours := m.cfg.ClusterID(); ours != "" {
		if ours != req.ClusterId {
			return "it belongs to cluster " + ours
		}
		return ""
	}
	// Entry 1 is the first configuration: a cluster that came no further than
	// that has nothing to lose. Anything more is another cluster's data.
	if r.LastIndex() > 1 && !m.Configured(req.ServerId) {
		return "it has data of a cluster that never got an id; move its data directory away to let it join"
	}
	if bound := m.affiliation.bind(req.ClusterId, time.Now()); bound != req.ClusterId {
		return "it is about to join cluster " + bound
	}
	m.joining.Store(true)
	m.admitted.Store(true)
	poke(m.toWatcher)
	return ""
}
