package push

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is how long a test waits for what must happen.
const soon = time.Minute

const secret = "a secret of enough bytes"

// rig pushes the jobs of topic "t" to a server of the test.
type rig struct {
	t      *testing.T
	queue  *apitest.Queue
	server *httptest.Server
	pusher *Pusher
	stop   func() // ends Run and waits for it
}

func newRig(t *testing.T, h http.HandlerFunc) *rig { return newRigAllowing(t, "127.0.0.1", h) }

// newRigAllowing allows the host on the port of the server.
func newRigAllowing(t *testing.T, host string, h http.HandlerFunc) *rig {
	server := httptest.NewServer(h)
	r := newRigWith(t, strings.Replace(server.Listener.Addr().String(), "127.0.0.1", host, 1))
	r.server = server
	t.Cleanup(server.Close)
	return r
}

// newRigWith has no server, and the destinations of a list.
func newRigWith(t *testing.T, list string) *rig {
	r := &rig{t: t, queue: apitest.New(t), pusher: New(Options{Allow: parse(t, list)})}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

// start begins to push.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { r.pusher.Run(ctx, r.queue); close(done) }()
	r.stop = func() { cancel(); <-done }
}

func (r *rig) do(ops ...*jobpb.Op) {
	r.t.Helper()
	results, err := r.queue.Do(r.t.Context(), ops)
	require.NoError(r.t, err)
	for _, res := range results {
		require.NoError(r.t, job.ResultError(res))
	}
}

// target sets the topic's target, changed by change, and starts the push.
func (r *rig) target(change func(*jobpb.TopicSettings)) {
	s := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Url: r.server.URL + "/hook?x=1", Secret: secret}}
	if change != nil {
		change(s)
	}
	r.do(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: s}}})
}

func (r *rig) add(a *jobpb.Add) {
	a.Topic = "t"
	if a.TtrMs == 0 {
		a.TtrMs = 60_000
	}
	r.do(&jobpb.Op{Kind: &jobpb.Op_Add{Add: a}})
}

// becomes waits until a job is in the state and returns it; nil: it does not exist.
func (r *rig) becomes(id string, state jobpb.State) (j *jobpb.Job) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		var err error
		j, err = r.queue.Job(context.Background(), id, false)
		if job.CodeOf(err) == job.CodeNotFound {
			return state == jobpb.State_STATE_NONE
		}
		return err == nil && j.State == state
	}, soon, time.Millisecond, "%v", j)
	return j
}

// counted returns how many posts had the outcome.
func (r *rig) counted(outcome string) float64 { return r.metric("tarry_pushes_total", outcome) }

// metric returns the value of a metric; label is "" if it has none.
func (r *rig) metric(name, label string) float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.pusher)
	families, err := registry.Gather()
	require.NoError(r.t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (len(m.Label) == 0 || m.Label[0].GetValue() == label) {
				return m.Counter.GetValue() + m.Gauge.GetValue() // it is one of them
			}
		}
	}
	return 0
}

func TestAJobIsPostedSignedAndFinished(t *testing.T) {
	type seen struct {
		header http.Header
		uri    string
		body   string
	}
	posts := make(chan seen, 10)
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		posts <- seen{q.Header, q.RequestURI, string(body)}
		w.WriteHeader(http.StatusNoContent)
	})
	r.target(nil)
	r.add(&jobpb.Add{Id: "a/ü", Body: []byte(`{"n":1}`), BodyKind: jobpb.BodyKind_BODY_JSON})
	p := <-posts
	require.Equal(t, []string{"/hook?x=1", `{"n":1}`}, []string{p.uri, p.body})
	require.Equal(t, []string{"a%2F%C3%BC", "t", "1", "application/json"},
		[]string{p.header.Get("Tarry-Job-Id"), p.header.Get("Tarry-Topic"), p.header.Get("Tarry-Attempt"), p.header.Get("Content-Type")})
	due, err := time.Parse(time.RFC3339, p.header.Get("Tarry-Due"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), due, time.Minute)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s\n%s\n%s", p.header.Get("Tarry-Timestamp"), "a%2F%C3%BC", p.body)
	require.Equal(t, "v1="+hex.EncodeToString(mac.Sum(nil)), p.header.Get("Tarry-Signature"))
	r.becomes("a/ü", jobpb.State_STATE_NONE)
	topic, err := r.queue.Topic(t.Context(), "t", false)
	require.NoError(t, err)
	require.EqualValues(t, 1, topic.Finished)
	r.add(&jobpb.Add{Id: "b", Body: []byte{0xff}})
	require.Equal(t, "application/octet-stream", (<-posts).header.Get("Content-Type"))
	r.becomes("b", jobpb.State_STATE_NONE)
	require.EqualValues(t, 2, r.counted("taken"))
}

// A node that no longer leads posts no jobs, as its metric shows.
func TestTheTopicsArePostedByTheLeaderAlone(t *testing.T) {
	posts := make(chan struct{}, 1)
	r := newRig(t, func(http.ResponseWriter, *http.Request) { posts <- struct{}{} })
	r.target(nil)
	r.add(&jobpb.Add{Id: "a"})
	<-posts
	require.Eventually(t, func() bool { return r.metric("tarry_push_topics", "") == 1 }, soon, time.Millisecond, "it is counted once it posts")
	r.stop()
	require.Zero(t, r.metric("tarry_push_topics", ""))
}

// hang blocks until the client disconnects.
func hang(q *http.Request) {
	_, _ = io.Copy(io.Discard, q.Body) // else the server does not notice
	<-q.Context().Done()
}

func TestPostsThatFail(t *testing.T) {
	elsewhere := atomic.Int32{}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		delay  int64 // in ms at least; the default is a second less a tenth
		reason string
		label  string
	}{
		"503": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			http.Error(w, "down for\n\x00 repair"+strings.Repeat(".", 9000), http.StatusServiceUnavailable)
		}, 120_000, "push: 503 Service Unavailable: down for repair...", "5xx"},
		"404": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 900, "push: 404 Not Found", "4xx"},
		"insane": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999")
			w.WriteHeader(429)
		}, 900, "push: 429 Too Many Requests", "4xx"},
		"redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(307)
		}, 900, "push: 307 Temporary Redirect; redirects are not followed", "redirect"},
		"silent": {func(_ http.ResponseWriter, q *http.Request) { hang(q) }, 900, "push: no answer within 200ms", "timeout"},
		"broken": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 900, "push: the target closed the connection without a reply", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.answer)
			r.add(&jobpb.Add{Id: "a"})
			r.target(func(s *jobpb.TopicSettings) { s.Push.TimeoutMs = 200 })
			j := r.becomes("a", jobpb.State_STATE_DELAYED)
			require.True(t, strings.HasPrefix(j.Reason, c.reason), j.Reason)
			require.Equal(t, []uint32{1, 1}, []uint32{j.Attempts, j.Releases})
			require.GreaterOrEqual(t, j.DelayMs, c.delay)
			require.LessOrEqual(t, j.DelayMs, max(c.delay, 1000))
			require.Positive(t, r.counted(c.label))
		})
	}
	require.Zero(t, elsewhere.Load(), "the redirect was not followed")
}

// The job's owner need not know the operator's network; the node's log has it.
func TestWhyThereIsNoReplyIsForTheOperatorOnly(t *testing.T) {
	var log bytes.Buffer
	for reason, err := range map[string]error{
		"the target's name cannot be resolved":                  &net.DNSError{Err: "no such host", Name: "db.internal", Server: "10.0.0.53:53"},
		"the target refused the connection":                     &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 1}, Err: syscall.ECONNREFUSED},
		"the target's certificate is not accepted":              &tls.CertificateVerificationError{Err: errors.New("valid for db.internal")},
		"the target cannot be reached":                          errors.New("10.1.2.3: no route to host"),
		"the target's address may not be reached: --push-allow": &blockedError{"10.1.2.3:1"},
	} {
		c := &consumer{p: &Pusher{log: slog.New(slog.NewTextHandler(&log, nil))}}
		o := failed(t.Context(), &url.Error{Op: "Post", URL: "https://db/?key=secret", Err: fmt.Errorf("post: %w", err)}, time.Second)
		require.Contains(t, o.reason, "push: "+reason)
		require.NotContains(t, o.reason, "10.")
		require.NotContains(t, o.reason, "internal")
		for range 3 {
			c.explain(o, "db:443", time.Now())
		}
		require.Equal(t, 1, strings.Count(log.String(), err.Error()), "once a minute")
	}
	require.NotContains(t, log.String(), "secret")
}

func TestAJobThatIsNeverTakenDies(t *testing.T) {
	posts := atomic.Int32{}
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { posts.Add(1); w.WriteHeader(500) })
	r.add(&jobpb.Add{Id: "a", MaxAttempts: 3})
	r.target(func(s *jobpb.TopicSettings) { s.Backoff = &jobpb.Backoff{DelaysMs: []int64{10}} })
	j := r.becomes("a", jobpb.State_STATE_DEAD)
	require.Equal(t, "push: 500 Internal Server Error", j.Reason)
	require.EqualValues(t, 3, posts.Load())
}

func TestAnInternalTargetIsNotReached(t *testing.T) {
	posts := atomic.Int32{}
	r := newRigAllowing(t, "localhost", func(http.ResponseWriter, *http.Request) { posts.Add(1) })
	r.add(&jobpb.Add{Id: "a"})
	r.target(func(s *jobpb.TopicSettings) { s.Push.Url = strings.Replace(r.server.URL, "127.0.0.1", "localhost", 1) })
	require.Contains(t, r.becomes("a", jobpb.State_STATE_DELAYED).Reason, "--push-allow does not list it")
	require.Zero(t, posts.Load())
}

func TestConcurrencyOfATargetIsBounded(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	gate := make(chan struct{})
	r := newRig(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-gate
		mu.Lock()
		now--
		mu.Unlock()
	})
	for i := range 20 {
		r.add(&jobpb.Add{Id: fmt.Sprint(i)})
	}
	r.target(func(s *jobpb.TopicSettings) { s.Push.Concurrency = 3 })
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return now == 3 }, soon, time.Millisecond)
	topic, err := r.queue.Topic(t.Context(), "t", false)
	require.NoError(t, err)
	require.EqualValues(t, 3, topic.Reserved, "no more is taken than is posted")
	close(gate)
	for i := range 20 {
		r.becomes(fmt.Sprint(i), jobpb.State_STATE_NONE)
	}
	require.Equal(t, 3, most)
	require.Eventually(t, func() bool { return r.pusher.posts.TryAcquire(MaxPosts) }, soon, time.Millisecond, "every place is free again")
}

func TestATargetIsChangedAndRemoved(t *testing.T) {
	paths := make(chan string, 10)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) { paths <- q.URL.Path })
	r.target(nil)
	r.add(&jobpb.Add{Id: "a"})
	require.Equal(t, "/hook", <-paths)
	r.target(func(s *jobpb.TopicSettings) { s.Push.Url = r.server.URL + "/other" })
	require.Eventually(t, func() bool {
		r.add(&jobpb.Add{})
		return <-paths == "/other"
	}, soon, time.Millisecond)
	r.do(&jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t"}}})
	require.Eventually(t, func() bool { return r.queue.Waiting() == 0 }, soon, time.Millisecond)
	r.add(&jobpb.Add{Id: "b"})
	require.Equal(t, jobpb.State_STATE_READY, r.becomes("b", jobpb.State_STATE_READY).State)
}

func TestLosingTheLeadershipEndsPostsAtOnce(t *testing.T) {
	began := make(chan struct{}, 1)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) {
		began <- struct{}{}
		hang(q)
	})
	r.add(&jobpb.Add{Id: "a"})
	r.target(nil)
	<-began
	r.stop()
	j := r.becomes("a", jobpb.State_STATE_RESERVED)
	require.Less(t, j.ReservedUntilMs, time.Now().Add(time.Minute).UnixMilli(), "it comes back before long")
}

func TestWriteOfAnOutcomeIsRetriedWithoutALeader(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	c := &consumer{p: r.pusher, q: r.queue, topic: "t"}
	r.queue.FailNext(job.NotApplied("no leader"), job.NotApplied("no leader"))
	before := len(r.queue.Ops())
	c.write(t.Context(), &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: 9}}}})
	require.Len(t, r.queue.Ops(), before+1)
	r.queue.FailNext(job.Unknown("lost"), errors.New("must not be asked for"))
	c.write(t.Context(), &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: 9}}}})
	require.Len(t, r.queue.Ops(), before+1, "an unknown outcome is left alone")
	_, err := r.queue.Do(t.Context(), nil)
	require.ErrorContains(t, err, "must not")
}
