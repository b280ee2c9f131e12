package access

import (
	"context"
	"errors"
	"sync"

	"tarry/job/jobpb"
)

// Connection is the place of a connection among those of the token that it was used with last.
// The zero value has none.
type Connection struct {
	mu     sync.Mutex
	of     *usage
	closed bool
}

// take makes the connection one of u's, of which there may be most; 0: any number. It reports
// whether there was a place. A connection that has one keeps it.
func (c *Connection) take(u *usage, most uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == u || c.closed {
		return true
	}
	u.mu.Lock()
	full := most > 0 && u.connections >= most
	if !full {
		u.connections++
	}
	u.mu.Unlock()
	if !full {
		c.leave()
		c.of = u
	}
	return !full
}

// leave is called with mu held.
func (c *Connection) leave() {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	c.of.connections--
	c.of.mu.Unlock()
	c.of = nil
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
	return l.join(c, u, id, false)
}

// join is Join. If quiet is set, a refusal is not counted yet.
func (l *Limits) join(c *Connection, u *usage, id string, quiet bool) error {
	s := l.source.Auth()
	if c.take(u, limitsOf(s, id).GetConnections()) {
		return nil
	}
	if quiet && s.Mode() == jobpb.AuthMode_AUTH_ENFORCE {
		return errCrowded
	}
	err := l.exceeded(s, id, limitConnections, 0)
	if err == nil {
		c.take(u, 0)
	}
	return err
}

// errCrowded is for a connection that is one too many. No client gets it.
var errCrowded = errors.New("the token has as many connections as it may")

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
	return Waiting{}, l.exceeded(s, id, limitWaiters, 0)
}
