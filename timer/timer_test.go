package timer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a shard with a list of due instants, run on the bubble's fake clock.
type fake struct {
	mu       sync.Mutex
	due      []int64 // ascending
	advances []int64 // instants of the calls
	fail     int     // how many further calls fail
	asked    int
}

func (f *fake) Now() time.Time { return time.Now() }

func (f *fake) NextDue() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if len(f.due) == 0 {
		return 0
	}
	return f.due[0]
}

func (f *fake) Advance(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advances = append(f.advances, f.Now().UnixMilli())
	if f.fail > 0 {
		f.fail--
		return errors.New("not the leader")
	}
	if len(f.due) > 0 && f.due[0] <= f.Now().UnixMilli() {
		f.due = f.due[1:]
	}
	return nil
}

func run(t *testing.T, f *fake, body func(tm *Timer, start int64)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		tm := New(f)
		done := make(chan struct{})
		go func() { tm.Run(ctx); close(done) }()
		synctest.Wait()
		body(tm, time.Now().UnixMilli())
		cancel()
		<-done
	})
}

func TestAdvancesExactlyWhenDue(t *testing.T) {
	f := &fake{}
	run(t, f, func(tm *Timer, start int64) {
		f.mu.Lock()
		f.due = []int64{start + 250, start + 250, start + 7_300}
		f.mu.Unlock()
		tm.Notify()
		time.Sleep(10 * time.Second) // fake time
		synctest.Wait()
		require.Equal(t, []int64{start + 250, start + 250, start + 7_300}, f.advances)
	})
}

func TestEarlierInstantWakesTheSleeper(t *testing.T) {
	f := &fake{}
	run(t, f, func(tm *Timer, start int64) {
		f.mu.Lock()
		f.due = []int64{start + 60_000}
		f.mu.Unlock()
		tm.Notify()
		time.Sleep(100 * time.Millisecond)
		f.mu.Lock()
		f.due = []int64{start + 150, start + 60_000}
		f.mu.Unlock()
		tm.Notify()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int64{start + 150}, f.advances)
	})
}

func TestNothingWaitingMeansNoWakeUps(t *testing.T) {
	f := &fake{}
	run(t, f, func(tm *Timer, start int64) {
		before := f.asked
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, before, f.asked)
		require.Empty(t, f.advances)
	})
}

func TestFailedAdvanceIsRetriedWithBackoff(t *testing.T) {
	f := &fake{fail: 3}
	run(t, f, func(tm *Timer, start int64) {
		f.mu.Lock()
		f.due = []int64{start}
		f.mu.Unlock()
		tm.Notify()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []int64{start, start + 10, start + 30, start + 70}, f.advances)
		require.Empty(t, f.due)
	})
}
