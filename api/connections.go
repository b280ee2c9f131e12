package api

import (
	"context"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"tarry/api/access"
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

// RefusedConnection is the HTTP response on a connection beyond the limit.
const RefusedConnection = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 116\r\n\r\n" +
	`{"success":false,"code":"overloaded","error":"this node has as many connections as it may","outcome":"not_applied"}` + "\n"

type limitedListener struct {
	net.Listener
	own     *semaphore.Weighted
	shared  *semaphore.Weighted
	refusal []byte
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
				return &countedConn{Conn: c, of: l}, nil
			}
			l.own.Release(1)
		}
		// For a client that does not get the refusal the closed connection also means that
		// nothing was done.
		c.SetDeadline(time.Now().Add(refusalTime))
		c.Write(l.refusal)
		c.Close()
	}
}

// countedConn is a connection that counts until its first Close.
type countedConn struct {
	net.Conn
	place  access.Connection
	of     *limitedListener
	closed sync.Once
}

type placeKey struct{}

// ConnContext is for an http.Server that serves a listener of LimitConnections: with it, the
// connections of each token are counted.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for c != nil {
		if counted, is := c.(*countedConn); is {
			return context.WithValue(ctx, placeKey{}, &counted.place)
		}
		below, is := c.(interface{ NetConn() net.Conn })
		if !is {
			break
		}
		c = below.NetConn()
	}
	return ctx
}

// connectionOf returns the place of the connection of a request; nil without ConnContext.
func connectionOf(r *http.Request) *access.Connection {
	place, _ := r.Context().Value(placeKey{}).(*access.Connection)
	return place
}

// NetConn returns the connection below, which may be one of TLS.
func (c *countedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http close a connection so that its client can read the response.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *countedConn) Close() error {
	err := c.Conn.Close() // before Release, because the limit is one of file descriptors
	c.closed.Do(func() {
		c.place.Close()
		c.of.own.Release(1)
		c.of.shared.Release(1)
	})
	return err
}
