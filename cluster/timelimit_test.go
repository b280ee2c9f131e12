package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimeLimitEndsEachWaitInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &timeLimit{limit: time.Second}
		var timers []<-chan struct{}
		for range 50 { // waits that begin every 7 ms
			over := l.begin()
			if len(timers) == 0 || timers[len(timers)-1] != over {
				timers = append(timers, over)
			}
			began := time.Now()
			go func() {
				<-over
				took := time.Since(began)
				if took < time.Second || took > time.Second+limitStep {
					t.Errorf("a wait ended after %v", took)
				}
			}()
			time.Sleep(7 * time.Millisecond)
		}
		require.Len(t, timers, 4, "waits share timers")
		time.Sleep(10 * time.Second)
		over := l.begin()
		select {
		case <-over:
			t.Error("a wait after a pause has the timer of an earlier one")
		default:
		}
		<-over
	})
}

func BenchmarkTimeLimit(b *testing.B) {
	outcome := make(chan int, 1)
	b.Run("context", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(b.Context(), 15*time.Second)
			outcome <- 1
			select {
			case <-outcome:
			case <-ctx.Done():
			}
			cancel()
		}
	})
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		l := &timeLimit{limit: 15 * time.Second}
		for b.Loop() {
			over := l.begin()
			outcome <- 1
			select {
			case <-outcome:
			case <-b.Context().Done():
			case <-over:
			}
		}
	})
}
