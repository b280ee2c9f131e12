package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// repeatAfter is how long repetitions of a line are suppressed, maxComplaints how many
// lines are distinguished. All others count as one.
const (
	repeatAfter   = 10 * time.Second
	maxComplaints = 100
)

// onceInAWhile passes the same warning or error once in repeatAfter, with a count of the
// suppressed ones, so that strangers on a port or a peer that is down cannot fill the
// disk with lines. It does not suppress levels below warning.
type onceInAWhile struct {
	slog.Handler
	*complaints
}

// complaints are shared by all handlers that come from one.
type complaints struct {
	mu   sync.Mutex
	made map[string]*complaint // in the last repeatAfter
}

type complaint struct {
	kept int // back since it was passed
	last slog.Record
	by   slog.Handler // of last
}

func newOnceInAWhile(to slog.Handler) slog.Handler {
	return onceInAWhile{to, &complaints{made: map[string]*complaint{}}}
}

func (h onceInAWhile) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.pass(r, h.Handler) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

func (h onceInAWhile) WithAttrs(attrs []slog.Attr) slog.Handler {
	return onceInAWhile{h.Handler.WithAttrs(attrs), h.complaints}
}

func (h onceInAWhile) WithGroup(name string) slog.Handler {
	return onceInAWhile{h.Handler.WithGroup(name), h.complaints}
}

// pass reports whether to log a complaint now; otherwise it suppresses it.
func (c *complaints) pass(r slog.Record, by slog.Handler) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(r)
	if _, known := c.made[key]; !known && len(c.made) >= maxComplaints {
		key = ""
	}
	if made, known := c.made[key]; known {
		made.kept, made.last, made.by = made.kept+1, r.Clone(), by
		return false
	}
	c.made[key] = &complaint{}
	time.AfterFunc(repeatAfter, func() { c.repeat(key) }) // once a key; it ends when nobody complains
	return true
}

// repeat passes the last complaint that was kept back, with how many there were, or
// forgets the key.
func (c *complaints) repeat(key string) {
	c.mu.Lock()
	made := c.made[key]
	if made.kept == 0 {
		delete(c.made, key)
		c.mu.Unlock()
		return
	}
	r, by := made.last, made.by
	r.AddAttrs(slog.Int("repeated", made.kept))
	r.Time = time.Now() // a log's times do not go back
	c.made[key] = &complaint{}
	c.mu.Unlock()
	_ = by.Handle(context.Background(), r) // there is nowhere to tell that the log cannot be written
	time.AfterFunc(repeatAfter, func() { c.repeat(key) })
}

// keyOf is what makes two complaints the same: the message, and the node, the topic or the
// port that it is about. None is a stranger's to choose.
func keyOf(r slog.Record) string {
	key := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "peer", "target", "member", "server-id", "id", "topic", "port":
			key += " " + a.Value.String()
		}
		return true
	})
	return key
}
