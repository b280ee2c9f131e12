package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/nodetls"
	"tarry/internal/addrlimit"
)

const (
	// handshakeTimeout bounds the header and its answer, on either side.
	handshakeTimeout = 5 * time.Second
	// maxHandshakes bounds the connections that have not sent their header yet. More
	// are closed at once.
	maxHandshakes = 256
	// silence is how long the machine at the other end of a connection may leave
	// sent data unacknowledged. Raft's is shorter, because a leader whose connections
	// are dead commits nothing. A follower that receives a snapshot may have to write
	// for a while before it can receive more, so that has its own.
	silence         = 5 * time.Second
	raftSilence     = 1500 * time.Millisecond
	snapshotSilence = 30 * time.Second
	// defaultMaxConns is far above what the nodes of one cluster open.
	defaultMaxConns = 1024
)

// Options configures a Mux.
type Options struct {
	Bind string // host:port to listen on; port 0 takes a free one
	// Advertise is the host:port at which other nodes reach this one, a name rather than
	// an IP. Port 0: the port that this node listens on.
	Advertise string
	// ServerID is the Raft id of this node: node id and incarnation. Connections
	// that are meant for another are refused.
	ServerID string
	// ClusterID returns the cluster's id; empty while there is none. It is called for every
	// connection, from any goroutine. nil: there is no cluster.
	ClusterID func() string
	// TLS says which connections are secured. With it, the node id of the certificate at
	// the other end is that of the server id in the header.
	TLS    nodetls.Config
	Logger *slog.Logger // nil: silent
	// MaxConns bounds the accepted connections of each kind; 0: 1024. Those of one
	// address may be half of them.
	MaxConns int
}

// Mux is the cluster port of a node. All methods may be called from any
// goroutine.
type Mux struct {
	o         Options
	listener  net.Listener
	advertise addr
	greeting  *addrlimit.Limit // of the connections whose handshake is under way
	done      chan struct{}    // closed by Close
	running   sync.WaitGroup
	last      lastAddresses
	lookup    func(ctx context.Context, host string) ([]string, error)

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]*conn // everything that Close must close, by the TCP connection
	raft   map[uint32]*listener
	rpc    *listener
	frames *listener
}

// addr is an address that stays a name.
type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// Listen opens the cluster port and accepts connections until Close.
func Listen(o Options) (*Mux, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ClusterID == nil {
		o.ClusterID = func() string { return "" }
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.ServerID == "" || len(o.ServerID) > maxID {
		return nil, fmt.Errorf("server id: must have 1 to %[2]d bytes, got %[1]q", o.ServerID, maxID)
	}
	host, port, err := net.SplitHostPort(o.Advertise)
	if err != nil {
		return nil, fmt.Errorf("advertised cluster address %q: %w", o.Advertise, err)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return nil, fmt.Errorf("advertised cluster address %q: other nodes cannot reach it; it needs a host name", o.Advertise)
	}
	l, err := net.Listen("tcp", o.Bind)
	if err != nil {
		return nil, fmt.Errorf("listen on the cluster address: %w", err)
	}
	if port == "0" {
		port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	m := &Mux{
		o: o, listener: l, advertise: addr(net.JoinHostPort(host, port)),
		greeting: newLimit(min(maxHandshakes, o.MaxConns)), done: make(chan struct{}),
		conns: make(map[net.Conn]*conn), raft: make(map[uint32]*listener),
		lookup: net.DefaultResolver.LookupHost,
	}
	m.rpc, m.frames = newListener(m), newListener(m)
	m.frames.open = m.rpc.open // calls share one limit, whatever carries them
	m.running.Go(m.accept)
	if o.TLS.Mode != nodetls.Off {
		m.running.Go(m.recheck)
	}
	return m, nil
}

// Addr returns the advertised address.
func (m *Mux) Addr() net.Addr { return m.advertise }

// RPC returns the listener for calls with gRPC. After it is closed they are refused.
func (m *Mux) RPC() net.Listener { return m.rpc }

// Frames returns the listener for calls in frames (package framerpc). After it is closed
// they are refused.
func (m *Mux) Frames() net.Listener { return m.frames }

// Raft returns the stream layer of a shard's Raft group. All calls return the same one
// until it is closed; then the next call creates another.
func (m *Mux) Raft(shard uint32) raft.StreamLayer {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.raft[shard]
	if l == nil || l.isClosed() {
		l = newListener(m)
		m.raft[shard] = l
		if m.closed {
			l.Close()
		}
	}
	return raftLayer{listener: l, shard: shard}
}

// Close stops listening, closes all connections, including dialed ones, and waits for its
// goroutines. It interrupts transfers under way.
func (m *Mux) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	close(m.done)
	listeners := []*listener{m.rpc, m.frames}
	for _, l := range m.raft {
		listeners = append(listeners, l)
	}
	conns := m.conns
	m.conns = nil
	m.mu.Unlock()

	err := m.listener.Close()
	for _, l := range listeners {
		l.Close()
	}
	for c := range conns {
		c.Close()
	}
	m.running.Wait()
	return err
}

// accept takes connections and gives each a goroutine for its handshake.
func (m *Mux) accept() {
	var pause time.Duration
	for {
		c, err := m.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, most likely
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			m.o.Logger.Error("cluster port cannot accept a connection", "error", err, "again_in", pause)
			select {
			case <-time.After(pause):
				continue
			case <-m.done:
				return
			}
		}
		pause = 0
		if !m.greeting.Of(c.RemoteAddr().String()).TryAcquire(1) {
			m.o.Logger.Warn("cluster port has too many connections without a header", "limit", m.greeting.Total(), "of_one_address", m.greeting.Each(), "closed", c.RemoteAddr())
			c.Close()
			continue
		}
		t := m.track(c)
		if t == nil {
			return
		}
		m.running.Go(func() { m.handshake(t) })
	}
}

// handshake reads a connection's header, answers it and hands it on.
func (m *Mux) handshake(c *conn) {
	from := c.RemoteAddr().String()
	greeting := m.greeting.Of(from)
	deadline := time.Now().Add(handshakeTimeout)
	c.SetDeadline(deadline)
	h, nodeID, err := m.greet(c, deadline)
	var to *listener
	verdict := answer{clusterID: m.o.ClusterID()}
	if err == nil {
		if verdict.status, verdict.reason = m.identify(h, nodeID); verdict.status == statusOK {
			to, verdict.status, verdict.reason = m.judge(h, from, verdict.clusterID)
		}
	} else if unknown, ok := errors.AsType[versionError](err); ok {
		verdict.status, verdict.reason = statusVersion, unknown.Error()
	} else if errors.Is(err, io.EOF) {
		greeting.Release(1)
		c.Close() // no header: for example a port check
		return
	} else {
		linger(c) // there may be an alert of TLS for the dialer to read
		greeting.Release(1)
		m.o.Logger.Warn("refused a connection to the cluster port", "from", c.RemoteAddr(), "error", err)
		c.Close()
		return
	}
	_, err = c.Write(verdict.append(nil))
	if err == nil {
		err = boundSilence(c.Conn, h.kind.silence())
	}
	if verdict.status != statusOK {
		linger(c)
	}
	greeting.Release(1)
	switch {
	case verdict.status != statusOK:
		m.o.Logger.Warn("refused a connection to the cluster port", "from", c.RemoteAddr(), "error", verdict.reason)
		c.Close()
	case err != nil || c.SetDeadline(time.Time{}) != nil:
		to.open.Of(from).Release(1)
		c.Close() // the dialer is gone
	default:
		c.left = func() { to.open.Of(from).Release(1) }
		c.caller = &CallerAddr{Addr: c.Conn.RemoteAddr(), ServerID: h.from, ClusterID: h.clusterID, Proved: nodeID != ""}
		to.deliver(c, time.Until(deadline))
	}
}

// judge returns the reply to a header, and the listener for it. With statusOK the
// connection counts as one of the listener's.
func (m *Mux) judge(h header, from, own string) (*listener, status, string) {
	if h.clusterID != "" && own != "" && h.clusterID != own {
		return nil, statusOtherCluster, fmt.Sprintf("a node of cluster %s dialed a node of cluster %s", h.clusterID, own)
	}
	if h.to != m.o.ServerID {
		return nil, statusOtherServer, fmt.Sprintf("server %.255q was dialed, and this is server %q", h.to, m.o.ServerID)
	}
	var to *listener
	switch h.kind {
	case kindRPC:
		to = m.rpc
	case kindFrames:
		to = m.frames
	case kindRaft:
		m.mu.Lock()
		to = m.raft[h.shard]
		m.mu.Unlock()
	default:
		return nil, statusUnknownKind, fmt.Sprintf("conversation of %s is not known here: upgrade the older node", h.kind)
	}
	if to == nil || to.isClosed() {
		return nil, statusUnknownShard, fmt.Sprintf("%s of shard %d is not running here", h.kind, h.shard)
	}
	if !to.open.Of(from).TryAcquire(1) {
		return nil, statusBusy, fmt.Sprintf("over %d %s connections, or %d of one address", to.open.Total(), h.kind, to.open.Each())
	}
	return to, statusOK, ""
}

// linger gives the dialer time to read a refusal: closing with unread bytes would reset
// the connection, and the reply would be lost.
func linger(c *conn) {
	if t, ok := c.Conn.(*tls.Conn); ok {
		_ = t.CloseWrite() // without it the peer notices a moment later
	}
	if t := nodetls.TCP(c.Conn); t != nil && t.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, t, 4096)
	}
}
