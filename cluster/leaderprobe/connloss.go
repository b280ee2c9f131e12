package leaderprobe

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

// When a follower stands for election at once it skips the pre-vote, since the others
// still count on the leader. The worst result is one unnecessary election: Raft's
// voting is safe whoever stands for election, at any time.
const (
	// probes is the number of probes, probeAgain apart, before the process counts as
	// running: a process that ends may still accept a connection.
	probes = 4
	// electionGap is the least time between two such elections that this node
	// starts, so that unreliable connections cannot depose leader after leader.
	electionGap = 2 * time.Second
)

// WatchConnections wraps layer, Raft's, to notice when connections from other nodes
// end.
func (p *Prober) WatchConnections(layer raft.StreamLayer) raft.StreamLayer {
	return watchedLayer{layer, func() {
		select {
		case p.connLost <- struct{}{}:
		default:
		}
	}}
}

// watchedLayer calls lost, which must not block, when an accepted connection ends.
type watchedLayer struct {
	raft.StreamLayer
	lost func()
}

func (l watchedLayer) Accept() (net.Conn, error) {
	c, err := l.StreamLayer.Accept()
	if err != nil {
		return nil, err
	}
	return watchedConn{c, l.lost}, nil
}

type watchedConn struct {
	net.Conn
	lost func()
}

func (c watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.lost()
	}
	return n, err
}

// watchConnections stands for election when a lost connection shows that the leader's
// process has ended, until ctx ends.
func (f *follower) watchConnections(ctx context.Context, lost <-chan struct{}) {
	var stood time.Time
	for {
		select {
		case <-lost:
		case <-ctx.Done():
			return
		}
		term := f.raft.CurrentTerm()
		addr, id := f.raft.LeaderWithID()
		if id == "" || f.raft.State() != raft.Follower || time.Since(stood) < electionGap {
			continue
		}
		wait, votes := f.staggered(id)
		if !votes || !hasEnded(ctx, string(addr)) || !f.awaitStagger(ctx, id, term, wait) {
			continue
		}
		stood = time.Now()
		f.Logger.Info("the leader's process has ended; standing for election", "leader", raftconfig.NodeID(id))
		if err := f.standForElection(); err != nil {
			f.Logger.Warn("could not stand for election; Raft's heartbeat timeout will start one", "error", err)
		}
	}
}

// awaitStagger waits before this node stands for election in place of lost, whose term
// is given, and reports whether it should. If another node has stood meanwhile the term
// is higher: that node may have won with this node's vote, and its first message may
// not have arrived yet. So this node waits once more before it stands too.
func (f *follower) awaitStagger(ctx context.Context, lost raft.ServerID, term uint64, wait time.Duration) bool {
	for {
		if !sleep.For(ctx, wait) {
			return false
		}
		if _, now := f.raft.LeaderWithID(); now != "" && now != lost || f.raft.State() != raft.Follower {
			return false // another node was faster
		}
		seen := f.raft.CurrentTerm()
		if seen == term {
			return true
		}
		term, wait = seen, max(wait, electionStagger)
	}
}

// hasEnded reports whether the machine at addr refuses connections to the port.
func hasEnded(ctx context.Context, addr string) bool {
	for range probes {
		probing, cancel := context.WithTimeout(ctx, probeTimeout)
		found := probe(probing, addr)
		cancel()
		if found == ended {
			return true
		}
		if !sleep.For(ctx, probeAgain) {
			return false
		}
	}
	return false
}
