package api

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ConnectionLimit counts the connections that are open at one time, of one
// listener or of several.
type ConnectionLimit struct {
	limit int64
	open  atomic.Int64
}

// NewConnectionLimit allows so many connections.
func NewConnectionLimit(n int) *ConnectionLimit { return &ConnectionLimit{limit: int64(n)} }

func (l *ConnectionLimit) enter() bool {
	if l.open.Add(1) <= l.limit {
		return true
	}
	l.open.Add(-1)
	return false
}

func (l *ConnectionLimit) leave() { l.open.Add(-1) }

// LimitConnections bounds the connections that l has open at one time, and with
// shared, unless it is nil, those that all listeners have that share it. One too
// many is sent the refusal, as far as it takes it at once, and closed.
func LimitConnections(l net.Listener, limit int, shared *ConnectionLimit, refusal string) net.Listener {
	if shared == nil {
		shared = NewConnectionLimit(math.MaxInt)
	}
	return &limitedListener{Listener: l, own: NewConnectionLimit(limit), shared: shared, refusal: []byte(refusal)}
}

// RefusedConnection is the HTTP answer to a connection too many.
const RefusedConnection = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 116\r\n\r\n" +
	`{"success":false,"code":"overloaded","error":"this node has as many connections as it may","outcome":"not_applied"}` + "\n"

type limitedListener struct {
	net.Listener
	own     *ConnectionLimit
	shared  *ConnectionLimit
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
		if l.own.enter() {
			if l.shared.enter() {
				return &countedConn{Conn: c, of: l}, nil
			}
			l.own.leave()
		}
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
	of     *limitedListener
	closed sync.Once
}

// CloseWrite lets net/http close a connection so that its client reads the answer.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *countedConn) Close() error {
	err := c.Conn.Close() // first: the place stands for a file descriptor
	c.closed.Do(func() {
		c.of.own.leave()
		c.of.shared.leave()
	})
	return err
}
