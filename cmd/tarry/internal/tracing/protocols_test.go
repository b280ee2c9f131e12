package tracing

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/api/beanstalk"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/push"
)

const soon = 30 * time.Second

func TestAPostIsASpanWhoseContextIsSent(t *testing.T) {
	r := newRig(t)
	status := make(chan int, 1)
	sent := make(chan string, 2)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		sent <- q.Header.Get("traceparent")
		w.WriteHeader(<-status)
	}))
	defer target.Close()
	allow, err := push.ParseAllow(target.Listener.Addr().String())
	require.NoError(t, err)
	pusher := push.New(push.Options{Allow: allow, Trace: r.tracer.Post})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { pusher.Run(ctx, r.traced); close(done) }()
	defer func() { cancel(); <-done }()

	settings := &jobpb.TopicSettings{Push: &jobpb.PushTarget{Url: target.URL + "/hook?key=secret", Secret: "a secret of enough bytes"}, Backoff: &jobpb.Backoff{DelaysMs: []int64{1}}}
	_, err = r.traced.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: settings}}}})
	require.NoError(t, err)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`, parent)
	status <- http.StatusInternalServerError
	first := <-sent
	status <- http.StatusNoContent
	second := <-sent
	require.Eventually(t, func() bool {
		_, err := job.Reads{Reader: r.queue}.Job(t.Context(), "a", false)
		return job.CodeOf(err) == job.CodeNotFound
	}, soon, time.Millisecond)
	cancel()
	<-done
	spans := r.close()
	require.Equal(t, map[string]string{
		"add t": callers, "due t": "add t", "reserve t": "add t", "push t": "reserve t", "release t": "reserve t",
		"reserve t #2": "add t", "push t #2": "reserve t #2", "finish t": "reserve t #2",
	}, tree(t, spans, traceID))
	require.Equal(t, "00-"+traceID+"-"+spans["push t"].id+"-01", first)
	require.Equal(t, "00-"+traceID+"-"+spans["push t #2"].id+"-01", second)
	one := spans["push t"]
	require.Equal(t, "client", one.kind)
	require.Contains(t, one.status, "500")
	require.Equal(t, "500", one.attributes["http.response.status_code"])
	require.Equal(t, "127.0.0.1", one.attributes["server.address"])
	for name, value := range one.attributes {
		require.NotContains(t, value, "secret", name)
	}
	require.Empty(t, spans["push t #2"].status)
}

func TestAPostWithoutATraceHasNoSpan(t *testing.T) {
	r := newRig(t)
	parent, end := r.tracer.Post(&jobpb.Reserved{Id: "a", Topic: "t"}, "http://h/")
	require.Empty(t, parent)
	end(200, "")
	require.Empty(t, r.close())
}

// session sends lines of the beanstalkd protocol to a server of the queue, and returns all
// that it replies.
func session(t *testing.T, q Queue, lines string) string {
	server := beanstalk.New(beanstalk.Options{Queue: q, Logger: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	defer func() {
		require.NoError(t, server.Shutdown(t.Context()))
		require.ErrorIs(t, <-done, beanstalk.ErrClosed)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, lines)
	require.NoError(t, err)
	said, err := io.ReadAll(c) // until the server closes it, after quit
	require.NoError(t, err)
	return string(said)
}

func TestBeanstalkdClientsSeeNothingOfTraces(t *testing.T) {
	const lines = "put 1 0 10 5\r\nhello\r\nput 2 0 10 2\r\nhi\r\nreserve\r\nreserve\r\nrelease 1 1 0\r\nbury 2 5\r\npeek-ready\r\npeek-buried\r\n" +
		"kick 1\r\nreserve\r\ndelete 1\r\ndelete 2\r\ndelete 2\r\nquit\r\n"
	r := newRig(t)
	plain := session(t, apitest.New(t), lines)
	require.Contains(t, plain, "RESERVED 1 5\r\nhello\r\n")
	require.Equal(t, plain, session(t, r.traced, lines))
	spans := r.close()
	require.Equal(t, "reserve default", spans["release default"].parent)
	require.Equal(t, "reserve default #2", spans["bury default"].parent)
	require.Equal(t, "reserve default #3", spans["delete default"].parent)
	require.Equal(t, spans["add default #2"].trace, spans["delete default #2"].trace, "a job that nobody has reserved")
}
