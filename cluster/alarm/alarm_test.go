package alarm

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs f with an alarm of each kind.
func each(t *testing.T, f func(t *testing.T, a *Alarm)) {
	t.Run("New", func(t *testing.T) {
		a := New()
		defer a.Close()
		f(t, a)
	})
	t.Run("a timer of Go", func(t *testing.T) {
		a := NewTimer()
		defer a.Close()
		f(t, a)
	})
}

func TestAStoppedAlarmDoesNotRing(t *testing.T) {
	each(t, func(t *testing.T, a *Alarm) {
		other := New()
		defer other.Close()
		a.Reset(20 * time.Millisecond)
		a.Stop()
		other.Reset(40 * time.Millisecond)
		<-other.C
		require.Empty(t, a.C)
		a.Reset(time.Millisecond)
		<-a.C
	})
}

func TestAnAlarmRingsNeverEarlyAndOnceForEachReset(t *testing.T) {
	each(t, func(t *testing.T, a *Alarm) {
		for _, d := range []time.Duration{0, -time.Second, 1, time.Microsecond, 3 * time.Millisecond} {
			began := time.Now()
			a.Reset(d)
			<-a.C
			require.GreaterOrEqual(t, time.Since(began), d)
			require.Empty(t, a.C)
		}
	})
}

func TestAResetReplacesTheOneBefore(t *testing.T) {
	each(t, func(t *testing.T, a *Alarm) {
		a.Reset(time.Hour)
		a.Reset(time.Millisecond)
		<-a.C
		a.Reset(time.Millisecond)
		a.Reset(time.Hour)
		other := New()
		defer other.Close()
		other.Reset(20 * time.Millisecond)
		<-other.C
		// The first of the two may have rung before the second.
		for len(a.C) > 0 {
			<-a.C
		}
		other.Reset(20 * time.Millisecond)
		<-other.C
		require.Empty(t, a.C)
	})
}

func TestARefusedTimerOfTheKernelIsReplaced(t *testing.T) {
	ring := make(chan struct{}, 1)
	a := &Alarm{C: ring, ring: ring, impl: refused{}}
	defer a.Close()
	a.Reset(time.Millisecond)
	<-a.C
	require.IsType(t, timer{}, a.impl)
}

type refused struct{}

func (refused) reset(time.Duration) error { return errRefused }
func (refused) stop() error               { return errRefused }
func (refused) close()                    {}

var errRefused = errors.New("refused")
