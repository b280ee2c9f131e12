package membership

import (
	"net"
	"sync"

	"tarry/cluster/raftconfig"
	"tarry/cluster/transport"
)

// raftConns has the open Raft connections from other servers, whose number the transport
// bounds. Those of a server that is removed are closed: it was a member when they were
// accepted.
type raftConns struct {
	mu    sync.Mutex
	conns map[*raftConn]bool
}

type raftConn struct {
	net.Conn
	of       *raftConns
	serverID string // of the caller
}

func (r *raftConns) add(c net.Conn, caller *transport.CallerAddr) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns == nil {
		r.conns = make(map[*raftConn]bool)
	}
	made := &raftConn{Conn: c, of: r, serverID: caller.ServerID}
	r.conns[made] = true
	return made
}

func (c *raftConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// from lists the open connections whose callers have a property.
func (r *raftConns) from(is func(serverID string) bool) []*raftConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*raftConn
	for c := range r.conns {
		if is(c.serverID) {
			out = append(out, c)
		}
	}
	return out
}

// closeRemoved closes the Raft connections from servers that were removed.
func (m *Membership) closeRemoved() {
	for _, c := range m.raftConns.from(m.wasRemovedHere) {
		m.cfg.Logger.Debug("raft connection closed: the server was removed", "from", c.RemoteAddr(), "server", c.serverID)
		c.Close()
	}
}

// wasRemovedHere reports whether a server was removed, or its node, as far as this node knows,
// and no member says otherwise.
func (m *Membership) wasRemovedHere(serverID string) bool {
	if serverID == m.cfg.ServerID || m.Configured(serverID) {
		return false
	}
	return m.cfg.Facts.Forgotten(serverID) || m.removedAt(raftconfig.NodeID(serverID)) != 0 && !m.vouching.has(serverID)
}
