package membership

import (
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/raftconfig"
)

// Peer is where other nodes reach a node.
type Peer struct{ NodeID, ServerID, ClusterAddr string }

// Leader returns the leader that this node knows, at the address that it has sent with Raft's
// messages. Gossip, which can be forged, does not count.
func (m *Membership) Leader() (Peer, bool) {
	r := m.raft.Load()
	if r == nil {
		return Peer{}, false
	}
	addr, id := r.LeaderWithID()
	if id == "" {
		return Peer{}, false
	}
	return Peer{NodeID: raftconfig.NodeID(id), ServerID: string(id), ClusterAddr: string(addr)}, true
}

// PeerByServerID finds a live node, this one included.
func (m *Membership) PeerByServerID(serverID string) (Peer, bool) {
	if serverID == m.cfg.ServerID {
		return peerOf(m.cfg.meta()), true
	}
	n, ok := m.find(serverID)
	return peerOf(n.Meta), ok
}

func (m *Membership) find(serverID string) (gossip.Member, bool) {
	p := m.pool.Load()
	if p == nil {
		return gossip.Member{}, false
	}
	n, ok := p.Find(serverID)
	m.overrule(&n)
	return n, ok
}

// HTTPAddr is where clients reach a member, as it has said itself when this node asked it for its
// status; empty: it has not replied yet.
func (m *Membership) HTTPAddr(serverID string) string {
	n, _ := m.find(serverID)
	n.ServerID = serverID // gossip may have no sign of it
	m.overrule(&n)
	return n.HTTPAddr
}

func peerOf(n gossip.Meta) Peer {
	return Peer{NodeID: n.NodeID, ServerID: n.ServerID, ClusterAddr: n.ClusterAddr}
}

// ServerAddr is the address of a server now: by its own gossip record, else by Raft's
// configuration. It never blocks.
func (m *Membership) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if p, ok := m.PeerByServerID(string(id)); ok {
		return raft.ServerAddress(p.ClusterAddr), nil
	}
	if at := m.configuredAddr(string(id)); at != "" {
		return raft.ServerAddress(at), nil
	}
	return "", fmt.Errorf("server %s is neither alive nor in the configuration", id)
}

// configuredAddr is the address of a server in Raft's configuration; empty: it has none.
func (m *Membership) configuredAddr(serverID string) string {
	for _, s := range m.configuration().Servers {
		if string(s.ID) == serverID {
			return string(s.Address)
		}
	}
	return ""
}

// GossipAddr is the host:port by which others may join this node.
func (m *Membership) GossipAddr() string {
	n, _ := m.find(m.cfg.ServerID)
	return n.GossipAddr
}

// members lists the live nodes that may belong to this node's cluster, itself
// included.
func (m *Membership) members() []gossip.Member {
	p := m.pool.Load()
	if p == nil {
		return nil
	}
	ours := m.ClusterID()
	all := p.Members()
	out := all[:0]
	for _, n := range all {
		// Gossip refuses nodes of other clusters, but some may be in the pool from before
		// this node knew its cluster.
		if ours == "" || n.ClusterID == "" || n.ClusterID == ours || n.ServerID == m.cfg.ServerID {
			m.overrule(&n)
			out = append(out, n)
		}
	}
	return out
}

// others is members without this node.
func (m *Membership) others() []gossip.Member {
	all := m.members()
	out := all[:0]
	for _, n := range all {
		if n.ServerID != m.cfg.ServerID {
			out = append(out, n)
		}
	}
	return out
}

// Configured reports whether a server is in Raft's latest configuration here.
func (m *Membership) Configured(serverID string) bool {
	return raftconfig.Contains(m.configuration(), raft.ServerID(serverID))
}

func (m *Membership) self() raft.ServerID { return raft.ServerID(m.cfg.ServerID) }

// configuration is Raft's latest configuration on this node, committed or not.
func (m *Membership) configuration() raft.Configuration {
	return raftconfig.Latest(m.raft.Load())
}
