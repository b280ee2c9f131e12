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
		term := s.raft.CurrentTerm()
		addr, id := s.raft.LeaderWithID()
		if id == "" || s.raft.State() != raft.Follower || time.Since(stood) < electionGap {
			continue
		}
		at, votes := s.turnAfter(id)
		if !votes || !s.ended(string(addr)) || !awaitTurn(s.ctx, s.raft, id, term, at-s.cfg.Lease) {
			continue
		}
		stood = time.Now()
		s.log.Info("the leader's process has ended; standing for election", "leader", nodeID(string(id)))
		if err := s.standForElection(t); err != nil {
			s.log.Warn("could not stand for election; the leader's silence will be noticed", "error", err)
		}
	}
}

// electorate is what a follower sees of an election: *raft.Raft.
type electorate interface {
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	State() raft.RaftState
	CurrentTerm() uint64
}

// awaitTurn waits for this node's turn to stand for election in place of lost, whose
// term is given, and reports whether it should. When another has stood meanwhile the
// term has grown: that one may have won with this node's vote, and its first message
// be on its way. So another turn passes before this node stands against it.
func awaitTurn(ctx context.Context, e electorate, lost raft.ServerID, term uint64, wait time.Duration) bool {
	for {
		if !pause(ctx, wait, nil) {
			return false
		}
		if _, now := e.LeaderWithID(); now != "" && now != lost || e.State() != raft.Follower {
			return false // another was faster
		}
		seen := e.CurrentTerm()
		if seen == term {
			return true
		}
		term, wait = seen, max(wait, turn)
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
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(s.cfg.ServerID)}}
	return t.TimeoutNow(raft.ServerID(s.cfg.ServerID), t.LocalAddr(), req, &raft.TimeoutNowResponse{})
}
