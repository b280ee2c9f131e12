package transport

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/internal/addrlimit"
)

// acceptQueue is how many connections may wait for their Accept.
const acceptQueue = 16

// listener hands out the accepted connections of one conversation.
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

// Close refuses further connections. Those that were handed out stay open.
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
			l.Close() // it may have come after the queue was emptied
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

// Dial resolves the address of a Target anew and connects to the same group there.
func (r raftLayer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	serverID, address := SplitTarget(target)
	c, err := r.mux.dialWithin(address, header{kind: kindRaft, shard: r.shard, to: serverID}, timeout)
	if err != nil {
		return nil, err
	}
	return &raftConn{Conn: c, limit: raftSilence}, nil
}

// RaftTimeout is what Raft's transport must give its requests. It gives more to
// the one that carries a large snapshot, which is how we know it.
const RaftTimeout = 10 * time.Second

// raftConn is a connection that Raft's transport has made. It belongs to one
// goroutine at a time as far as deadlines go.
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

// conn is a connection that its Mux closes if nobody else does.
type conn struct {
	net.Conn
	mux    *Mux
	caller *CallerAddr // of an accepted connection
	left   func()      // called once by the first Close; may be nil
	once   sync.Once
	err    error
}

// CallerAddr is the remote address of a connection that was accepted: where it came
// from, and as whom. Nothing proves what a caller says of itself.
type CallerAddr struct {
	net.Addr
	ServerID  string
	ClusterID string // empty: it has none
}

// RemoteAddr is a *CallerAddr on the side that accepted.
func (c *conn) RemoteAddr() net.Addr {
	if c.caller != nil {
		return c.caller
	}
	return c.Conn.RemoteAddr()
}

// track makes the Mux responsible for c; nil, and c closed, when it is too late.
func (m *Mux) track(c net.Conn) *conn {
	t := &conn{Conn: c, mux: m}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		c.Close()
		return nil
	}
	m.conns[c] = struct{}{}
	return t
}

// Close closes the connection. Closing again changes nothing.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.mux.mu.Lock()
		delete(c.mux.conns, c.Conn)
		c.mux.mu.Unlock()
		if c.left != nil {
			c.left()
		}
	})
	return c.err
}
