package api

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// LimitConnections bounds the connections that l has open at one time. One too
// many is sent the refusal, as far as it takes it at once, and closed.
func LimitConnections(l net.Listener, limit int, refusal string) net.Listener {
	return &limitedListener{Listener: l, limit: int64(limit), refusal: []byte(refusal)}
}

// RefusedConnection is the HTTP answer to a connection too many.
const RefusedConnection = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 116\r\n\r\n" +
	`{"success":false,"code":"overloaded","error":"this node has as many connections as it may","outcome":"not_applied"}` + "\n"

type limitedListener struct {
	net.Listener
	limit   int64
	open    atomic.Int64
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
		if l.open.Add(1) <= l.limit {
			return &countedConn{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		// A client that misses the refusal sees its connection closed, which
		// also means that nothing was done.
		c.SetDeadline(time.Now().Add(refusalTime))
		c.Write(l.refusal)
		c.Close()
	}
}

// countedConn leaves its place once, however often it is closed.
type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
