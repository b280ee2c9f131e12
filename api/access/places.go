package access

import (
	"context"
	"sync"
	"sync/atomic"

	"tarry/job/jobpb"
)

// Connection is the place of a connection among those of the token that it was used with last.
// The zero value has none.
type Connection struct {
	mu      sync.Mutex
	of      *usage
	crowded bool // it is one too many
	closed  bool

	last atomic.Pointer[readSecret]
}

// take makes the connection one of u's, of which there may be most; 0: any number. With more set
// there may be as many again that are crowded. It reports whether there was a place. A connection
// that has one keeps it.
func (c *Connection) take(u *usage, most uint32, more bool) (crowded, taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == u || c.closed {
		return c.crowded, true
	}
	u.mu.Lock()
	switch full := most > 0 && u.connections >= most; {
	case !full:
		u.connections++
		taken = true
	case more && u.crowded < most:
		u.crowded++
		crowded, taken = true, true
	}
	u.mu.Unlock()
	if taken {
		c.leave()
		c.of, c.crowded = u, crowded
	}
	return crowded, taken
}

// leave is called with mu held.
func (c *Connection) leave() {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	if c.crowded {
		c.of.crowded--
	} else {
		c.of.connections--
	}
	c.of.mu.Unlock()
	c.of, c.crowded = nil, false
}

// Close gives the place up.
func (c *Connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.leave()
}

// Join gives a connection a place among those of a token.
func (l *Limits) Join(c *Connection, id string) error {
	u := l.usageOf(id)
	if u == nil {
		return nil
	}
	_, err := l.join(c, u, id, false)
	return err
}

// join is Join for a call, which may use a crowded connection if more is set. It reports whether the
// connection is one too many.
func (l *Limits) join(c *Connection, u *usage, id string, more bool) (crowded bool, err error) {
	s := l.source.Auth()
	more = more && s.Mode() == jobpb.AuthMode_AUTH_ENFORCE
	crowded, taken := c.take(u, limitsOf(s, id).GetConnections(), more)
	if taken {
		return crowded, nil
	}
	if err := l.exceeded(s, id, limitConnections, 0); err != nil {
		return true, err
	}
	c.take(u, 0, false)
	return false, nil
}

// Waiting is the place of a reserve that waits, or of a stream. The zero value has none.
type Waiting struct{ of *usage }

// End gives the place up.
func (w Waiting) End() {
	if w.of == nil {
		return
	}
	w.of.mu.Lock()
	w.of.waiters--
	w.of.mu.Unlock()
}

// Wait takes a place for the caller of a context, who must End it.
func (l *Limits) Wait(ctx context.Context) (Waiting, error) {
	r, _ := ctx.Value(requestKey{}).(*Request)
	if r == nil {
		return Waiting{}, nil
	}
	id := r.Principal.TokenID()
	u := l.usageOf(id)
	if u == nil {
		return Waiting{}, nil
	}
	s := l.source.Auth()
	if r.account.crowded {
		r.account.refused()
		return Waiting{}, l.exceeded(s, id, limitConnections, 0)
	}
	most := limitsOf(s, id).GetWaiters()
	u.mu.Lock()
	full := most > 0 && u.waiters >= most
	if !full {
		u.waiters++
	}
	u.mu.Unlock()
	if !full {
		return Waiting{of: u}, nil
	}
	if s.Mode() == jobpb.AuthMode_AUTH_ENFORCE {
		r.account.refused()
	}
	return Waiting{}, l.exceeded(s, id, limitWaiters, 0)
}
