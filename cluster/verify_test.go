package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/view"
)

// A node that got a state which is newer than a mark says so at once, so that another mark is made.
func TestAMarkThatCameInAStateIsNotWaitedFor(t *testing.T) {
	installing := func() bool { return false }
	m := newMarks()
	m.reach(7)
	_, _, err := m.wait(t.Context(), "mark", 7, installing)
	require.ErrorIs(t, err, errPassed)

	later := make(chan error)
	go func() {
		_, _, err := m.wait(t.Context(), "mark", 8, installing)
		later <- err
	}()
	m.reach(9)
	require.ErrorIs(t, <-later, errPassed)

	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	_, _, err = m.wait(ctx, "mark", 0, installing) // from a leader that does not say where the mark is
	require.ErrorContains(t, err, "did not reach the mark")

	ended := &mark{done: make(chan struct{}), err: view.ErrEnded}
	close(ended.done)
	m.byName["replaced"] = ended
	_, _, err = m.wait(t.Context(), "replaced", 10, installing)
	require.ErrorIs(t, err, errPassed, "its state was replaced while the digest was computed")
}
