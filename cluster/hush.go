package cluster

import (
	"context"
	"log/slog"
	"sync"
)

// hush ends a node's log with the node. Goroutines of memberlist (a probe under
// way) and of Raft's transport (a connection's reader) outlive the call that
// stops them; what they still say belongs to nobody.
type hush struct {
	mu    sync.RWMutex
	ended bool
}

// logger is like of until end.
func (h *hush) logger(of *slog.Logger) *slog.Logger {
	return slog.New(hushed{of.Handler(), h})
}

// end blocks until the lines that are being written are written; later ones are
// dropped.
func (h *hush) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

type hushed struct {
	slog.Handler
	hush *hush
}

func (h hushed) Handle(ctx context.Context, r slog.Record) error {
	h.hush.mu.RLock()
	defer h.hush.mu.RUnlock()
	if h.hush.ended {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h hushed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return hushed{h.Handler.WithAttrs(attrs), h.hush}
}

func (h hushed) WithGroup(name string) slog.Handler {
	return hushed{h.Handler.WithGroup(name), h.hush}
}
