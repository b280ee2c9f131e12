package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/audit"
	"tarry/auth"
)

// Who asks while a question is under way shares the next one with all others.
func TestTheLeaderIsAskedOnceForAllWhoWait(t *testing.T) {
	var asked atomic.Int32
	began, answer := make(chan struct{}), make(chan struct{})
	l := newLeader(newChanging(enforced()), func(context.Context) (uint64, error) {
		if asked.Add(1) == 1 {
			close(began)
		}
		<-answer
		return 1, nil
	})
	var work sync.WaitGroup
	ask := func() {
		revision, err := l.revision(t.Context())
		if err != nil || revision != 1 {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
	work.Go(ask)
	<-began
	for range 50 {
		work.Go(ask)
	}
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.next != nil && l.next.waiting == 50
	}, 30*time.Second, time.Millisecond)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.revision(gone)
	require.ErrorIs(t, err, context.Canceled)
	close(answer)
	work.Wait()
	require.EqualValues(t, 2, asked.Load())
}

// A node in no cluster always asks, and must stop at once.
func TestAQuestionUnderWayEndsWithTheControl(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	c := Open(Options{Source: newChanging(enforced()), Leader: func(ctx context.Context) (uint64, error) {
		once.Do(func() { close(began) })
		<-ctx.Done()
		select {
		case ended <- ctx.Err():
		default:
		}
		return 0, ctx.Err()
	}})
	<-began
	c.Close()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestAskingIsLimitedForAllTogether(t *testing.T) {
	i := NewIdentity(newChanging(enforced()), func(context.Context) (uint64, error) { return 0, nil })
	for n := range allBurst + 100 {
		_, err := i.Of(t.Context(), secretFor(t, fmt.Sprint("g", n)), fmt.Sprintf("10.0.%d.%d:1", n/250, n%250), true)
		if !errors.Is(err, auth.ErrUnknown) {
			require.ErrorIs(t, err, errAskedTooOften)
		}
	}
	require.Less(t, i.all.Left, float64(allBurst))
	i.all.Left, i.all.At = 0, time.Now().Add(time.Hour) // none is given back meanwhile
	_, err := i.Of(t.Context(), secretFor(t, "last"), "10.1.0.1:1", true)
	require.ErrorIs(t, err, errAskedTooOften)

	for remote, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[2001:db8::1]:5": "2001:db8::/64", "[2001:db8::ffff:1]:6": "2001:db8::/64",
		"[2001:db8:0:1::1]:5": "2001:db8:0:1::/64", "[fe80::1%eth0]:5": "fe80::/64", "[::ffff:10.0.0.1]:5": "::ffff:10.0.0.1", "pipe": "pipe",
	} {
		require.Equal(t, want, audit.Network(remote))
	}
}
