package clienttest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
	"tarry/job"
)

func TestAFinishTakesTheNextJobInOneCall(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	for _, id := range []string{"a", "b"} {
		mustAdd(t, c, client.NewJob{ID: id, Topic: "t", Body: client.Text(id)})
	}
	r := client.ReserveOptions{Topics: []string{"t"}}
	first := mustReserve(t, c, "t")[0].Ref()
	jobs, finished, err := c.FinishAndReserve(t.Context(), []client.Ref{first}, r)
	require.NoError(t, err)
	require.Equal(t, []error{nil}, finished)
	require.Equal(t, "b", jobs[0].ID)

	second := jobs[0].Ref()
	jobs, finished, err = c.FinishAndReserve(t.Context(), []client.Ref{first, second}, r)
	require.NoError(t, err)
	require.ErrorIs(t, finished[0], client.CodeNotFound)
	require.NoError(t, finished[1])
	require.Empty(t, jobs)

	_, _, err = c.FinishAndReserve(t.Context(), nil, r)
	require.Error(t, err)
	_, _, err = c.FinishAndReserve(t.Context(), []client.Ref{{ID: "a", Token: "x"}}, r)
	require.ErrorIs(t, err, client.CodeInvalidArgument)
}

func TestAFinishWhoseReplyWasLostIsFinished(t *testing.T) {
	h := api.New(api.Options{Queue: apitest.New(t), Operator: &apitest.Operator{}})
	var lose atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lose.CompareAndSwap(true, false) {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	c := connect(t, s.Listener.Addr().String())
	for _, id := range []string{"a", "b", "c"} {
		mustAdd(t, c, client.NewJob{ID: id, Topic: "t", Body: client.Text(id)})
	}
	first := mustReserve(t, c, "t")[0].Ref()
	lose.Store(true)
	jobs, finished, err := c.FinishAndReserve(t.Context(), []client.Ref{first}, client.ReserveOptions{Topics: []string{"t"}})
	require.NoError(t, err)
	require.Equal(t, []error{nil}, finished, "the second attempt finds no job because the first has finished it")
	require.Equal(t, "c", jobs[0].ID, "b is reserved by the attempt whose reply was lost, until its lease expires")
}

// A node that drains replies early. The finishes are done by then, whatever becomes of the rest
// of the wait.
func TestAWaitAfterAFinishDoesNotFail(t *testing.T) {
	q := apitest.New(t)
	var draining atomic.Bool
	h := api.New(api.Options{Queue: q, Operator: &apitest.Operator{}, Draining: draining.Load})
	var finishes atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drains := draining.Load() // the client may have the reply before ServeHTTP returns
		h.ServeHTTP(w, r)
		if drains && r.URL.Path == "/v1/reserve" && finishes.Add(1) == 1 {
			q.FailNext(job.Errorf(job.CodeInvalid, "it is refused"))
		}
	}))
	defer s.Close()
	c := connect(t, s.Listener.Addr().String())
	mustAdd(t, c, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x")})
	first := mustReserve(t, c, "t")[0].Ref()
	draining.Store(true)
	jobs, finished, err := c.FinishAndReserve(t.Context(), []client.Ref{first}, client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
	require.NoError(t, err)
	require.Equal(t, []error{nil}, finished)
	require.Empty(t, jobs)
}

func TestAWorkerWithWorkMakesOneCallAJob(t *testing.T) {
	h := api.New(api.Options{Queue: apitest.New(t), Operator: &apitest.Operator{}})
	var mu sync.Mutex
	calls := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method == http.MethodPost {
			calls[r.URL.Path]++
		}
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	c := connect(t, s.Listener.Addr().String())
	const jobs = 20
	for range jobs {
		mustAdd(t, c, client.NewJob{Topic: "t", Body: client.Text("x")})
	}
	var done atomic.Int32
	stop := startWorker(t, c, client.Worker{Do: func(_ context.Context, j client.Reserved) error {
		done.Add(1)
		return nil
	}})
	eventually(t, func() bool {
		stats, err := c.Topics().Stats(t.Context())
		return err == nil && done.Load() == jobs && stats.Reserved == 0
	}, "all jobs are finished")
	stop()
	mu.Lock()
	defer mu.Unlock()
	delete(calls, "/v1/jobs")
	for path := range calls {
		require.True(t, strings.HasPrefix(path, "/v1/reserve"), "the worker calls nothing else: %s", path)
	}
	require.LessOrEqual(t, calls["/v1/reserve"], jobs+2, "one before the first job, one for each, and the wait after the last")
}

func TestAWorkersFinishWaitsShortlyForTheNextJob(t *testing.T) {
	waits := make(chan float64, 1)
	var calls atomic.Int32
	c := replying(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r) // it asks for the other nodes
			return
		}
		var in struct{ Wait float64 }
		body, _ := io.ReadAll(r.Body) // to its end, or the server does not see the client hang up
		_ = json.Unmarshal(body, &in)
		switch calls.Add(1) {
		case 1:
			_, _ = io.WriteString(w, `{"success":true,"jobs":[{"id":"a","token":"0-1-1","topic":"t","ttr":60,"body":"x"}]}`)
		case 2:
			waits <- in.Wait
			_, _ = io.WriteString(w, `{"success":true,"finished":[{"success":true,"id":"a","state":"gone"}],"jobs":[]}`)
		default:
			<-r.Context().Done()
		}
	})
	startWorker(t, c, client.Worker{Do: func(context.Context, client.Reserved) error { return nil }})
	wait := <-waits
	require.Greater(t, wait, 0.0, "what falls due meanwhile comes with the finish")
	require.LessOrEqual(t, wait, 0.05, "the place must soon be free for a reserve of several")
}
