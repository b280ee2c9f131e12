// Package httpx is what HTTP needs whatever a call is about: connections and how many there are,
// deadlines, buffers, the names of a node, the origins of pages, metrics, and the errors of net/http
// in the form of all others.
package httpx

import (
	"context"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tarry/api/access"
	"tarry/internal/addrlimit"
)

// LimitConnections limits the open connections of l, and those of all listeners that use
// shared, unless that is nil. A connection beyond the limit gets the refusal, as far as it
// can be written at once, and is closed.
func LimitConnections(l net.Listener, limit int, shared *semaphore.Weighted, refusal string) net.Listener {
	if shared == nil {
		shared = semaphore.NewWeighted(math.MaxInt64)
	}
	return &limitedListener{Listener: l, own: semaphore.NewWeighted(int64(limit)), shared: shared, refusal: []byte(refusal)}
}

// OperatorConnections is how many connections LimitRequests accepts beyond the limit.
const OperatorConnections = 16

// LimitRequests is LimitConnections for HTTP, with ConnContext. Beyond the limit it accepts
// OperatorConnections more, half of them of one client address, for one call each that is about the
// node or the cluster. The request must arrive within crowdedRead, so clients that hold such a
// connection and send nothing do not keep out a probe that tries again.
func LimitRequests(l net.Listener, limit int, shared *semaphore.Weighted) net.Listener {
	limited := LimitConnections(l, limit, shared, RefusedConnection).(*limitedListener)
	limited.spare = addrlimit.New(OperatorConnections, OperatorConnections/2)
	return limited
}

// RefusedConnection is the HTTP response on a connection beyond the limit.
const RefusedConnection = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 116\r\n\r\n" +
	`{"success":false,"code":"overloaded","error":"this node has as many connections as it may","outcome":"not_applied"}` + "\n"

type limitedListener struct {
	net.Listener
	own     *semaphore.Weighted
	shared  *semaphore.Weighted
	refusal []byte
	spare   *addrlimit.Limit // nil: no more than the limit
}

// refusalTime bounds sending a refusal. The buffers of a new connection are
// empty, so it does not block in practice.
const refusalTime = 100 * time.Millisecond

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.own.TryAcquire(1) {
			if l.shared.TryAcquire(1) {
				return &countedConn{Conn: c, release: l.release}, nil
			}
			l.own.Release(1)
		}
		if l.spare != nil {
			if share := l.spare.Of(c.RemoteAddr().String()); share.TryAcquire(1) {
				return newSpare(c, func() { share.Release(1) }), nil
			}
		}
		// For a client that does not get the refusal the closed connection also means that
		// nothing was done.
		c.SetDeadline(time.Now().Add(refusalTime))
		_, _ = c.Write(l.refusal)
		c.Close()
	}
}

func (l *limitedListener) release() {
	l.own.Release(1)
	l.shared.Release(1)
}

// countedConn is a connection that counts until its first Close.
type countedConn struct {
	net.Conn
	place   access.Connection
	wire    *jsonErrorConn // above it; nil: there is none
	release func()
	closed  sync.Once

	spare    bool // it is beyond the limit
	admitted atomic.Bool
	until    time.Time // no read waits longer on a spare connection that was not admitted
}

func newSpare(c net.Conn, release func()) *countedConn {
	until := time.Now().Add(CrowdedRead)
	_ = c.SetDeadline(until) // for a handshake of TLS, too; fails on a closed connection, as each use then does
	return &countedConn{Conn: c, release: release, spare: true, until: until}
}

// admit lets a spare connection serve its request with the deadlines of the others.
func (c *countedConn) admit() { c.admitted.Store(true) }

// SetReadDeadline implements net.Conn.
func (c *countedConn) SetReadDeadline(t time.Time) error {
	if c.spare && !c.admitted.Load() && (t.IsZero() || t.After(c.until)) {
		t = c.until
	}
	return c.Conn.SetReadDeadline(t)
}

type connKey struct{}

// ConnContext is for an http.Server that serves a listener of LimitConnections: with it, the
// connections of each token are counted.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	var wire *jsonErrorConn
	for c != nil {
		if w, is := c.(*jsonErrorConn); is {
			wire = w
		}
		if counted, is := c.(*countedConn); is {
			counted.wire = wire
			return context.WithValue(ctx, connKey{}, counted)
		}
		below, is := c.(interface{ NetConn() net.Conn })
		if !is {
			break
		}
		c = below.NetConn()
	}
	return ctx
}

// ConnectionOf returns the place of the connection of a request; nil without ConnContext.
func ConnectionOf(r *http.Request) *access.Connection {
	if c := countedOf(r); c != nil {
		return &c.place
	}
	return nil
}

func countedOf(r *http.Request) *countedConn {
	c, _ := r.Context().Value(connKey{}).(*countedConn)
	return c
}

// NetConn returns the connection below, which may be one of TLS.
func (c *countedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http close a connection so that its client can read the response.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *countedConn) Close() error {
	err := c.Conn.Close() // before Release, because the limit is one of file descriptors
	c.closed.Do(func() {
		c.place.Close()
		c.release()
	})
	return err
}
