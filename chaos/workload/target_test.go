package workload

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/chaos/history"
)

// targetRig is a target and a client that posts like a node.
type targetRig struct {
	*testing.T
	target *Target
	client *http.Client
}

func newTargetRig(t *testing.T) *targetRig {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &targetRig{T: t, target: NewTarget(l, history.NewRecorder(), 7, 1), client: &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		require.NoError(t, r.target.Close())
	})
	return r
}

// post posts a job and returns the status and the reply; 0: none.
func (r *targetRig) post(id string, attempt int, change func(*http.Request)) (int, string) {
	r.client.Timeout = pushTimeout
	to := r.target.url(OwnURLs)
	if r.target.hasOwnURL(OwnURLs, id) {
		to = r.target.jobURL(id)
	}
	q, err := http.NewRequest(http.MethodPost, to, strings.NewReader("body"))
	require.NoError(r, err)
	sent := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(pushSecret))
	fmt.Fprintf(mac, "%s\n%s\nbody", sent, id)
	for name, value := range map[string]string{
		"Content-Type": "application/octet-stream", "Tarry-Job-Id": id, "Tarry-Topic": "hooks", "Tarry-Attempt": fmt.Sprint(attempt),
		"Tarry-Due": "2026-11-22T01:02:03.004Z", "Tarry-Timestamp": sent, "Tarry-Signature": "v1=" + hex.EncodeToString(mac.Sum(nil)),
		"Tarry-Header-note": "a note",
	} {
		q.Header.Set(name, value)
	}
	if change != nil {
		change(q)
	}
	answer, err := r.client.Do(q)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	return answer.StatusCode, string(text)
}

// posts closes the target and returns what it recorded.
func (r *targetRig) posts() []history.Op {
	require.NoError(r, r.target.Close())
	return r.target.rec.Ops()
}

// id returns a job whose first attempt gets a reply with the status; 0: none.
func (r *targetRig) id(status int, hangs bool) string {
	for n := 0; ; n++ {
		id := fmt.Sprint("job-", n)
		if r.target.choose(id, 1) == (choice{status, hangs}) && !r.target.refuses(id) {
			return id
		}
	}
}

func TestAPostIsRecorded(t *testing.T) {
	r := newTargetRig(t)
	status, _ := r.post(r.id(200, false), 1, nil)
	require.Equal(t, 200, status)
	op := r.posts()[0]
	require.Equal(t, history.Deliver, op.Kind)
	require.Equal(t, []string{r.id(200, false), "hooks", "body", "a note"}, []string{op.ID, op.Topic, op.Body, op.Header})
	require.Equal(t, 1, op.Attempts)
	require.Equal(t, time.Date(2026, 11, 22, 1, 2, 3, 4e6, time.UTC).UnixMicro(), op.Due)
	require.Empty(t, op.Post.Flaw)
	require.Equal(t, 200, op.Post.Status)
	require.GreaterOrEqual(t, op.Post.Answered, op.Complete)
}

func TestDefectsOfPostsAreDetected(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	for name, change := range map[string]func(*http.Request){
		"method":       func(q *http.Request) { q.Method = http.MethodPut },
		"signature":    func(q *http.Request) { q.Body = io.NopCloser(strings.NewReader("BODY")) },
		"the id":       set("Tarry-Job-Id", ""),
		"topic":        set("Tarry-Topic", "webhooks"),
		"attempt":      set("Tarry-Attempt", "first"),
		"due instant":  set("Tarry-Due", ""),
		"timestamp":    set("Tarry-Timestamp", fmt.Sprint(time.Now().Unix()+100)),
		"content type": set("Content-Type", "application/json"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newTargetRig(t)
			r.post("a", 1, change)
			require.Contains(t, r.posts()[0].Post.Flaw, name)
		})
	}
}

func TestAPostToAnotherURLThanTheJobsIsDetected(t *testing.T) {
	r := newTargetRig(t)
	own, none := "", ""
	for n := 0; own == "" || none == ""; n++ {
		if id := fmt.Sprint("job-", n); r.target.hasOwnURL(OwnURLs, id) {
			own = id
		} else {
			none = id
		}
	}
	to := func(path string) func(*http.Request) { return func(q *http.Request) { q.URL.Path = path } }
	r.post(own, 1, nil)
	r.post(none, 1, nil)
	r.post(own, 2, to("/"+OwnURLs))
	r.post(own, 3, to("/job/"+none))
	r.post(none, 2, to("/job/"+none))
	for i, op := range r.posts() {
		require.Equal(t, i >= 2, op.Post.Flaw != "", "%d: %s", i, op.Post.Flaw)
	}
}

func TestOnlyAReplyBeforeTheNextPostOnItsConnectionIsCertainlyRead(t *testing.T) {
	r := newTargetRig(t)
	for _, id := range []string{r.id(503, false), r.id(200, false), r.id(0, false)} {
		r.post(id, 1, nil)
	}
	r.post(r.id(201, false), 1, nil) // over another connection: the last was closed
	var read []bool
	for _, op := range r.posts() {
		read = append(read, op.Post.Read)
	}
	require.Equal(t, []bool{true, true, false, false}, read)
}

func TestRepliesOfATarget(t *testing.T) {
	r := newTargetRig(t)
	status, _ := r.post(r.id(0, true), 1, nil)
	require.Zero(t, status, "no answer in time")
	status, text := r.post(r.id(503, false), 1, nil)
	require.Equal(t, 503, status)
	status, _ = r.post(r.id(302, false), 1, nil)
	require.Equal(t, 302, status)
	ops := r.posts()
	require.Empty(t, ops[0].Post.Reason)
	require.Equal(t, "push: 503 Service Unavailable: "+text, ops[1].Post.Reason)
	require.Equal(t, retryAfter, ops[1].Post.RetryAfter)
	require.Equal(t, "push: 302 Found; redirects are not followed", ops[2].Post.Reason)
}

func TestATargetThatDrainsAcceptsAllExceptWhatItAlwaysRefuses(t *testing.T) {
	r := newTargetRig(t)
	r.target.calm.Store(true)
	refused := 0
	for n := range 200 {
		id := fmt.Sprint("job-", n)
		a := r.target.choose(id, 1)
		require.Equal(t, !r.target.refuses(id), a.status/100 == 2 && !a.hangs)
		if r.target.refuses(id) {
			refused++
		}
	}
	require.NotZero(t, refused)
	require.Less(t, refused, 50)
}
