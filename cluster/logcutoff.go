package cluster

import (
	"context"
	"log/slog"
	"sync"
)

// logCutoff stops a node's logging with the node. Goroutines of memberlist (a probe under
// way) and of Raft's transport (the reader of a connection) outlive the call that stops
// them. What they still log is dropped.
type logCutoff struct {
	mu    sync.RWMutex
	ended bool
}

// logger returns a logger that writes to of until end is called.
func (c *logCutoff) logger(of *slog.Logger) *slog.Logger {
	return slog.New(cutHandler{of.Handler(), c})
}

// end waits for the lines that are being written. Later lines are dropped.
func (c *logCutoff) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

type cutHandler struct {
	slog.Handler
	cutoff *logCutoff
}

func (h cutHandler) Handle(ctx context.Context, r slog.Record) error {
	h.cutoff.mu.RLock()
	defer h.cutoff.mu.RUnlock()
	if h.cutoff.ended {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h cutHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return cutHandler{h.Handler.WithAttrs(attrs), h.cutoff}
}

func (h cutHandler) WithGroup(name string) slog.Handler {
	return cutHandler{h.Handler.WithGroup(name), h.cutoff}
}
