package access

import (
	"context"
	"sync"

	"tarry/auth"
)

// Watch ends contexts when what they wait for is not allowed any more. One goroutine looks after
// all of them, and only when a token or the settings have changed.
type Watch struct {
	source  Source
	changed func()

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

type waiter struct {
	allowed func(*auth.State) bool
	end     context.CancelCauseFunc
}

// newWatch returns a watch, which the caller must Close. It calls changed after each change of the
// state.
func newWatch(source Source, changed func()) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{source: source, changed: changed, waiting: map[*waiter]struct{}{}, cancel: cancel}
	if source.AuthChanged() != nil { // else it never changes
		w.done.Go(func() { w.run(ctx) })
	}
	return w
}

// Close ends the watch. What waits is not ended by it.
func (w *Watch) Close() {
	w.cancel()
	w.done.Wait()
}

// errRevoked ends a context whose caller has lost a right.
type errRevoked struct{}

func (errRevoked) Error() string { return "the token does not allow this any more" }

// Revoked reports whether a context of While has ended because of that.
func Revoked(ctx context.Context) bool {
	_, is := context.Cause(ctx).(errRevoked)
	return is
}

// While returns a context that also ends when allowed, of the state at that time, is false. The
// caller must call stop.
func (w *Watch) While(ctx context.Context, allowed func(*auth.State) bool) (until context.Context, stop func()) {
	until, end := context.WithCancelCause(ctx)
	one := &waiter{allowed: allowed, end: end}
	w.mu.Lock()
	w.waiting[one] = struct{}{}
	w.mu.Unlock()
	if !allowed(w.source.Auth()) { // it may have changed before the waiter was there
		end(errRevoked{})
	}
	return until, func() {
		w.mu.Lock()
		delete(w.waiting, one)
		w.mu.Unlock()
		end(nil)
	}
}

func (w *Watch) run(ctx context.Context) {
	for {
		changed := w.source.AuthChanged()
		w.look(w.source.Auth())
		w.changed()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) look(s *auth.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.waiting {
		if !one.allowed(s) {
			one.end(errRevoked{})
		}
	}
}
