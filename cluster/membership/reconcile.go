package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// reconcile updates Raft's configuration by the live members, one member after
// the other. A member that cannot be added does not delay the others.
func (m *Membership) reconcile(ctx context.Context) error {
	end, err := m.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	var errs []error
	problems, uninvited := make(map[string]*report.Problem), make(map[string]string)
	if id, err := m.finishRemoval(ctx); err != nil {
		// The others go on: the removal may wait for a joiner.
		node := raftconfig.NodeID(id)
		problems[node] = report.NewProblem(report.NodeRemoved, node, "the removal of %s (server %s) is half done: %v", node, id, err)
		errs = append(errs, fmt.Errorf("finish the removal of %s: %w", id, err))
	}
	l, nodes := m.leadership.Load(), m.members()
	if l != nil {
		l.signs.heard(m.configuration().Servers, m.find, time.Now())
	}
	var turned turnedDown
	var failed map[string]error
	if l != nil {
		failed = m.askNewcomers(ctx, l, nodes)
	}
	for _, n := range nodes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p := m.stillRuns(n); p != nil {
			problems[n.NodeID] = p
			continue
		}
		err := failed[n.ServerID]
		if err == nil {
			err = m.syncMember(ctx, n)
		}
		switch {
		case err == nil:
		case errors.As(err, new(notInvited)):
			uninvited[n.ServerID] = err.Error()
		case !m.Configured(n.ServerID):
			turned.add(n.NodeID, err)
		default:
			problems[n.NodeID] = cannotBeTakenIn(n.NodeID, err)
			errs = append(errs, fmt.Errorf("node %s: %w", n.NodeID, err))
		}
	}
	errs = turned.report(problems, errs)
	if l != nil {
		l.problems.Store(&problems)
		m.turnedAway(l, uninvited)
	}
	return errors.Join(errs...)
}

func cannotBeTakenIn(node string, why error) *report.Problem {
	return report.NewProblem(report.NodeOutside, node, "%s is alive but cannot be taken in: %v", node, why)
}

// finishRemoval completes the removal of a server that an earlier leader had forgotten
// but not removed. It returns which server.
func (m *Membership) finishRemoval(ctx context.Context) (raft.ServerID, error) {
	c := m.configuration()
	for _, s := range c.Servers {
		if !m.cfg.Facts.Forgotten(string(s.ID)) {
			continue
		}
		if string(s.ID) == m.cfg.ServerID {
			return s.ID, m.handOver("")
		}
		if err := m.mayRemove(ctx, c, s.ID); err != nil {
			return s.ID, err
		}
		return s.ID, m.removeServer(s.ID)
	}
	return "", nil
}

// syncMember updates one live node's entry in the configuration. This node's own entry
// has an earlier address if no other node has led since it moved.
func (m *Membership) syncMember(ctx context.Context, n gossip.Member) error {
	if m.cfg.Facts.Forgotten(n.ServerID) {
		return nil // it was removed, and will notice
	}
	c := m.configuration()
	var older []raft.Server
	for _, s := range c.Servers {
		switch {
		case string(s.ID) == n.ServerID && string(s.Address) == n.ClusterAddr:
			return nil
		case string(s.ID) == n.ServerID:
			if err := m.checkMove(ctx, s, n); err != nil {
				return err
			}
			m.cfg.Logger.Info("member has a new address", "member", n.NodeID, "old", s.Address, "new", n.ClusterAddr)
			return m.addServer(n) // keeps a voter a voter
		case raftconfig.NodeID(s.ID) == n.NodeID:
			older = append(older, s)
		}
	}
	if n.ServerID == m.cfg.ServerID {
		return nil // this node was removed, and is about to stop leading
	}
	if err := m.checkAdmission(n.NodeID); err != nil {
		return err
	}
	if n.Protocol != protocol {
		return fmt.Errorf("it speaks membership protocol %d, this node %d", n.Protocol, protocol)
	}
	if err := m.checkVersion(ctx, n); err != nil { // again, at once before it is taken in: it replied a moment ago
		return err
	}
	invitation, err := m.checkInvitation(ctx, n)
	if err != nil {
		return err
	}
	if len(older) > 0 {
		// One at a time; the next pass goes on.
		return m.replace(ctx, c, older[0], n, invitation)
	}
	if err := m.invite(ctx, n); err != nil {
		return err
	}
	if err := m.useInvitation(ctx, invitation, n); err != nil {
		return err
	}
	if err := m.addServer(n); err != nil {
		return err
	}
	m.cfg.Logger.Info("node joined; it votes once it has caught up", "member", n.NodeID, "address", n.ClusterAddr)
	return nil
}

// checkMove returns an error unless a member itself confirms the address that gossip
// has for it, because gossip can be forged.
func (m *Membership) checkMove(ctx context.Context, s raft.Server, n gossip.Member) error {
	a, err := m.ask(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return fmt.Errorf("gossip says that it moved from %s to %s: %w", s.Address, n.ClusterAddr, err)
	}
	if a.ClusterAddr != n.ClusterAddr {
		return fmt.Errorf("gossip says that it moved from %s to %s, but it says that it is at %.255q: if a second process was started from a copy of its data directory, stop that one; "+
			"to make it a node of its own, give it an empty data directory and another --node-id", s.Address, n.ClusterAddr, a.ClusterAddr)
	}
	if ours := m.cfg.Facts.ClusterID(); a.ClusterId != "" && a.ClusterId != ours {
		return fmt.Errorf("at %s it says that it belongs to cluster %.64q", n.ClusterAddr, a.ClusterId)
	}
	return nil
}

// replace removes the server that a node id had before its data was lost. The
// newcomer, which has used its invitation before, is added in the same pass.
//
// A member that is down for a moment must not lose its place to another machine that was given
// its node id. So a newcomer with another address waits until the member has been gone for long.
func (m *Membership) replace(ctx context.Context, c raft.Configuration, old raft.Server, n gossip.Member, invitation string) error {
	if !m.hasAddressOf(ctx, old, n) {
		if _, alive := m.find(string(old.ID)); alive {
			return fmt.Errorf("another node with the id %s is still alive at %s, or was moments ago (servers %s and %s); if both run, %s",
				n.NodeID, old.Address, old.ID, n.ServerID, wayOut(false, false))
		}
		if at := m.leadership.Load().signs.goneFor(old.ID, m.cfg.Timing.Replace); time.Now().Before(at) {
			return fmt.Errorf("the member %s (server %s at %s) is down, and this one (server %s at %s) has no data: if it is another machine, stop it, move its data directory away and start it with another --node-id; if the member has lost its data and has a new address, wait until %s, or run \"tarry cluster remove %s\" and \"tarry cluster admit %s\"",
				n.NodeID, old.ID, old.Address, n.ServerID, n.ClusterAddr, at.UTC().Format(time.RFC3339), n.NodeID, n.NodeID)
		}
	}
	if err := m.mayRemove(ctx, c, old.ID); err != nil {
		return err
	}
	if err := m.useInvitation(ctx, invitation, n); err != nil {
		return err
	}
	m.cfg.Logger.Info("node came back without its data; its earlier server is removed", "member", n.NodeID, "old", old.ID, "new", n.ServerID)
	if err := m.forget(ctx, string(old.ID), ""); err != nil {
		return err
	}
	if err := m.removeServer(old.ID); err != nil {
		return err
	}
	return m.syncMember(ctx, n)
}

// hasAddressOf reports whether a newcomer has the address of a member with its node id, so that
// no other machine does. Gossip alone does not prove it: it counts the earlier run as alive for a
// while, a minute on a busy machine, because its probes reach a process there.
func (m *Membership) hasAddressOf(ctx context.Context, old raft.Server, n gossip.Member) bool {
	if earlier, alive := m.find(string(old.ID)); alive && earlier.ClusterAddr != n.ClusterAddr {
		return false
	} else if !alive && string(old.Address) != n.ClusterAddr {
		return false
	}
	_, err := m.ask(ctx, n.ServerID, n.ClusterAddr)
	return err == nil
}

// invite asks a node to join this cluster and no other. It proves that the leader can
// reach it by the address that it advertises.
func (m *Membership) invite(ctx context.Context, n gossip.Member) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return err
	}
	resp, err := c.Invite(ctx, &memberpb.InviteRequest{ServerId: m.cfg.ServerID, ClusterId: m.cfg.Facts.ClusterID(), Invited: n.ServerID, ClusterVersion: m.cfg.Facts.Version()})
	if err != nil {
		return fmt.Errorf("invite it at %s: %w", n.ClusterAddr, err)
	}
	if !resp.Accepted {
		return fmt.Errorf("it cannot join: %s", resp.Reason)
	}
	return nil
}

// addServer and removeServer are called between beginChange and its end, so the
// configuration is the one that was decided on. addServer adds a server, or gives a
// member its new address.
func (m *Membership) addServer(n gossip.Member) error {
	if err := m.freeAddress(n); err != nil {
		return err
	}
	if err := m.setAddress(raft.ServerID(n.ServerID), raft.ServerAddress(n.ClusterAddr)); err != nil {
		return fmt.Errorf("add it at %s: %w", n.ClusterAddr, err)
	}
	return nil
}

// freeAddress gives the member that had n's address a placeholder for one, since Raft
// refuses a configuration with an address twice. If that member is alive, it is reached
// by its gossip record, and the next pass sets its new address.
func (m *Membership) freeAddress(n gossip.Member) error {
	for _, s := range m.configuration().Servers {
		if string(s.Address) != n.ClusterAddr || string(s.ID) == n.ServerID {
			continue
		}
		if p, alive := m.PeerByServerID(string(s.ID)); alive && p.ClusterAddr == n.ClusterAddr {
			return fmt.Errorf("%s has the same cluster address, %s: start one of them with another", p.NodeID, p.ClusterAddr)
		}
		if err := m.setAddress(s.ID, unknownAddress(s.ID)); err != nil {
			return fmt.Errorf("take the address %s from %s: %w", s.Address, raftconfig.NodeID(s.ID), err)
		}
	}
	return nil
}

// unknownAddress is unique and has no port, so that nothing is dialed.
func unknownAddress(id raft.ServerID) raft.ServerAddress {
	return "unknown-address-of-" + raft.ServerAddress(id)
}

// setAddress leaves a voter a voter.
func (m *Membership) setAddress(id raft.ServerID, addr raft.ServerAddress) error {
	return m.raft.Load().AddNonvoter(id, addr, 0, changeTimeout).Error()
}

func (m *Membership) removeServer(id raft.ServerID) error {
	if err := m.raft.Load().RemoveServer(id, 0, changeTimeout).Error(); err != nil {
		return fmt.Errorf("remove %s: %w", id, err)
	}
	m.cfg.Logger.Info("server removed", "member", raftconfig.NodeID(id), "server", id)
	return nil
}

// forget records that a server was removed for good, and with it a node unless nodeID is
// empty.
func (m *Membership) forget(ctx context.Context, serverID, nodeID string) error {
	if m.cfg.Facts.Forgotten(serverID) && (nodeID == "" || m.removedAt(nodeID) != 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.Decisions.Forget(ctx, serverID, nodeID); err != nil {
		return fmt.Errorf("forget %s: %w", serverID, err)
	}
	return nil
}

// aliveServers asks every server of the configuration: gossip may take seconds to
// notice that one is gone.
func (m *Membership) aliveServers(ctx context.Context, c raft.Configuration) map[raft.ServerID]bool {
	nodes := make([]gossip.Member, len(c.Servers))
	for i, s := range c.Servers {
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		nodes[i].NodeID, nodes[i].ServerID, nodes[i].ClusterAddr = raftconfig.NodeID(s.ID), string(s.ID), string(addr)
	}
	alive := make(map[raft.ServerID]bool, len(nodes))
	for i, a := range m.askAll(ctx, nodes) {
		alive[c.Servers[i].ID] = a != nil
	}
	return alive
}

// acceptInvitation decides on an invitation. It returns why it is refused; empty: it is
// accepted.
func (m *Membership) acceptInvitation(req *memberpb.InviteRequest) (reason string) {
	if req.Invited != m.cfg.ServerID {
		return fmt.Sprintf("server %s is meant, but this is %s", req.Invited, m.cfg.ServerID)
	}
	r := m.raft.Load()
	if req.ClusterId == "" || r == nil {
		return "the cluster or this node is not ready yet"
	}
	if ours := m.cfg.Facts.ClusterID(); ours != "" {
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
	if bound := m.binding.bind(req.ClusterId, time.Now()); bound != req.ClusterId {
		return "it is about to join cluster " + bound
	}
	m.joining.Store(true)
	m.admitted.Store(true)
	poke(m.toWatcher)
	return ""
}
