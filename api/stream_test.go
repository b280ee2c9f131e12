package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/internal/addrlimit"
	"tarry/job"
	"tarry/job/jobpb"
)

// streamRig is a handler behind a real port, which streams need.
type streamRig struct {
	*rig
	server   *httptest.Server
	draining atomic.Bool
	drained  chan struct{}
}

func newStreamRig(t *testing.T, change ...func(*Options)) *streamRig {
	s := &streamRig{drained: make(chan struct{})}
	s.rig = newRig(t, append(change, func(o *Options) { o.Draining, o.Drained = s.draining.Load, func() <-chan struct{} { return s.drained } })...)
	s.server = httptest.NewServer(s.handler)
	t.Cleanup(s.server.Close)
	return s
}

func (r *streamRig) add(id, body string) {
	r.t.Helper()
	r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"t","id":%q,"body":%s}`, id, body))
}

// reader is the client's side of a stream.
type reader struct {
	t     *testing.T
	in    *bufio.Reader
	close func()
}

func (r *streamRig) open(query string, header ...string) *reader {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), soon)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/v1/stream?"+query, nil)
	require.NoError(r.t, err)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	a, err := r.server.Client().Do(q)
	require.NoError(r.t, err)
	s := &reader{t: r.t, in: bufio.NewReader(a.Body), close: func() { cancel(); a.Body.Close() }}
	r.t.Cleanup(s.close)
	require.Equal(r.t, http.StatusOK, a.StatusCode)
	return s
}

func (s *reader) line() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err)
	return line
}

// next gives the next event that is no heartbeat.
func (s *reader) next() map[string]any {
	s.t.Helper()
	for {
		var e map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(s.line()), &e))
		if e["event"] != "heartbeat" {
			return e
		}
	}
}

func (s *reader) job() string {
	s.t.Helper()
	e := s.next()
	require.Equal(s.t, "job", e["event"], "%v", e)
	return e["id"].(string)
}

// opened reads the first event.
func (s *reader) opened() *reader {
	s.t.Helper()
	require.Equal(s.t, "open", s.next()["event"])
	return s
}

func (r *streamRig) state(id string) jobpb.State {
	r.t.Helper()
	j, err := r.queue.Job(r.t.Context(), id, false)
	require.NoError(r.t, err)
	return j.State
}

// waits waits until the stream waits for jobs, so that none was ready.
func (r *streamRig) waits() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.queue.Waiting() == 1 }, soon, time.Millisecond)
}

func TestAStreamGivesJobsAsFarAsTheCreditGoes(t *testing.T) {
	r := newStreamRig(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		r.add(id, `"x"`)
	}
	s := r.open("topics=none,t&credit=2&ttr=300").opened()
	first := s.next()
	require.Equal(t, []any{"job", "a", "0-1-1", 300.0, "x"}, []any{first["event"], first["id"], first["token"], first["ttr"], first["body"]})
	require.Equal(t, "b", s.job())
	// Each way to end a reservation lets one job through, and no more: with credit
	// for another, the next end would bring two.
	for _, end := range []struct{ path, body, next string }{
		{"/v1/jobs/a/finish", `{"token":"0-1-1"}`, "c"},
		{"/v1/jobs/b/release", `{"delay":1000}`, "d"},
		{"/v1/jobs/c/bury", `{}`, "e"},
		{"/v1/finish", `{"jobs":[{"token":"0-4-1"}]}`, "f"},
		{"/v1/release", `{"jobs":[{"token":"0-5-1","delay":1000}]}`, "g"},
	} {
		r.ok(end.path, end.body)
		require.Equal(t, end.next, s.job(), end.path)
		topic, err := r.queue.Topic(t.Context(), "t", false)
		require.NoError(t, err)
		require.EqualValues(t, 2, topic.Reserved)
	}
	require.Equal(t, http.StatusOK, r.do(http.MethodDelete, "/v1/jobs/f", "").Code)
	require.Equal(t, "h", s.job())
	r.ok("/v1/jobs/g/touch", `{}`)
	require.Equal(t, jobpb.State_STATE_READY, r.state("i"), "a touch ends nothing")
}

func TestAnOverrunReservationIsCreditAgain(t *testing.T) {
	r := newStreamRig(t)
	r.add("a", `1`)
	s := r.open("topics=t&ttr=0.05").opened()
	require.Equal(t, "a", s.job())
	require.Eventually(t, func() bool { return r.state("a") != jobpb.State_STATE_RESERVED }, soon, time.Millisecond)
	require.Equal(t, "a", s.job(), "it is handed out again")
}

func TestAStreamWaitsForJobs(t *testing.T) {
	r := newStreamRig(t)
	s := r.open("topics=t&credit=5").opened()
	r.waits()
	r.add("late", `"x"`)
	require.Equal(t, "late", s.job())
}

func TestStreamsByPostNameAnyTopic(t *testing.T) {
	r := newStreamRig(t)
	r.ok("/v1/jobs", `{"topic":"a,b","id":"x","body":1}`)
	a, err := r.server.Client().Post(r.server.URL+"/v1/stream", "application/json", strings.NewReader(`{"topics":["a,b"],"credit":3,"heartbeat":20}`))
	require.NoError(t, err)
	defer a.Body.Close()
	s := &reader{t: t, in: bufio.NewReader(a.Body)}
	require.Equal(t, map[string]any{"event": "open", "credit": 3.0, "heartbeat": 20.0}, s.next())
	require.Equal(t, "x", s.job())
}

func TestAStreamTellsTheHistoryWhoAsked(t *testing.T) {
	r := newStreamRig(t)
	r.settings("PUT", "", `{"retain":60}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"x","body":1}`)
	require.Equal(t, "x", r.open("topics=mail&consumer=w-1").opened().job())
	events := decoded(t, r.do("GET", "/v1/jobs/x/history", ""))["events"].([]any)
	require.Equal(t, "w-1", events[1].(map[string]any)["consumer"])
}

func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	r := newStreamRig(t)
	r.add("a", "{\"n\":\n[1,\r\n2]}")
	s := r.open("topics=t&heartbeat=1", "Accept", "text/html, text/event-stream;q=0.9")
	require.Equal(t, "event: open\n", s.line())
	require.Equal(t, "data: {\"event\":\"open\",\"credit\":1,\"heartbeat\":1}\n", s.line())
	require.Equal(t, "\n", s.line())
	require.Equal(t, "event: job\n", s.line())
	data := s.line()
	require.Contains(t, data, `"body":{"n": [1,  2]}`, "one line, whatever the JSON looks like")
	require.Equal(t, "\n", s.line())
	require.Equal(t, ": heartbeat\n", s.line(), "while the credit is used up")
}

func TestHeartbeatsOfAStreamThatWaitsForJobs(t *testing.T) {
	t.Parallel()
	r := newStreamRig(t)
	s := r.open("topics=t&heartbeat=1").opened()
	require.Equal(t, "{\"event\":\"heartbeat\"}\n", s.line())
	require.Equal(t, "{\"event\":\"heartbeat\"}\n", s.line())
	r.waits()
}

func TestAStreamOutlastsALostLeader(t *testing.T) {
	t.Parallel()
	r := newStreamRig(t)
	r.queue.FailNext(job.NotApplied("no leader"), &job.Error{Code: job.CodeOverloaded})
	s := r.open("topics=t").opened()
	r.waits()
	r.add("a", `1`)
	require.Equal(t, "a", s.job())
}

func TestWhatAStreamHoldsWhenItsClientGoes(t *testing.T) {
	for onClose, want := range map[string]jobpb.State{"keep": jobpb.State_STATE_RESERVED, "release": jobpb.State_STATE_READY} {
		t.Run(onClose, func(t *testing.T) {
			r := newStreamRig(t)
			r.add("a", `1`)
			r.add("b", `1`)
			s := r.open("topics=t&credit=10&on_close=" + onClose).opened()
			require.Equal(t, "a", s.job())
			require.Equal(t, "b", s.job())
			r.ok("/v1/jobs/b/finish", `{}`)
			r.waits()
			s.close()
			require.Eventually(t, func() bool { return r.streams() == 0 }, soon, time.Millisecond)
			require.Equal(t, want, r.state("a"))
			j, err := r.queue.Job(t.Context(), "a", false)
			require.NoError(t, err)
			require.EqualValues(t, 1, j.Attempts, "it was delivered")
		})
	}
}

func TestAStreamThatEndsByItself(t *testing.T) {
	r := newStreamRig(t)
	for i := range 5 {
		r.add(fmt.Sprint(i), `1`)
	}
	s := r.open("topics=t&credit=2&max=3").opened()
	for i := range 3 {
		require.Equal(t, fmt.Sprint(i), s.job())
		r.ok("/v1/jobs/"+fmt.Sprint(i)+"/finish", `{}`)
	}
	require.Equal(t, "bye", s.next()["event"])
	_, err := s.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, jobpb.State_STATE_READY, r.state("3"))
}

// streams counts the reservations that are followed and the reserves that wait.
func (r *streamRig) streams() int { return r.queue.Waiting() + r.queue.Watching() }

func TestADrainingNodeSendsItsStreamsAway(t *testing.T) {
	r := newStreamRig(t)
	r.add("a", `1`)
	s := r.open("topics=t&on_close=release").opened()
	require.Equal(t, "a", s.job())
	r.draining.Store(true)
	close(r.drained)
	require.Equal(t, map[string]any{"event": "bye", "reason": "this node stops; use another"}, s.next())
	_, err := s.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, jobpb.State_STATE_RESERVED, r.state("a"), "its consumer is alive and goes on with it")
	refused(t, r.do(http.MethodGet, "/v1/stream?topics=t", ""), 503, job.CodeNotApplied, "stopping")
}

func TestAClientThatDoesNotReadIsLetGo(t *testing.T) {
	t.Parallel()
	r := newStreamRig(t, func(o *Options) { o.Timeout = briefly })
	const jobs = 40
	for i := range jobs {
		r.add(fmt.Sprint(i), `"`+strings.Repeat("x", 900_000)+`"`) // more than the buffers of the system
	}
	conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /v1/stream?topics=t&credit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.released() > 0 && r.streams() == 0 }, soon, time.Millisecond)
	topic, err := r.queue.Topic(t.Context(), "t", false)
	require.NoError(t, err)
	require.Less(t, topic.Reserved, uint64(jobs))
	require.Positive(t, topic.Reserved, "what was written counts as delivered")
	require.Equal(t, uint64(jobs), topic.Reserved+topic.Ready)
}

// released counts the jobs that went back undelivered.
func (r *streamRig) released() (n int) {
	for _, op := range r.queue.Ops() {
		if op.GetRelease().GetUndelivered() {
			n++
		}
	}
	return n
}

func TestStreamsThatAreRefused(t *testing.T) {
	r := newStreamRig(t)
	for query, says := range map[string]string{
		"":                       "topics has 0 names",
		"topics=":                "\"topics\" is empty",
		"topics=a,,b":            "topics[1]",
		"topics=t&credit=0":      "credit is 0; it must be between 1 and 1000",
		"topics=t&credit=1001":   "credit is 1001",
		"topics=t&credit=x":      `credit is "x"`,
		"topics=t&max=0":         "max is 0; it must be at least 1",
		"topics=t&max=1.5":       `max is "1.5"`,
		"topics=t&ttr=0":         "ttr is 0 s",
		"topics=t&ttr=1s":        `ttr is "1s"`,
		"topics=t&heartbeat=0.5": "heartbeat is 0.5 s; it must be at least 1 s",
		"topics=t&heartbeat=301": "heartbeat is 301 s; it must be between 0 and 300 s",
		"topics=t&heartbeat=NaN": "heartbeat is \"NaN\"; it takes a number of seconds",
		"topics=t&on_close=lose": `on_close is "lose"`,
		"topics=t&consumer=" + strings.Repeat("c", 65): "consumer has 65 bytes",
		"topics=t&wait=1":   `"wait" is not known`,
		"topics=t&topics=u": "topics is given 2 times",
	} {
		refused(t, r.do(http.MethodGet, "/v1/stream?"+query, ""), 400, job.CodeInvalid, says)
	}
	refused(t, r.post("/v1/stream", `{"topics":["t"],"wait":1}`), 400, job.CodeInvalid, "wait is not a field")
	refused(t, r.post("/v1/stream?credit=3", `{"topics":["t"]}`), 400, job.CodeInvalid, "not in both")
	require.Equal(t, 405, r.do(http.MethodHead, "/v1/stream?topics=t", "").Code)
}

// An image in a page sends a GET without an Origin; to an address that is not this
// machine's, and without TLS, without Sec-Fetch-Site too.
func TestAForeignPageOpensNoStream(t *testing.T) {
	const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for name, c := range map[string]struct {
		header map[string]string
		opens  bool
	}{
		"a program":              {nil, true},
		"a page of its own":      {map[string]string{"User-Agent": browser, "Sec-Fetch-Site": "same-origin"}, true},
		"the same, old browser":  {map[string]string{"User-Agent": browser, "Origin": "http://example.com"}, true},
		"a foreign page":         {map[string]string{"User-Agent": browser, "Sec-Fetch-Site": "cross-site"}, false},
		"a neighbouring page":    {map[string]string{"User-Agent": browser, "Sec-Fetch-Site": "same-site"}, false},
		"the same, no TLS":       {map[string]string{"User-Agent": browser, "Origin": "http://elsewhere.example"}, false},
		"an image in such a one": {map[string]string{"User-Agent": browser, "Accept": "image/png"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Draining = func() bool { return true } }) // a stream that opens is sent away
			q := httptest.NewRequest(http.MethodGet, "/v1/stream?topics=t", nil)
			for k, v := range c.header {
				q.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(w, q)
			if c.opens {
				refused(t, w, 503, job.CodeNotApplied, "stopping")
			} else {
				refused(t, w, 403, codeCrossOrigin, "another origin")
			}
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	x := &server{Options: Options{Access: access.Everything(), Draining: func() bool { return false }}, streams: streamRoom{addrlimit.New(1, 1), addrlimit.New(5, 5)}}
	ask := func(query string) error {
		return x.stream(&call{s: x, r: httptest.NewRequest(http.MethodGet, "/v1/stream?"+query, nil)})
	}
	require.Equal(t, job.CodeOverloaded, job.CodeOf(ask("topics=t&credit=6")))
	require.Zero(t, x.streams.streams.Held())
	require.True(t, x.streams.streams.Of("").TryAcquire(1))
	require.Equal(t, job.CodeOverloaded, job.CodeOf(ask("topics=t")))
	require.Zero(t, x.streams.credit.Held())
}

// TestTheCostOfIdleStreams: one goroutine of the server's for each connection,
// one that watches it for its end, and nothing in the log.
func TestTheCostOfIdleStreams(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newStreamRig(t, func(o *Options) { o.Registry = registry })
	const streams = 50
	before := runtime.NumGoroutine()
	var conns []net.Conn
	for range streams {
		conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET /v1/stream?topics=t HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Eventually(t, func() bool { return r.queue.Waiting() == streams }, soon, time.Millisecond)
	require.LessOrEqual(t, runtime.NumGoroutine()-before, 2*streams)
	require.Equal(t, map[string]float64{"tarry_streams": streams, "tarry_stream_credit": streams}, gauges(t, registry))
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return r.queue.Waiting() == 0 }, soon, time.Millisecond)
	require.Empty(t, r.queue.Ops())
}

func gauges(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "tarry_stream") {
			got[f.GetName()] = f.Metric[0].Gauge.GetValue()
		}
	}
	return got
}

func TestTheExamplesOfStreaming(t *testing.T) {
	require.GreaterOrEqual(t, runExamples(t, "../docs/streaming.md"), 5, "examples were found")
}
