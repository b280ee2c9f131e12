// Package sleep waits for a duration or an event, whichever comes first. Start at For.
package sleep

import (
	"context"
	"time"
)

// For blocks for d and returns true, or false once ctx has ended.
func For(ctx context.Context, d time.Duration) bool { return Until(ctx, d, nil) }

// Until is For, except that it returns early, with true, when early closes or has a
// value.
func Until(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
		return true
	case <-ctx.Done():
		return false
	}
}
