package diskspace

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLowBeginsAtTheMarkAndEndsAQuarterAboveIt(t *testing.T) {
	var s State
	for _, step := range []struct {
		free uint64
		low  bool
	}{{1000, false}, {101, false}, {100, false}, {99, true}, {100, true}, {124, true}, {125, false}, {100, false}, {0, true}} {
		s = s.next(step.free, 10_000, Bytes(100))
		require.Equal(t, step.low, s.Low, "%d bytes free", step.free)
		require.Equal(t, step.free, s.Free)
	}
}

func TestMarkAsText(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		text  string
		total uint64
		want  uint64
	}{
		{"auto", 1000 * gib, 2 * gib},
		{"auto", 20 * gib, 20 * gib / 100 * 5},
		{"auto", 4 * gib, 512 << 20},
		{"auto", 64 << 20, 16 << 20},
		{"12345", gib, 12345},
		{"0", gib, 0},
		{"2.5%", 1000, 25},
	} {
		var m Mark
		require.NoError(t, m.UnmarshalText([]byte(c.text)))
		require.Equal(t, c.want, m.of(c.total), c.text)
		text, err := m.MarshalText()
		require.NoError(t, err)
		require.Equal(t, c.text, string(text))
	}
	for _, bad := range []string{"", "-1", "x", "100%", "-1%", "%", "1e9", "NaN%", "1 GiB"} {
		var m Mark
		require.Error(t, m.UnmarshalText([]byte(bad)), bad)
	}
}

// TestWatchReportsAChangeOnce runs on a fake clock.
func TestWatchReportsAChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the test changes what the watch reads
		var free uint64 = 1000
		var broken error
		var reported []bool
		set := func(bytes uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			free, broken = bytes, err
		}
		changes := func() []bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(reported)
		}
		var lines strings.Builder
		w := New(Options{
			Dir: t.TempDir(), Mark: Bytes(100), Logger: slog.New(slog.NewTextHandler(&lines, nil)),
			Changed: func(s State) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, s.Low)
			},
			Measure: func(string) (uint64, uint64, error) {
				mu.Lock()
				defer mu.Unlock()
				return free, 10_000, broken
			},
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		pass := func() {
			time.Sleep(3 * measureEvery)
			synctest.Wait()
		}
		pass()
		require.Empty(t, changes())
		set(50, nil)
		pass()
		require.Equal(t, []bool{true}, changes())
		set(50, errors.New("no"))
		pass()
		require.True(t, w.State().Low, "a failed measurement changes nothing")
		set(5000, nil)
		pass()
		require.Equal(t, []bool{true, false}, changes())
		cancel()
		<-done
		require.Equal(t, 3, strings.Count(lines.String(), "\n"), "one line a change: %s", lines.String())
	})
}

func TestTheBallastIsRemovedAtAStartOnAFullDiskAndCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, BallastFile)
		var free atomic.Uint64
		free.Store(1000)
		start := func() (stop func()) {
			w := New(Options{Dir: dir, Mark: Bytes(100), Logger: slog.New(slog.DiscardHandler),
				Measure: func(string) (uint64, uint64, error) { return free.Load(), 10_000, nil }})
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { w.Run(ctx); close(done) }()
			return func() { cancel(); <-done }
		}
		size := func() int64 {
			info, err := os.Stat(file)
			if err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
				return 0
			}
			return info.Size()
		}
		stop := start()
		require.EqualValues(t, 50, size())
		free.Store(30)
		time.Sleep(3 * measureEvery)
		require.EqualValues(t, 50, size(), "only a start removes it")
		stop()
		stop = start()
		require.EqualValues(t, 50, size(), "30 bytes are room enough to start")
		stop()
		free.Store(10)
		stop = start()
		require.Zero(t, size())
		free.Store(174)
		time.Sleep(3 * measureEvery)
		require.Zero(t, size(), "the ballast itself must not make the disk low")
		free.Store(175)
		time.Sleep(3 * measureEvery)
		require.EqualValues(t, 50, size())
		stop()
	})
}

func TestADiskIsMeasured(t *testing.T) {
	free, total, err := measure(t.TempDir())
	require.NoError(t, err)
	require.NotZero(t, total)
	require.LessOrEqual(t, free, total)
	_, err = Free(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestADiskThatIsLowAtTheStartIsKnownAtOnce(t *testing.T) {
	w := New(Options{Dir: t.TempDir(), Mark: Bytes(1 << 50), Logger: slog.New(slog.DiscardHandler)})
	require.True(t, w.State().Low)
}
