package leaderrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
)

// Dial connects to a server at an address, host:port, and to no other server there.
type Dial = func(ctx context.Context, serverID, addr string) (net.Conn, error)

// peer is a server at an address. The server's id is part of it, so that a request is
// never sent to another server that has the address now.
type peer struct{ serverID, addr string }

// maxPeers bounds a pool. A cluster has fewer nodes, but gossip records can be forged.
const maxPeers = 64

// pool has one connection to each peer.
type pool[C io.Closer] struct {
	connect func(peer) (C, error) // must not block

	mu    sync.Mutex
	conns map[peer]C // nil after Close
	order []peer     // least recently used first
}

func newPool[C io.Closer](connect func(peer) (C, error)) pool[C] {
	return pool[C]{connect: connect, conns: map[peer]C{}}
}

func (p *pool[C]) get(to peer) (c C, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return c, errors.New("the node is stopping")
	}
	if c, ok := p.conns[to]; ok {
		if last := len(p.order) - 1; p.order[last] != to {
			p.order = append(slices.DeleteFunc(p.order, func(o peer) bool { return o == to }), to)
		}
		return c, nil
	}
	if c, err = p.connect(to); err != nil {
		return c, err
	}
	if len(p.order) >= maxPeers {
		oldest := p.order[0]
		p.conns[oldest].Close() // ends calls in flight, to a node that was not used for long
		delete(p.conns, oldest)
		p.order = p.order[1:]
	}
	p.conns[to] = c
	p.order = append(p.order, to)
	return c, nil
}

// Close closes all connections.
func (p *pool[C]) Close() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		c.Close() // ends calls in flight; there is nothing to report
	}
}
