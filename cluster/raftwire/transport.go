package raftwire

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Config has the settings of a Transport. Layer, Pool, Timeout and Logger are required.
type Config struct {
	Layer raft.StreamLayer // dials other servers and accepts their connections
	Pool  int              // how many idle connections to one server are kept at most
	// Timeout bounds a request with its reply. For a snapshot it is longer, by its size.
	Timeout time.Duration
	// Stall is how long the sender of a request may send nothing in the middle of it; 0: Timeout.
	Stall  time.Duration
	Logger *slog.Logger
	// Accept, if not nil, reports whether a request may reach Raft. If not, it has
	// responded. It is called from the goroutine of the connection, with the remote
	// address of that as the layer has it.
	Accept func(net.Addr, raft.RPC) bool
	// Appended, if not nil, is called for every reply of a pipeline before Raft sees it.
	Appended func(raft.ServerID, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse)
}

// Transport implements raft.Transport, raft.WithPreVote and raft.WithClose. Its methods may
// be called from any goroutine. Close ends its goroutines.
type Transport struct {
	cfg       Config
	requests  chan raft.RPC
	heartbeat atomic.Pointer[func(raft.RPC)]
	done      chan struct{} // closed by Close
	running   sync.WaitGroup
	receives  atomic.Int64 // snapshots that are being received

	mu    sync.Mutex
	over  bool
	idle  map[raft.ServerAddress][]*clientConn
	conns map[*conn]struct{} // all that are open, of both directions
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// New returns a transport that accepts connections. Raft's Shutdown does not close it
// completely before its Close returns.
func New(c Config) *Transport {
	if c.Stall == 0 {
		c.Stall = c.Timeout
	}
	t := &Transport{
		cfg: c, requests: make(chan raft.RPC), done: make(chan struct{}),
		idle: map[raft.ServerAddress][]*clientConn{}, conns: map[*conn]struct{}{},
	}
	t.running.Go(t.accept)
	return t
}

// Consumer implements raft.Transport.
func (t *Transport) Consumer() <-chan raft.RPC { return t.requests }

// LocalAddr implements raft.Transport.
func (t *Transport) LocalAddr() raft.ServerAddress {
	return raft.ServerAddress(t.cfg.Layer.Addr().String())
}

// EncodePeer implements raft.Transport.
func (t *Transport) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// DecodePeer implements raft.Transport.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport. f is called from the goroutine of a
// connection, and must not block for long.
func (t *Transport) SetHeartbeatHandler(f func(raft.RPC)) { t.heartbeat.Store(&f) }

// Deliver passes a request to Raft's main goroutine. It blocks until Raft takes it or the
// transport is closed; then it responds with an error.
func (t *Transport) Deliver(rpc raft.RPC) {
	select {
	case t.requests <- rpc:
	case <-t.done:
		rpc.Respond(nil, raft.ErrTransportShutdown)
	}
}

// Close closes the stream layer and all connections, and waits for the goroutines except
// those of pipelines, which end with their own Close.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil
	}
	t.over = true
	close(t.done)
	t.mu.Unlock()
	err := t.cfg.Layer.Close()
	t.CloseConnections()
	t.running.Wait()
	return err
}

// CloseIdle closes the pooled connections.
func (t *Transport) CloseIdle() {
	t.mu.Lock()
	idle := t.idle
	t.idle = map[raft.ServerAddress][]*clientConn{}
	t.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			c.Close()
		}
	}
}

// CloseConnections closes all connections, also those in use, of both directions.
func (t *Transport) CloseConnections() {
	t.mu.Lock()
	t.idle = map[raft.ServerAddress][]*clientConn{}
	var all []*conn
	for c := range t.conns {
		all = append(all, c)
	}
	t.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// conn is an open connection of a transport, until its Close.
type conn struct {
	net.Conn
	t *Transport
}

// track makes the transport responsible for c. If it is closed, it closes c and returns nil.
func (t *Transport) track(c net.Conn) *conn {
	tracked := &conn{c, t}
	t.mu.Lock()
	over := t.over
	if !over {
		t.conns[tracked] = struct{}{}
	}
	t.mu.Unlock()
	if over {
		c.Close()
		return nil
	}
	return tracked
}

// Close may be called more than once, from any goroutine.
func (c *conn) Close() error {
	c.t.mu.Lock()
	delete(c.t.conns, c)
	c.t.mu.Unlock()
	return c.Conn.Close()
}
