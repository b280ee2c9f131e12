package clienttest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

// startWorker runs a worker of topic t until the test ends, or the function is called,
// which waits for its end.
func startWorker(t *testing.T, c *client.Client, w client.Worker) (stop func()) {
	w.Client, w.Topics = c, []string{"t"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = func() {
		cancel()
		require.NoError(t, <-done)
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, 30*time.Second, 5*time.Millisecond, what)
}

func TestAWorkerFinishesReleasesAndBuries(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	for _, id := range []string{"fine", "later", "never", "panics", "exits"} {
		_, err := c.Add(ctx, client.NewJob{ID: id, Topic: "t", Body: client.Text(id)})
		require.NoError(t, err)
	}
	reports := make(chan error, 10)
	startWorker(t, c, client.Worker{
		Concurrency: 2,
		OnError:     func(err error) { reports <- err },
		Backoff:     &client.Backoff{Base: client.Duration{Duration: time.Hour}},
		Do: func(_ context.Context, j client.Reserved) error {
			switch string(j.Bytes()) {
			case "later":
				return errors.New("no route " + strings.Repeat("x", 2000))
			case "never":
				return client.Permanent(errors.New("no such number"))
			case "panics":
				panic("at once")
			case "exits":
				runtime.Goexit()
			}
			return nil
		},
	})
	state := func(id string, state client.State, reason string) {
		eventually(t, func() bool {
			j, err := c.Get(ctx, id)
			return err == nil && j.State == state && strings.HasPrefix(j.Reason, reason)
		}, id)
	}
	eventually(t, func() bool {
		_, err := c.Get(ctx, "fine")
		return errors.Is(err, client.CodeNotFound)
	}, "fine is finished")
	state("later", "delayed", "no route")
	state("never", "dead", "no such number")
	state("panics", "delayed", "panic: at once")
	state("exits", "delayed", "the function ended its goroutine")

	said := map[string]*client.JobError{}
	for range 4 {
		var failed *client.JobError
		require.ErrorAs(t, <-reports, &failed)
		said[failed.Job.ID] = failed
	}
	require.ErrorContains(t, said["later"], `job "later": no route`)
	require.ErrorContains(t, said["never"], `job "never" is buried: no such number`)
	require.ErrorContains(t, said["exits"], "the function ended its goroutine")
	require.Empty(t, said["later"].Stack)
	require.ErrorContains(t, said["panics"], "panic: at once")
	require.Contains(t, string(said["panics"].Stack), "TestAWorkerFinishesReleasesAndBuries", "where it panicked")
	require.ErrorContains(t, said["panics"], "worker_test.go", "who only prints it sees where")
}

func TestAWorkerEndsAFunctionThatRunsTooLong(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	for _, id := range []string{"gives up", "ends well"} {
		_, err := c.Add(ctx, client.NewJob{ID: id, Topic: "t", Body: client.Text("x")})
		require.NoError(t, err)
	}
	startWorker(t, c, client.Worker{
		Timeout: 50 * time.Millisecond,
		Backoff: &client.Backoff{Base: client.Duration{Duration: time.Hour}},
		OnError: func(error) {},
		Do: func(ctx context.Context, j client.Reserved) error {
			<-ctx.Done()
			if j.ID == "ends well" {
				return nil
			}
			return context.Cause(ctx)
		},
	})
	eventually(t, func() bool {
		j, err := c.Get(ctx, "gives up")
		return err == nil && j.State == "delayed" && j.Reason == "timed out after 0.05 s"
	}, "it is released")
	eventually(t, func() bool {
		_, err := c.Get(ctx, "ends well")
		return errors.Is(err, client.CodeNotFound)
	}, "it is finished")
}

// A function that ignores its timeout does not keep its job: the reservation expires.
func TestAWorkerDoesNotProlongAfterTheTimeout(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	_, err := c.Add(ctx, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x"), TTR: 300 * time.Millisecond, MaxAttempts: new(uint32(1))})
	require.NoError(t, err)
	end := make(chan struct{})
	startWorker(t, c, client.Worker{
		Timeout: time.Millisecond,
		OnError: func(error) {},
		Do:      func(context.Context, client.Reserved) error { <-end; return nil },
	})
	eventually(t, func() bool {
		j, err := c.Get(ctx, "a")
		return err == nil && j.State == "dead"
	}, "the reservation expires")
	close(end)
}

func TestAWorkerThatStopsLetsItsFunctionsEnd(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	begun, end := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	stop := startWorker(t, c, client.Worker{Do: func(context.Context, client.Reserved) error {
		calls.Add(1)
		close(begun)
		<-end
		return nil
	}})
	_, err := c.Add(ctx, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x")})
	require.NoError(t, err)
	<-begun
	_, err = c.Add(ctx, client.NewJob{ID: "b", Topic: "t", Body: client.Text("x")})
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		require.Fail(t, "the worker left its function alone")
	case <-time.After(50 * time.Millisecond):
	}
	close(end)
	<-stopped
	_, err = c.Get(ctx, "a")
	require.ErrorIs(t, err, client.CodeNotFound, "the job of the function that ran is finished")
	b, err := c.Get(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, client.StateReady, b.State)
	require.EqualValues(t, 1, calls.Load())
}

func TestAWorkerTellsItsFunctionThatTheGraceIsOver(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	begun := make(chan struct{})
	stop := startWorker(t, c, client.Worker{Grace: time.Millisecond, Do: func(ctx context.Context, _ client.Reserved) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}})
	_, err := c.Add(t.Context(), client.NewJob{ID: "a", Topic: "t", Body: client.Text("x")})
	require.NoError(t, err)
	<-begun
	stop()
	j, err := c.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []any{client.StateReady, "context canceled"}, []any{j.State, j.Reason})
}

func TestAWorkerDropsAJobThatItHasLost(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	var lost atomic.Bool
	failed := make(chan error, 10)
	startWorker(t, c, client.Worker{
		TTR:     300 * time.Millisecond,
		OnError: func(err error) { failed <- err },
		Do: func(ctx context.Context, j client.Reserved) error {
			require.NoError(t, c.Delete(ctx, client.Ref{ID: j.ID}))
			<-ctx.Done()
			lost.Store(context.Cause(ctx) == client.ErrLost)
			return nil
		},
	})
	_, err := c.Add(ctx, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x")})
	require.NoError(t, err)
	require.ErrorIs(t, <-failed, client.ErrLost)
	require.True(t, lost.Load())
}

func TestAWorkerNeedsAFunction(t *testing.T) {
	require.Error(t, (&client.Worker{}).Run(t.Context()))
}

// A worker whose nodes are all gone says so within seconds, again and again, and not after the whole
// wait for a job.
func TestAWorkerSaysThatNoNodeCanBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		c, err := client.New([]string{"n1:7300", "n2:7300"}, client.WithHTTPClient(&http.Client{Transport: down}))
		require.NoError(t, err)
		said := make(chan error, 100)
		w := client.Worker{Do: func(context.Context, client.Reserved) error { return nil }, OnError: func(err error) { said <- err }}
		stop := startWorker(t, c, w)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, said, 1)
		require.ErrorContains(t, <-said, "no node answered at n1:7300, n2:7300")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, len(said), 5)
		stop()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
