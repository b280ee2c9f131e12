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
func (f *follower) watchConnections(ctx context.Context, connLost <-chan struct{}) {
	var stood time.Time
	for {
		select {
		case <-connLost:
		case <-ctx.Done():
			return
		}
		lost := f.leader()
		if lost.id == "" || f.raft.State() != raft.Follower || time.Since(stood) < electionGap {
			continue
		}
		wait, votes := f.staggered(lost.id)
		if !votes || !hasEnded(ctx, string(lost.addr)) || !f.awaitStagger(ctx, lost, wait) {
			continue
		}
		stood = time.Now()
		f.Logger.Info("the leader's process has ended; standing for election", "leader", raftconfig.NodeID(lost.id), "term", lost.term)
		if err := f.standForElection(); err != nil {
			f.Logger.Warn("could not stand for election; Raft's heartbeat timeout will start one", "error", err)
		}
	}
}

// awaitStagger waits before this node stands for election in place of lost, and reports
// whether it should. It should not if any node leads a later term, even the same server:
// that one has restarted and was elected. If the leader is forgotten or the term is higher,
// another node has stood meanwhile: it may have won with this node's vote, and its first
// message may not have arrived yet. So this node waits once more before it stands too.
func (f *follower) awaitStagger(ctx context.Context, lost leadership, wait time.Duration) bool {
	for seen := lost; ; wait = max(wait, electionStagger) {
		if !sleep.For(ctx, wait) {
			return false
		}
		now := f.leader()
		if now.id != "" && now != lost || f.raft.State() != raft.Follower {
			return false // another node was faster
		}
		if now == seen {
			return true
		}
		seen = now
	}
}

// leadership is one server's leadership in one term. A process that ends, or restarts,
// ends its leadership: what a probe finds says nothing of a leadership that began later.
type leadership struct {
	id   raft.ServerID // empty: this node knows no leader in the term
	addr raft.ServerAddress
	term uint64
}

// leader returns the leadership that this node follows. Raft has no call for the leader
// and the term together. But it forgets the leader before it changes the term, so if the
// term is the same before and after, the leader is of that term.
func (f *follower) leader() leadership {
	for term := f.raft.CurrentTerm(); ; {
		addr, id := f.raft.LeaderWithID()
		now := f.raft.CurrentTerm()
		if now == term {
			return leadership{id, addr, term}
		}
		term = now
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
