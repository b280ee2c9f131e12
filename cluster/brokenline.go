package cluster

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/transport"
)

// The fastest sign that a leader is gone is a connection that ends: the kernel of
// a machine that lives closes those of a process that died, within a millisecond,
// and refuses new ones to its port. A follower that sees both stands for election
// at once. A machine that is gone with its process says nothing; bereft.go finds it
// by its silence.
//
// There is no pre-vote then, since the others have not given up the leader yet.
// It can do no harm but an election too many: Raft's votes keep all promises
// whoever stands, and when.
const (
	// knocks at the leader's port tell a dying process, which may still take a
	// connection, from one that lives; knockAgain lies between them.
	knocks = 4
	// electionGap is the least time between two such elections that this node
	// starts: lines that break in odd ways must not depose leader after leader.
	electionGap = 2 * time.Second
)

// watchedLayer is Raft's stream layer; broke is called when a connection that
// another node made ends. It must not block.
type watchedLayer struct {
	raft.StreamLayer
	broke func()
}

func (l watchedLayer) Accept() (net.Conn, error) {
	c, err := l.StreamLayer.Accept()
	if err != nil {
		return nil, err
	}
	return watchedConn{c, l.broke}, nil
}

type watchedConn struct {
	net.Conn
	broke func()
}

func (c watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.broke()
	}
	return n, err
}

// lineBroke wakes watchForBrokenLines.
func (s *Shard) lineBroke() {
	select {
	case s.broken <- struct{}{}:
	default:
	}
}

// watchForBrokenLines stands for election when the leader's process is found to
// have ended, until the shard stops.
func (s *Shard) watchForBrokenLines(t raft.Transport) {
	var stood time.Time
	for {
		select {
		case <-s.broken:
		case <-s.ctx.Done():
			return
		}
		addr, id := s.raft.LeaderWithID()
		if id == "" || s.raft.State() != raft.Follower || time.Since(stood) < electionGap {
			continue
		}
		at, votes := s.turnAfter(id)
		if !votes || !s.ended(string(addr)) || !pause(s.ctx, at-s.cfg.Lease, nil) {
			continue
		}
		_, now := s.raft.LeaderWithID()
		if now != "" && now != id || s.raft.State() != raft.Follower {
			continue // another was faster
		}
		stood = time.Now()
		s.log.Info("the leader's process has ended; standing for election", "leader", id)
		if err := s.standForElection(t); err != nil {
			s.log.Warn("could not stand for election; the leader's silence will be noticed", "error", err)
		}
	}
}

// ended reports whether the machine at addr says that nobody listens there any
// more.
func (s *Shard) ended(addr string) bool {
	for range knocks {
		ctx, cancel := context.WithTimeout(s.ctx, knockTimeout)
		here := transport.Knock(ctx, addr)
		cancel()
		if here == transport.Ended {
			return true
		}
		if !pause(s.ctx, knockAgain, nil) {
			return false
		}
	}
	return false
}

// standForElection begins an election at this node, by Raft's own word for it that a
// leader says when it hands over.
func (s *Shard) standForElection(t raft.Transport) error {
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	return t.TimeoutNow(raft.ServerID(s.cfg.ServerID), t.LocalAddr(), req, &raft.TimeoutNowResponse{})
}
