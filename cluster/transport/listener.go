package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/nodetls"
	"tarry/internal/addrlimit"
)

// acceptQueue is the number of connections that may wait for Accept.
const acceptQueue = 16

// listener returns the accepted connections of one protocol.
type listener struct {
	mux   *Mux
	queue chan *conn
	done  chan struct{}
	once  sync.Once
	open  *addrlimit.Limit // of the connections that are accepted and not closed
}

func newListener(m *Mux) *listener {
	return &listener{mux: m, queue: make(chan *conn, acceptQueue), done: make(chan struct{}), open: newLimit(m.o.MaxConns)}
}

// newLimit bounds connections, and those of one address to half of them.
func newLimit(total int) *addrlimit.Limit {
	return addrlimit.New(int64(total), int64(total+1)/2)
}

// Accept blocks until there is a connection or the listener is closed.
func (l *listener) Accept() (net.Conn, error) {
	if l.isClosed() {
		return nil, net.ErrClosed
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections. Those that Accept has returned stay open.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	for {
		select {
		case c := <-l.queue:
			c.Close()
		default:
			return nil
		}
	}
}

func (l *listener) Addr() net.Addr { return l.mux.advertise }

func (l *listener) isClosed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// deliver queues c, and closes it when nobody accepts it in time.
func (l *listener) deliver(c *conn, wait time.Duration) {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case l.queue <- c:
		if l.isClosed() {
			l.Close() // c may have been queued after the queue was emptied
		}
	case <-l.done:
		c.Close()
	case <-late.C:
		c.Close()
	}
}

// raftLayer is the stream layer of one Raft group.
type raftLayer struct {
	*listener
	shard uint32
}

// Dial resolves the address of a Target and connects to the same group there.
func (r raftLayer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	serverID, address := SplitTarget(target)
	c, err := r.mux.dialWithin(address, header{kind: kindRaft, shard: r.shard, to: serverID}, timeout)
	if err != nil {
		return nil, err
	}
	return &raftConn{Conn: c, limit: raftSilence}, nil
}

// RaftTimeout is the timeout that Raft's transport must use for its requests. Raft uses a
// longer one for a request with a large snapshot, and so a connection recognizes that.
const RaftTimeout = 10 * time.Second

// RaftStall is how long the sender of a message to Raft may send nothing in the middle of it. The
// receiver's Raft waits for a snapshot meanwhile and does nothing else, so it is short. A leader
// that sends nothing for so long leads no more.
const RaftStall = 5 * time.Second

// RaftPool is how many idle connections to one server Raft's transport must keep at most.
const RaftPool = 4

// raftConn is a connection that Raft's transport has dialed. Only one goroutine at a time
// sets its deadlines.
type raftConn struct {
	net.Conn
	limit time.Duration // of silence, as set
}

func (c *raftConn) SetDeadline(t time.Time) error {
	limit := raftSilence
	if time.Until(t) > RaftTimeout {
		limit = snapshotSilence
	}
	if limit != c.limit {
		if err := boundSilence(c.Conn.(*conn).Conn, limit); err != nil {
			return err
		}
		c.limit = limit
	}
	return c.Conn.SetDeadline(t)
}

// conn is a connection that its Mux closes when the Mux is closed.
type conn struct {
	net.Conn
	raw     net.Conn // the TCP connection, below TLS if that is used
	session atomic.Pointer[nodetls.Session]
	mux     *Mux
	caller  *CallerAddr // of an accepted connection
	left    func()      // called once by the first Close; may be nil
	once    sync.Once
	err     error
}

// CallerAddr is the remote address of an accepted connection, and the ids that the caller
// has sent.
type CallerAddr struct {
	net.Addr
	ServerID  string
	ClusterID string // empty: it has none
	// Proved is set if a certificate proves that ServerID begins with the caller's own node
	// id. Nothing proves the rest, or anything without it.
	Proved bool
}

// RemoteAddr returns a *CallerAddr for an accepted connection.
func (c *conn) RemoteAddr() net.Addr {
	if c.caller != nil {
		return c.caller
	}
	return c.Conn.RemoteAddr()
}

// track makes the Mux responsible for c. If the Mux is closed, it closes c and returns nil.
func (m *Mux) track(c net.Conn) *conn {
	t := &conn{Conn: c, raw: c, mux: m}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		c.Close()
		return nil
	}
	m.conns[c] = t
	return t
}

// Close closes the connection. Closing again changes nothing.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.mux.mu.Lock()
		delete(c.mux.conns, c.raw)
		c.mux.mu.Unlock()
		if c.left != nil {
			c.left()
		}
	})
	return c.err
}
