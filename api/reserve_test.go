package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// soon ends a wait for what never happens, on machines of any load.
	soon = time.Minute
	// briefly is a time limit of a server that tests outlast. A request that does not wait must
	// fit in it on a busy machine.
	briefly = 2 * time.Second
)

func addOne(t *testing.T, q *apitest.Queue) {
	t.Helper()
	_, err := q.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", TtrMs: 60_000, MaxAttempts: 1}}}})
	require.NoError(t, err)
}

func TestAWaitingReserveGetsTheJob(t *testing.T) {
	r := newRig(t)
	got := make(chan *httptest.ResponseRecorder, 1)
	go func() { got <- r.post("/v1/reserve", `{"topics":["t"],"wait":60}`) }()
	require.Eventually(t, func() bool { return r.queue.Waiting() == 1 }, soon, time.Millisecond)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":""}`)
	w := <-got
	require.Contains(t, w.Body.String(), `"id":"a"`)
	require.Equal(t, []any{}, r.ok("/v1/reserve", `{"topics":["t"],"wait":0.01}`)["jobs"])
}

func TestAClientThatHangsUpEndsTheWait(t *testing.T) {
	q := apitest.New(t)
	s := httptest.NewServer(New(Options{Queue: q, Operator: &apitest.Operator{}}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/reserve", strings.NewReader(`{"topics":["t"],"wait":60}`))
		if err == nil {
			_, err = s.Client().Do(r)
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return q.Waiting() == 1 }, soon, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return q.Waiting() == 0 }, soon, time.Millisecond)
}

// lateQueue hands its jobs out only once the client is gone.
type lateQueue struct {
	*apitest.Queue
	gone chan struct{}
}

func (q *lateQueue) Reserve(ctx context.Context, r *jobpb.Reserve, _ time.Duration) ([]*jobpb.Reserved, error) {
	jobs, err := q.Queue.Reserve(context.WithoutCancel(ctx), r, 0)
	close(q.gone)
	<-ctx.Done()
	return jobs, err
}

func TestJobsOfAClientThatHungUpGoBack(t *testing.T) {
	q := &lateQueue{apitest.New(t), make(chan struct{})}
	addOne(t, q.Queue)
	h := New(Options{Queue: q, Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-q.gone; cancel() }()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/v1/reserve", strings.NewReader(`{"topics":["t"]}`)))
	wentBack(t, q.Queue)
}

// wentBack checks that the one attempt of the one job was taken back.
func wentBack(t *testing.T, q *apitest.Queue) {
	t.Helper()
	j, err := q.Job(t.Context(), "a", false)
	require.NoError(t, err)
	require.Equal(t, []any{jobpb.State_STATE_READY, uint32(0), uint32(0)}, []any{j.State, j.Attempts, j.Reserves})
}

// brokenWriter is a connection that broke while it was idle.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestJobsOfAnAnswerThatCouldNotBeSentGoBack(t *testing.T) {
	for _, body := range []string{`{"topics":["t"]}`, `{"command":"pop","topic":"t"}`} {
		r := newRig(t)
		addOne(t, r.queue)
		path := "/v1/reserve"
		if strings.Contains(body, "pop") {
			path = "/"
		}
		r.handler.ServeHTTP(brokenWriter{httptest.NewRecorder()}, httptest.NewRequest("POST", path, strings.NewReader(body)))
		wentBack(t, r.queue)
	}
}

// TestALongPollOutlivesTheServersDeadlines waits longer than the server allows
// for reading and writing one request.
func TestALongPollOutlivesTheServersDeadlines(t *testing.T) {
	t.Parallel()
	q := apitest.New(t)
	s := httptest.NewUnstartedServer(New(Options{Queue: q, Operator: &apitest.Operator{}, Timeout: briefly}))
	s.Config.ReadTimeout, s.Config.WriteTimeout = briefly, briefly
	s.Start()
	defer s.Close()
	answer, err := s.Client().Post(s.URL+"/v1/reserve", "", strings.NewReader(`{"topics":["t"],"wait":2.5}`))
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
}

// TestAnIdleConnectionStaysUsable outlasts the deadlines that its requests set.
func TestAnIdleConnectionStaysUsable(t *testing.T) {
	t.Parallel()
	q := apitest.New(t)
	s := httptest.NewServer(New(Options{
		Queue: q, Operator: &apitest.Operator{}, Timeout: briefly,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
	}))
	defer s.Close()
	post := func(path, body string) {
		t.Helper()
		answer, err := s.Client().Post(s.URL+path, "", strings.NewReader(body))
		require.NoError(t, err)
		require.Less(t, answer.StatusCode, 300)
		require.NoError(t, answer.Body.Close())
	}
	post("/v1/jobs", `{"topic":"t","body":""}`)
	post("/v1/reserve", `{"topics":["t"]}`)
	post("/v1/reserve", `{"topics":["t"],"wait":0.1}`)
	<-time.After(briefly + time.Second/2)
	post("/metrics", "")
	<-time.After(briefly + time.Second/2)
	post("/v1/jobs", `{"topic":"t","body":""}`)
}

func TestAClientThatStopsSendingIsLetGo(t *testing.T) {
	q := apitest.New(t)
	s := httptest.NewServer(New(Options{Queue: q, Operator: &apitest.Operator{}, Timeout: 30 * time.Millisecond}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
	_, err = io.WriteString(conn, "POST /v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n{\"jobs\":[")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "408 Request Timeout")
	require.Contains(t, string(answer), "did not arrive in time")
	require.Contains(t, string(answer), "Connection: close")
}

// drainingQueue begins to drain when it is first asked, and gives up its waits.
type drainingQueue struct {
	*apitest.Queue
	draining atomic.Bool
}

func (q *drainingQueue) Reserve(context.Context, *jobpb.Reserve, time.Duration) ([]*jobpb.Reserved, error) {
	q.draining.Store(true)
	return nil, job.NotApplied("this node is stopping")
}

func TestReservesOfADrainingNode(t *testing.T) {
	q := &drainingQueue{Queue: apitest.New(t)}
	r := newRig(t, func(o *Options) { o.Queue, o.Draining = q, q.draining.Load })
	require.Empty(t, r.ok("/v1/reserve", `{"topics":["t"],"wait":10}`)["jobs"], "a wait that the drain cut short found nothing")
	refused(t, r.post("/v1/reserve", `{"topics":["t"],"wait":10}`), 503, job.CodeNotApplied, "stopping")
}

func TestTheCommandProtocol(t *testing.T) {
	r := newRig(t)
	r.ok("/", `{"COMMAND":"add","Topic":"t","ID":"a","TTR":5,"Body":{"n":1},"Max_Attempts":2}`)
	r.ok("/", `{"command":"add","topic":"t","id":"","token":"","priority":1,"body":"b"}`)
	a := r.ok("/", `{"command":"pop","topic":"t","count":5,"id":"","delay":0,"body":""}`)
	jobs := a["jobs"].([]any)
	require.Len(t, jobs, 2)
	require.Equal(t, "$0-2", a["id"])
	require.Equal(t, "b", a["value"])
	second := jobs[1].(map[string]any)
	require.Equal(t, []any{"a", map[string]any{"n": 1.0}, "0-1-1"}, []any{second["id"], second["value"], second["token"]})
	refused(t, r.post("/", `{"command":"finish","id":"a","token":"0-1-2"}`), 409, job.CodeStaleToken, "has ended")
	r.ok("/", `{"command":"finish","id":"a","token":"0-1-1"}`)
	r.ok("/", `{"command":"delete","id":"$0-2"}`)

	r.ok("/v1/jobs", `{"topic":"t","body_base64":"/w=="}`)
	a = r.ok("/", `{"command":"pop","topic":"t"}`)
	require.Equal(t, "/w==", a["value_base64"])
	require.NotContains(t, a, "jobs")
}

// TestAnswersTakeTheirRoomBesideRequests: what a node may not hold goes back to
// the queue, and the attempt is not counted.
func TestAnswersTakeTheirRoomBesideRequests(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBufferedBytes = 3_000 })
	for _, id := range []string{"a", "b", "c"} {
		r.ok("/v1/jobs", `{"topic":"t","id":"`+id+`","body":"`+strings.Repeat("x", 600)+`"}`)
	}
	refused(t, r.post("/v1/reserve", `{"topics":["t"],"max":3}`), http.StatusTooManyRequests, job.CodeOverloaded, "may")
	for range 3 {
		jobs := r.ok("/v1/reserve", `{"topics":["t"],"max":1}`)["jobs"].([]any)
		require.Len(t, jobs, 1)
		require.EqualValues(t, 1, jobs[0].(map[string]any)["attempts"])
	}
}
