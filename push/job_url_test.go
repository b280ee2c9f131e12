package push

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// to returns the options of a job with that URL.
func to(url string) *jobpb.JobOptions { return &jobpb.JobOptions{PushUrl: url} }

func TestAJobIsPostedToItsOwnURL(t *testing.T) {
	paths := make(chan string, 10)
	r := newRig(t, func(_ http.ResponseWriter, q *http.Request) {
		require.NotEmpty(t, q.Header.Get("Tarry-Signature"))
		paths <- q.RequestURI
	})
	r.target(func(s *jobpb.TopicSettings) { s.Push.JobUrls = true })
	r.add(&jobpb.Add{Id: "a", Options: to(r.server.URL + "/own?key=1")})
	require.Equal(t, "/own?key=1", <-paths)
	r.add(&jobpb.Add{Id: "b"})
	require.Equal(t, "/hook?x=1", <-paths, "the URL of the topic")
	r.becomes("a", jobpb.State_STATE_NONE)
	r.becomes("b", jobpb.State_STATE_NONE)
}

// A job whose URL is not permitted any more is not posted to another one. It waits like
// after any failed attempt, so that it is posted if the permission comes back.
func TestAJobWhoseURLIsNotPermittedAnyMoreIsPostedNowhere(t *testing.T) {
	posts := atomic.Int32{}
	r := newRig(t, func(http.ResponseWriter, *http.Request) { posts.Add(1) })
	pause := func(s *jobpb.TopicSettings) { s.Backoff = &jobpb.Backoff{DelaysMs: []int64{100}} }
	r.stop()
	r.target(func(s *jobpb.TopicSettings) { s.Push.JobUrls = true })
	r.add(&jobpb.Add{Id: "own", Options: to(r.server.URL + "/own")})
	r.add(&jobpb.Add{Id: "last", Options: to(r.server.URL + "/own"), MaxAttempts: 1})
	r.target(pause)
	r.start()
	j := r.becomes("last", jobpb.State_STATE_DEAD)
	require.Equal(t, "push: it has a push_url, and the push of its topic does not have job_urls", j.Reason)
	require.Eventually(t, func() bool { return r.counted("no_target") >= 2 }, soon, time.Millisecond)
	require.Zero(t, posts.Load())
	r.target(func(s *jobpb.TopicSettings) { s.Push.JobUrls = true; s.Push.Url = ""; pause(s) })
	r.becomes("own", jobpb.State_STATE_NONE)
	r.do(&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: &jobpb.Ref{Id: "last"}}}})
	r.becomes("last", jobpb.State_STATE_NONE)
	require.EqualValues(t, 2, posts.Load())
}

func TestAJobWithoutAnyURLIsPostedNowhere(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	r.add(&jobpb.Add{Id: "a", MaxAttempts: 1})
	r.target(func(s *jobpb.TopicSettings) { s.Push.Url, s.Push.JobUrls = "", true })
	require.Equal(t, "push: it has no push_url, and the push of its topic has no url", r.becomes("a", jobpb.State_STATE_DEAD).Reason)
}

// What a node allows is checked again by the node that posts. An API of another node, or of
// yesterday, may have allowed more.
func TestTheURLOfAJobIsCheckedWhenItIsPosted(t *testing.T) {
	reached := atomic.Int32{}
	internal := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer internal.Close()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", internal.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	r.target(func(s *jobpb.TopicSettings) { s.Push.JobUrls = true })
	host := r.server.Listener.Addr().String()
	for url, reason := range map[string]string{
		internal.URL:                      "which --push-allow does not list",
		"file:///etc/passwd":              "must start with https://host",
		"gopher://" + host:                "must start with https://host",
		"http://me:pw@" + host:            "user name",
		"http://[::ffff:169.254.169.254]": "--push-allow does not list",
		"http://[::1]:1/":                 "--push-allow does not list",
		"http://[fe80::1%25lo]/":          "--push-allow does not list",
		"http://0x7f.1/":                  "--push-allow does not list",
		"http://2130706433/":              "--push-allow does not list",
		"http://127.0.0.1:99999/":         "for a port",
		"http://127.0.0.1\r\nHost: x/":    "is no URL",
		r.server.URL + "/redirects":       "redirects are not followed",
	} {
		r.add(&jobpb.Add{Id: "a", MaxAttempts: 1, Options: to(url)})
		require.Contains(t, r.becomes("a", jobpb.State_STATE_DEAD).Reason, reason, url)
		r.do(&jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: "a"}}}})
	}
	require.Zero(t, reached.Load())
}
