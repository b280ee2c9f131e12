package membership

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/transport"
)

// Admission wraps the layer that Raft's transport dials and listens on. It accepts
// connections that pass mayTalkRaft and closes the others; their callers try again.
// It dials a server at the address that gossip has, then at the one in Raft's
// configuration.
func (m *Membership) Admission(s raft.StreamLayer) raft.StreamLayer { return &admission{s, m} }

type admission struct {
	raft.StreamLayer
	m *Membership
}

func (a *admission) Accept() (net.Conn, error) {
	for {
		c, err := a.StreamLayer.Accept()
		if err != nil {
			return nil, err
		}
		caller, _ := c.RemoteAddr().(*transport.CallerAddr)
		if err = a.m.mayTalkRaft(caller); err == nil {
			return a.m.raftConns.add(c, caller), nil
		}
		a.m.cfg.Logger.Debug("raft connection refused", "from", c.RemoteAddr(), "error", err)
		c.Close()
	}
}

// mayTalkRaft returns an error unless a caller may be a server of this node's Raft
// group. The caller may be missing in this node's configuration, because its log is
// behind; then it must be alive in gossip.
func (m *Membership) mayTalkRaft(caller *transport.CallerAddr) error {
	switch {
	case caller == nil || caller.ServerID == "":
		return errors.New("the caller sends no server id")
	case caller.ServerID == m.cfg.ServerID || m.Configured(caller.ServerID):
		return nil // it may not have learned the cluster's id yet
	case !m.AcceptsRaft():
		return errors.New("no cluster has asked for this server yet")
	case m.cfg.Facts.Forgotten(caller.ServerID):
		return fmt.Errorf("server %.64q was removed from the cluster", caller.ServerID)
	case m.removedAt(raftconfig.NodeID(caller.ServerID)) != 0 && !m.vouchedFor(caller.ServerID):
		return fmt.Errorf("the node of server %.64q was removed from the cluster", caller.ServerID)
	case caller.ClusterID == "" && m.cfg.Facts.ClusterID() != "":
		return fmt.Errorf("server %.64q is no member and names no cluster", caller.ServerID)
	case len(m.configuration().Servers) == 0:
		return nil // of the cluster that has asked for this server
	}
	if _, alive := m.find(caller.ServerID); !alive {
		return fmt.Errorf("server %.64q is no member", caller.ServerID)
	}
	return nil
}

// gossipDialTimeout bounds the attempt at an address that only gossip has.
const gossipDialTimeout = time.Second

// Dial connects to a server (transport.Target). Gossip may have a newer address of it than
// Raft's configuration. But gossip can be forged, so if its address fails, Dial uses the
// configured one.
func (a *admission) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	serverID, configured := transport.SplitTarget(target)
	live, ok := a.m.find(serverID)
	if !ok || live.ClusterAddr == configured {
		return a.StreamLayer.Dial(target, timeout)
	}
	at := transport.Target(raft.ServerID(serverID), raft.ServerAddress(live.ClusterAddr))
	c, err := a.StreamLayer.Dial(at, min(timeout, gossipDialTimeout))
	if err == nil {
		return c, nil
	}
	c, other := a.StreamLayer.Dial(target, timeout)
	if other != nil {
		return nil, errors.Join(err, other)
	}
	return c, nil
}
