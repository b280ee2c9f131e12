package membership

import (
	"net"

	"github.com/hashicorp/raft"
)

// Gate wraps the layer that Raft's transport listens on: connections that come
// in while AcceptsRaft is false are closed at once. The other side tries again.
// Connections that this node makes are not held up.
func (m *Membership) Gate(s raft.StreamLayer) raft.StreamLayer { return &gate{s, m} }

type gate struct {
	raft.StreamLayer
	m *Membership
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.StreamLayer.Accept()
		if err != nil || g.m.AcceptsRaft() {
			return c, err
		}
		g.m.cfg.Logger.Debug("raft connection refused: no cluster has asked for this server yet", "from", c.RemoteAddr())
		c.Close()
	}
}
