package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/httpx"
	"tarry/job"
)

// limit makes a token with limits, or changes those of one, whose text is text then.
func (r *closedRig) limit(id, limits, text string) string {
	r.t.Helper()
	w := r.with(r.root, "PUT", "/v1/tokens/"+id, `{"rules":[{"topics":["mail"],"verbs":["add","consume","read"]}],"limits":{`+limits+`}}`)
	require.Less(r.t, w.Code, 300, w.Body)
	if text == "" {
		text = decoded(r.t, w)["token"].(string)
	}
	return text
}

// once is a rate of one operation in 1000 s, so that no test has another one by waiting.
const once = `"rate":0.001`

func TestTheLimitsOfATokenAreShownAndKept(t *testing.T) {
	r := newClosedRig(t)
	want := map[string]any{"rate": 2.5, "connections": 3.0, "waiters": 4.0, "bytes": 5e6}
	shop := r.limit("shop", `"rate":2.5,"connections":3,"waiters":4,"bytes":5000000`, "")
	require.Equal(t, want, decoded(t, r.with(r.root, "GET", "/v1/tokens/shop", ""))["limits"])
	require.Equal(t, want, decoded(t, r.with(shop, "GET", "/v1/whoami", ""))["limits"])
	require.Equal(t, http.StatusOK, r.with(r.root, "POST", "/v1/tokens/shop/rotate", `{}`).Code)
	require.Equal(t, want, decoded(t, r.with(r.root, "GET", "/v1/tokens/shop", ""))["limits"])
	r.limit("shop", ``, shop)
	require.NotContains(t, decoded(t, r.with(r.root, "GET", "/v1/tokens/shop", "")), "limits")

	for field, bad := range map[string]string{
		"limits.rate": `"rate":0`, "rate": `"rate":0.0001`, "limits.connections": `"connections":0`, "limits.waiters": `"waiters":-1`, "limits.bytes": `"bytes":0`,
		"bytes": `"bytes":1e13`, "jobs": `"jobs":1`,
	} {
		w := r.with(r.root, "PUT", "/v1/tokens/bad", `{"rules":[],"limits":{`+bad+`}}`)
		require.Equal(t, http.StatusBadRequest, w.Code, bad)
		require.Contains(t, w.Body.String(), field)
	}
}

func TestATokenAboveItsRateIsRefusedBeforeAnythingIsDone(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", ``, "")
	r.mode("enforce")
	for _, id := range []string{"a", "b"} {
		require.Equal(t, 201, r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1,"id":"`+id+`"}`).Code)
	}
	w := r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"],"max":2}`)
	jobs := decoded(t, w)["jobs"].([]any)
	require.Len(t, jobs, 2)
	token := func(i int) string { return jobs[i].(map[string]any)["token"].(string) }

	r.limit("shop", once, shop)
	require.Equal(t, 201, r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1,"id":"c"}`).Code)
	refuses := func(method, path, body string) {
		t.Helper()
		w := r.with(shop, method, path, body)
		refused(t, w, http.StatusTooManyRequests, job.CodeRateLimited, "token shop may do 0.001 operations a second")
		require.Equal(t, "not_applied", decoded(t, w)["outcome"])
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		require.NoError(t, err)
		require.InDelta(t, 1000, after, 100)
	}
	refuses("POST", "/v1/jobs", `{"topic":"mail","body":1,"id":"d"}`)
	refuses("POST", "/v1/jobs/batch", `{"jobs":[{"topic":"mail","body":1,"id":"d"}]}`)
	refuses("GET", "/v1/jobs/c", "")
	refuses("GET", "/v1/whoami", "")
	refuses("POST", "/v1/reserve", `{"topics":["mail"]}`)
	require.Equal(t, 429, r.with(shop, "POST", "/", `{"command":"pop","topic":"mail"}`).Code)
	require.Equal(t, 404, r.with(r.root, "GET", "/v1/jobs/d", "").Code)
	require.Equal(t, "ready", decoded(t, r.with(r.root, "GET", "/v1/jobs/c", ""))["state"])

	// What it holds it can finish, also where it would reserve more.
	require.Equal(t, 200, r.with(shop, "POST", "/v1/jobs/a/touch", `{"token":"`+token(0)+`"}`).Code)
	require.Equal(t, 200, r.with(shop, "POST", "/v1/jobs/a/finish", `{"token":"`+token(0)+`"}`).Code)
	w = r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"],"wait":60,"finish":[{"id":"b","token":"`+token(1)+`"}]}`)
	require.Equal(t, 200, w.Code, w.Body)
	require.Empty(t, decoded(t, w)["jobs"])
	require.Equal(t, 404, r.with(r.root, "GET", "/v1/jobs/b", "").Code)

	// Others are not affected, and a changed limit holds at once.
	require.Equal(t, 200, r.with(r.root, "GET", "/v1/jobs/c", "").Code)
	r.limit("shop", `"rate":1000`, shop)
	require.Equal(t, 200, r.with(shop, "GET", "/v1/jobs/c", "").Code)
}

func TestARequestAboveTheBytesOfItsTokenIsNotRead(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", `"bytes":100`, "")
	r.mode("enforce")
	large := `{"topic":"mail","body":"` + strings.Repeat("x", 100_000) + `"}`
	require.Equal(t, 201, r.with(shop, "POST", "/v1/jobs", large).Code)
	w := r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1}`)
	refused(t, w, 429, job.CodeRateLimited, "100 bytes of bodies a second")
}

// Else one request would use up what all clients of the token may send for an hour.
func TestABodyThatIsOnlyAnnouncedIsNotCounted(t *testing.T) {
	r := newClosedRig(t)
	r.mode("enforce")
	for i, path := range []string{"/v1/jobs", "/v1/jobs/batch", "/v1/finish", "/v1/reserve", getManyPath} {
		shop := r.limit("shop"+strconv.Itoa(i), `"bytes":100`, "")
		q := httptest.NewRequest("POST", path, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("{\"j"))))
		q.ContentLength = 500_000
		q.Header.Set("Authorization", "Bearer "+shop)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		require.NotEqual(t, 429, w.Code, "%s: %s", path, w.Body)
		require.Equal(t, 201, r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1}`).Code, path)
	}
}

// answers makes a call many times, and counts the statuses.
func (r *closedRig) answers(calls int, token, path, body string) map[int]int {
	seen := map[int]int{}
	for range calls {
		seen[r.with(token, "POST", path, body).Code]++
	}
	return seen
}

// The node does not look whether the caller holds the jobs.
func TestCallsThatEndNothingAreRefusedOnceTheyAreTooMany(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", once, "")
	r.mode("enforce")
	require.Equal(t, map[int]int{404: 65, 429: 35}, r.answers(100, shop, "/v1/jobs/nope/touch", `{"token":"0-1-1"}`))
	require.Equal(t, map[int]int{429: 3}, r.answers(3, shop, "/v1/finish", `{"jobs":[{"id":"n1","token":"0-1-1"},{"id":"n2","token":"0-2-1"}]}`))
	require.Equal(t, map[int]int{429: 1}, r.answers(1, shop, "/v1/reserve", `{"topics":["mail"],"finish":[{"id":"n1","token":"0-1-1"}]}`))

	// With jobs to add it is an add.
	other := r.limit("other", `"bytes":1000`, "")
	then := `{"token":"0-1-1","then":[{"topic":"mail","body":"` + strings.Repeat("x", 100_000) + `"}]}`
	require.Equal(t, map[int]int{404: 1, 429: 7}, r.answers(8, other, "/v1/jobs/nope/finish", then))
}

// The job stays reserved, and nothing is added.
func TestTheJobsOfAFinishAreRefusedBeforeItFinishes(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", ``, "")
	r.mode("enforce")
	require.Equal(t, 201, r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1,"id":"a"}`).Code)
	jobs := decoded(t, r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"]}`))["jobs"].([]any)
	token := jobs[0].(map[string]any)["token"].(string)
	r.limit("shop", once, shop)
	require.Equal(t, 200, r.with(shop, "GET", "/v1/whoami", "").Code)
	refused(t, r.with(shop, "POST", "/v1/jobs/a/finish", `{"token":"`+token+`","then":[{"topic":"mail","body":1,"id":"b"}]}`), 429, job.CodeRateLimited, "0.001 operations")
	require.Equal(t, "reserved", decoded(t, r.with(r.root, "GET", "/v1/jobs/a", ""))["state"])
	require.Equal(t, 404, r.with(r.root, "GET", "/v1/jobs/b", "").Code)
	require.Equal(t, 200, r.with(shop, "POST", "/v1/jobs/a/finish", `{"token":"`+token+`"}`).Code)
}

func TestACallWithAMalformedBodyCounts(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", `"rate":0.001,"bytes":1`, "")
	r.mode("enforce")
	require.Equal(t, map[int]int{400: 2, 429: 58}, r.answers(60, shop, "/v1/finish", `{"jobs":[`+strings.Repeat(" ", 300_000)))
	require.Equal(t, 429, r.with(shop, "POST", "/v1/jobs", `{"topic":"mail","body":1}`).Code)
	other := r.limit("other", once, "")
	require.Equal(t, map[int]int{400: 65, 429: 35}, r.answers(100, other, "/v1/jobs/x/touch", `{"no":1}`))
}

func TestAReadOfManyCostsEachOfThem(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", once, "")
	r.mode("enforce")
	ids := `{"ids":["` + strings.Repeat(`x","`, 999) + `x"]}`
	require.Equal(t, 200, r.with(shop, "POST", "/v1/get", ids).Code)
	w := r.with(shop, "GET", "/v1/whoami", "")
	require.Equal(t, 429, w.Code)
	after, err := strconv.Atoi(w.Header().Get("Retry-After"))
	require.NoError(t, err)
	require.Greater(t, after, 100_000)
}

// dialed is a client of a server that counts connections.
type dialed struct {
	*closedRig
	conn net.Conn
	in   *bufio.Reader
}

func (r *closedRig) serve() (dial func() *dialed) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	server := &http.Server{Handler: r.handler, ConnContext: httpx.ConnContext}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(httpx.JSONErrors(httpx.LimitConnections(l, 100, nil, httpx.RefusedConnection)))
	}()
	r.t.Cleanup(func() { server.Close(); <-done })
	return func() *dialed {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(r.t, err)
		r.t.Cleanup(func() { c.Close() })
		return &dialed{r, c, bufio.NewReader(c)}
	}
}

// call makes a call on the connection, and returns the response with as much of its body as wanted.
func (d *dialed) call(token, method, path, body string, whole bool) *http.Response {
	d.t.Helper()
	q, err := http.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	require.NoError(d.t, err)
	q.Header.Set("Authorization", "Bearer "+token)
	require.NoError(d.t, q.Write(d.conn))
	a, err := http.ReadResponse(d.in, q)
	require.NoError(d.t, err)
	if whole {
		_, err = io.Copy(io.Discard, a.Body)
		require.NoError(d.t, err)
	}
	return a
}

func TestTheConnectionsOfATokenAreCountedUntilTheyClose(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", `"connections":1`, "")
	r.mode("enforce")
	dial := r.serve()
	one := dial()
	require.Equal(t, 200, one.call(shop, "GET", "/v1/whoami", "", true).StatusCode)
	require.Equal(t, 200, one.call(shop, "GET", "/v1/whoami", "", true).StatusCode)
	a := dial().call(shop, "GET", "/v1/whoami", "", true)
	require.Equal(t, 429, a.StatusCode)
	require.True(t, a.Close)
	require.Equal(t, 404, dial().call(shop, "POST", "/v1/jobs/none/finish", "{}", true).StatusCode, "what ends a reservation is never refused")
	require.Equal(t, 429, dial().call(shop, "POST", "/v1/reserve", `{"topics":["mail"]}`, true).StatusCode)
	require.Equal(t, 429, dial().call(shop, "GET", "/v1/stream?topics=mail", "", true).StatusCode)
	require.Equal(t, 200, dial().call(r.root, "GET", "/v1/whoami", "", true).StatusCode)
	one.conn.Close()
	require.Eventually(t, func() bool {
		c := dial()
		defer c.conn.Close()
		return c.call(shop, "GET", "/v1/whoami", "", true).StatusCode == 200
	}, time.Minute, 5*time.Millisecond)
}

// It may end reservations, if it says so at once.
func TestAConnectionAboveTheLimitOfATokenIsNotWaitedFor(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", `"connections":1`, "")
	r.mode("enforce")
	dial := r.serve()
	require.Equal(t, 200, dial().call(shop, "GET", "/v1/whoami", "", true).StatusCode)
	slow := dial()
	_, err := io.WriteString(slow.conn, "POST /v1/jobs/x/finish HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+shop+"\r\nContent-Length: 100000\r\n\r\n{\"to")
	require.NoError(t, err)
	a, err := http.ReadResponse(slow.in, nil)
	require.NoError(t, err)
	require.True(t, a.Close)
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.Equal(t, 408, a.StatusCode)
	require.Contains(t, string(text), "on a connection above the limit of its token")
}

func TestTheWaitersOfATokenAreStreamsAndReservesThatWait(t *testing.T) {
	r := newClosedRig(t)
	shop := r.limit("shop", `"waiters":1`, "")
	r.mode("enforce")
	dial := r.serve()
	stream := dial()
	require.Equal(t, 200, stream.call(shop, "GET", "/v1/stream?topics=mail", "", false).StatusCode)
	refused(t, r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"],"wait":60}`), 429, job.CodeRateLimited, "1 stream or reserve that waits")
	require.Equal(t, 429, dial().call(shop, "GET", "/v1/stream?topics=mail", "", true).StatusCode)
	require.Equal(t, 200, r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"]}`).Code, "it does not wait")
	stream.conn.Close()
	require.Eventually(t, func() bool {
		return r.with(shop, "POST", "/v1/reserve", `{"topics":["mail"],"wait":0.001}`).Code == 200
	}, time.Minute, 5*time.Millisecond)
}
