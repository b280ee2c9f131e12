package clienttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node serves a queue in memory.
func node(t *testing.T, q *apitest.Queue, o *apitest.Operator) string {
	t.Helper()
	s := httptest.NewServer(api.New(api.Options{Queue: q, Operator: o}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// deadAddr is an address at which nobody listens.
func deadAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func connect(t *testing.T, addrs ...string) *client.Client {
	t.Helper()
	c, err := client.New(addrs)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func mustAdd(t *testing.T, c *client.Client, a client.NewJob) client.Added {
	t.Helper()
	added, err := c.Add(t.Context(), a)
	require.NoError(t, err)
	return added
}

func mustReserve(t *testing.T, c *client.Client, topics ...string) []client.Reserved {
	t.Helper()
	jobs, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: topics})
	require.NoError(t, err)
	return jobs
}

func TestAnUpdateGoesThroughOnceWithItsCondition(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	added := mustAdd(t, c, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x"), Delay: time.Hour})
	u := client.Update{Delay: new(time.Duration), Body: new(client.JSON([]byte(`{"n":1}`))), Condition: client.Condition{IfRevision: added.Revision}}
	changed, err := c.Update(ctx, "a", u)
	require.NoError(t, err)
	require.Equal(t, client.StateReady, changed.State)
	_, err = c.Update(ctx, "a", u)
	require.ErrorIs(t, err, client.CodeConditionFailed)
	require.ErrorIs(t, c.DeleteIf(ctx, client.Ref{ID: "a"}, client.Condition{IfState: []client.State{client.StateDead}}), client.CodeConditionFailed)
	j, err := c.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, []any{`{"n":1}`, changed.Revision}, []any{string(j.Value), j.Revision})
	again := mustAdd(t, c, client.NewJob{ID: "a", Topic: "t", Body: client.Text("y"), IfExists: client.Replace, Condition: client.Condition{IfRevision: j.Revision}})
	require.True(t, again.Replaced)
	require.NoError(t, c.DeleteIf(ctx, client.Ref{ID: "a"}, client.Condition{IfState: []client.State{client.StateReady}}))
}

func TestAReleasedJobWaitsAsItsBackoffSays(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	mustAdd(t, c, client.NewJob{
		ID: "a", Topic: "t", Body: client.Text("x"), Headers: map[string]string{"tenant": "7"},
		Backoff: &client.Backoff{Base: client.Duration{Duration: time.Minute}, Jitter: 0.5},
	})
	jobs := mustReserve(t, c, "t")
	require.Equal(t, map[string]string{"tenant": "7"}, jobs[0].Headers)
	released, err := c.Release(ctx, jobs[0].Ref(), client.ReleaseOptions{Reason: "no route"})
	require.NoError(t, err)
	require.Equal(t, client.StateDelayed, released.State)
	j, err := c.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, client.Backoff{Base: client.Duration{Duration: time.Minute}, Factor: 2, Max: client.Duration{Duration: time.Hour}, Jitter: 0.5}, *j.Backoff)
	require.Equal(t, "no route", j.LastError)

	_, err = c.Kick(ctx, "a")
	require.NoError(t, err)
	jobs = mustReserve(t, c, "t")
	released, err = c.Release(ctx, jobs[0].Ref(), client.ReleaseOptions{AtOnce: true})
	require.NoError(t, err)
	require.Equal(t, client.StateReady, released.State)
}

func TestAFinishAndItsAddsAreOneStep(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	_, err := c.AddAll(ctx, []client.NewJob{{ID: "a", Topic: "t", Body: client.Text("1")}, {ID: "b", Topic: "t", Body: client.Text("2"), Delay: time.Hour}})
	require.NoError(t, err)
	_, err = c.AddAll(ctx, []client.NewJob{{ID: "c", Topic: "t", Body: client.Text("3")}, {ID: "b", Topic: "t", Body: client.Text("other")}})
	require.ErrorIs(t, err, client.CodeIDConflict)
	_, err = c.Get(ctx, "c")
	require.ErrorIs(t, err, client.CodeNotFound, "all or nothing")

	jobs := mustReserve(t, c, "t")
	next := []client.NewJob{{ID: "a", Topic: "t", Body: client.Text("again"), Delay: time.Hour}}
	added, err := c.FinishThen(ctx, jobs[0].Ref(), next)
	require.NoError(t, err)
	require.Equal(t, client.StateDelayed, added[0].State)
	_, err = c.FinishThen(ctx, jobs[0].Ref(), next)
	require.ErrorIs(t, err, client.CodeNotFound, "the token names the job that is gone")
}

func TestAJobsLife(t *testing.T) {
	q := apitest.New(t)
	c := connect(t, node(t, q, &apitest.Operator{}))
	ctx := t.Context()

	added := mustAdd(t, c, client.NewJob{
		ID: "a/../b %2F ü", Topic: "mail", Body: client.Text("hello"), TTR: 1500 * time.Millisecond,
		Priority: new(uint32(0)), MaxAttempts: new(uint32(3)),
	})
	require.Equal(t, client.StateReady, added.State)
	again := mustAdd(t, c, client.NewJob{
		ID: "a/../b %2F ü", Topic: "mail", Body: client.Text("hello"), TTR: 1500 * time.Millisecond,
		Priority: new(uint32(0)), MaxAttempts: new(uint32(3)),
	})
	require.True(t, again.Existing)

	jobs, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"mail", "other"}, Max: 5, TTR: time.Hour})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.Equal(t, "hello", string(jobs[0].Bytes()))
	require.Equal(t, time.Hour, jobs[0].TTR.Duration, "of this reservation")
	require.Zero(t, jobs[0].Priority)
	ref := jobs[0].Ref()

	touched, err := c.Touch(ctx, ref, 2*time.Hour)
	require.NoError(t, err)
	require.True(t, touched.ReservedUntil.After(jobs[0].ReservedUntil))
	released, err := c.Release(ctx, ref, client.ReleaseOptions{Delay: time.Hour, Priority: new(uint32(7)), Reason: "later"})
	require.NoError(t, err)
	require.Equal(t, client.StateDelayed, released.State)
	_, err = c.Touch(ctx, ref, 0)
	require.ErrorIs(t, err, client.CodeStaleToken)
	kicked, err := c.Kick(ctx, added.ID)
	require.NoError(t, err)
	require.Equal(t, client.StateReady, kicked.State)

	jobs = mustReserve(t, c, "mail")
	buried, err := c.Bury(ctx, jobs[0].Ref(), client.BuryOptions{Reason: "bad"})
	require.NoError(t, err)
	require.Equal(t, client.StateDead, buried.State)
	swept, err := c.Topics().Kick(ctx, "mail", client.KickOptions{Sweep: client.Sweep{Max: 10}})
	require.NoError(t, err)
	require.Equal(t, 1, swept.Count)

	j, err := c.Get(ctx, added.ID)
	require.NoError(t, err)
	require.Equal(t, []any{added.ID, client.StateReady, uint32(7), uint32(3)}, []any{j.ID, j.State, j.Priority, j.MaxAttempts})
	topic, err := c.Topics().Get(ctx, "mail")
	require.NoError(t, err)
	require.Equal(t, uint64(1), topic.Ready)

	jobs = mustReserve(t, c, "mail")
	require.NoError(t, c.Finish(ctx, jobs[0].Ref()))
	require.ErrorIs(t, c.Finish(ctx, jobs[0].Ref()), client.CodeNotFound)
	_, err = c.Get(ctx, added.ID)
	require.ErrorIs(t, err, client.CodeNotFound)
}

func TestBodiesComeBackAsTheyWere(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	for name, b := range map[string]client.Body{
		"empty":        client.Text(""),
		"text":         client.Text("a \"quoted\"\n<line> \u2028 \x00"),
		"binary":       client.Bytes([]byte{0xff, 0, 0xfe}),
		"object":       client.JSON([]byte(`{"n":12345678901234567890,"s":"\u00fc"}`)),
		"null":         client.JSON([]byte(`null`)),
		"quoted value": client.JSON([]byte(`"a string"`)),
	} {
		t.Run(name, func(t *testing.T) {
			mustAdd(t, c, client.NewJob{Topic: name, Body: b})
			jobs := mustReserve(t, c, name)
			require.Len(t, jobs, 1)
			require.Equal(t, string(b.Bytes()), string(jobs[0].Bytes()))
			require.Equal(t, b.IsJSON(), jobs[0].IsJSON())
		})
	}
}

func TestBatchesAnswerEachItem(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	results, err := c.AddBatch(t.Context(), []client.NewJob{
		{Topic: "t", Body: client.Text("1")},
		{Topic: "", Body: client.Text("2")},
		{Topic: "t", ID: "three", Body: client.JSON([]byte("3")), DueAt: time.Now().Add(time.Hour)},
	})
	require.NoError(t, err)
	require.Len(t, results, 3)
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, client.CodeInvalidArgument)
	var failed *client.Error
	require.ErrorAs(t, results[1].Err, &failed)
	require.Regexp(t, `^jobs\[1\]\.`, failed.Field)
	require.Equal(t, []any{"three", client.StateDelayed}, []any{results[2].ID, results[2].State})

	jobs := mustReserve(t, c, "t")
	errs, err := c.FinishBatch(t.Context(), []client.Ref{{Token: jobs[0].Token}, {ID: "three"}})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], client.CodeNotReserved)
	require.Error(t, c.Finish(t.Context(), client.Ref{Token: jobs[0].Token}), "a single call needs the id")
}

func TestTopicsComeInPages(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	for _, topic := range []string{"a", "b", "c&d"} {
		mustAdd(t, c, client.NewJob{Topic: topic, Body: client.Text("")})
	}
	all, err := client.Collect(c.Topics().List(t.Context(), client.PageOptions{Size: 2}))
	require.NoError(t, err)
	require.Len(t, all, 3)
	rest, err := client.Collect(c.Topics().List(t.Context(), client.PageOptions{After: all[1].Name}))
	require.NoError(t, err)
	require.Equal(t, all[2:], rest)
	require.Equal(t, "c&d", rest[0].Name)
	mustReserve(t, c, "a")
	sum, err := c.Topics().Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, client.Stats{Topics: 3, Ready: 2, Reserved: 1}, sum)
}

func TestCallsGoToTheNodeThatAnswers(t *testing.T) {
	q := apitest.New(t)
	dead, live := deadAddr(t), node(t, q, &apitest.Operator{})
	for range 4 { // New starts at a random node
		c := connect(t, dead, live)
		mustAdd(t, c, client.NewJob{Topic: "t", Body: client.Text("x")})
	}
	require.Len(t, q.Ops(), 4)
}

func TestNobodyAnswers(t *testing.T) {
	a, b := deadAddr(t), deadAddr(t)
	c, err := client.New([]string{a, b}, client.WithPatience(0))
	require.NoError(t, err)
	_, err = c.Add(t.Context(), client.NewJob{Topic: "t", Body: client.Text("x")})
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "no node answered at "+a+", "+b+": connection refused", e.Message)
	require.Equal(t, []any{client.CodeNotApplied, false, 0}, []any{e.Code, e.Unknown, e.Status})
}

func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	unknown := job.Unknown("leadership was lost")
	busy := &job.Error{Code: job.CodeOverloaded, Message: "busy", RetryAfter: time.Millisecond}
	add := func(c *client.Client) error {
		_, err := c.Add(context.Background(), client.NewJob{Topic: "t", Body: client.Text("x")})
		return err
	}
	release := func(c *client.Client) error {
		_, err := c.Release(context.Background(), client.Ref{ID: "held"}, client.ReleaseOptions{})
		return err
	}
	finish := func(c *client.Client) error { return c.Finish(context.Background(), client.Ref{ID: "held"}) }
	for name, c := range map[string]struct {
		fail  []error
		call  func(*client.Client) error
		code  error
		calls int
	}{
		"nothing was done":                        {[]error{busy, job.NotApplied("no leader")}, add, nil, 3},
		"an add of unknown outcome":               {[]error{unknown}, add, nil, 2},
		"a finish of unknown outcome":             {[]error{unknown}, finish, nil, 2},
		"not a release of unknown outcome":        {[]error{unknown}, release, client.CodeUnknown, 1},
		"a release of which nothing was done":     {[]error{busy}, release, nil, 2},
		"not what the request itself is at fault": {[]error{job.Errorf(job.CodeTooManyTopics, "full")}, add, client.Code("too_many_topics"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := apitest.New(t)
			o := &apitest.Operator{}
			var calls atomic.Int32
			h := api.New(api.Options{Queue: q, Operator: o})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				h.ServeHTTP(w, r)
			}))
			defer s.Close()
			cl := connect(t, s.Listener.Addr().String())
			mustAdd(t, cl, client.NewJob{ID: "held", Topic: "held", Body: client.Text("x")})
			mustReserve(t, cl, "held")
			calls.Store(0)

			q.FailNext(c.fail...)
			err := c.call(cl)
			require.ErrorIs(t, err, c.code)
			require.EqualValues(t, c.calls, calls.Load())
			var e *client.Error
			if errors.As(err, &e) {
				require.Equal(t, c.code == client.CodeUnknown, e.Unknown)
			}
		})
	}
}

// TestLostAnswers drops the connection after the node has done what was asked.
func TestLostAnswers(t *testing.T) {
	q := apitest.New(t)
	h := api.New(api.Options{Queue: q, Operator: &apitest.Operator{}})
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

	lose.Store(true)
	added := mustAdd(t, c, client.NewJob{Topic: "t", Body: client.Text("x")})
	require.True(t, added.Existing, "the second attempt finds the job of the first")

	jobs := mustReserve(t, c, "t")
	lose.Store(true)
	require.NoError(t, c.Finish(t.Context(), jobs[0].Ref()))

	mustAdd(t, c, client.NewJob{ID: "second", Topic: "t", Body: client.Text("x")})
	jobs = mustReserve(t, c, "t")
	lose.Store(true)
	errs, err := c.FinishBatch(t.Context(), []client.Ref{jobs[0].Ref()})
	require.NoError(t, err)
	require.NoError(t, errs[0])
}

func TestAnUnknownOutcomeIsNotForgotten(t *testing.T) {
	q := apitest.New(t)
	c, err := client.New([]string{node(t, q, &apitest.Operator{})}, client.WithPatience(300*time.Millisecond))
	require.NoError(t, err)
	defer c.Close()
	q.FailNext(job.Unknown("lost"))
	for range 1000 {
		q.FailNext(job.NotApplied("no leader"))
	}
	_, err = c.Add(t.Context(), client.NewJob{Topic: "t", Body: client.Text("x")})
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Unknown)
	require.Contains(t, e.Message, "no leader")
}

func TestReserveWaits(t *testing.T) {
	q := apitest.New(t)
	c := connect(t, node(t, q, &apitest.Operator{}))
	type answer struct {
		jobs []client.Reserved
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		jobs, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
		got <- answer{jobs, err}
	}()
	require.Eventually(t, func() bool { return q.Waiting() == 1 }, time.Minute, time.Millisecond)
	mustAdd(t, c, client.NewJob{Topic: "t", Body: client.Text("x")})
	a := <-got
	require.NoError(t, a.err)
	require.Len(t, a.jobs, 1)

	jobs, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}, Wait: 60 * time.Millisecond})
	require.NoError(t, err)
	require.Empty(t, jobs)
}

func TestReserveIsGivenUpWithItsContext(t *testing.T) {
	q := apitest.New(t)
	c := connect(t, node(t, q, &apitest.Operator{}))
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
		got <- err
	}()
	require.Eventually(t, func() bool { return q.Waiting() == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
	require.Eventually(t, func() bool { return q.Waiting() == 0 }, time.Minute, time.Millisecond)
}

// TestAWaitSurvivesANodeThatStops answers early with nothing, as a node does
// that drains.
func TestAWaitSurvivesANodeThatStops(t *testing.T) {
	q := apitest.New(t)
	_, err := q.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", TtrMs: 1000}}}})
	require.NoError(t, err)
	h := api.New(api.Options{Queue: q, Operator: &apitest.Operator{}})
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			fmt.Fprint(w, `{"success":true,"jobs":[]}`)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer s.Close()
	jobs, err := connect(t, s.Listener.Addr().String()).Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
}

func TestOperators(t *testing.T) {
	o := &apitest.Operator{}
	c := connect(t, node(t, apitest.New(t), o))
	ctx := t.Context()
	members, err := c.Cluster().Members(ctx)
	require.NoError(t, err)
	require.Equal(t, client.Member{
		ID: "n2", Address: "host2:7301", HTTPAddress: "host2:7300", Role: "follower", Voter: true, Alive: true,
		AppliedIndex: 41, Lag: 1, DiskFree: 900 << 20, DiskLow: true, Version: "v0.1.0", ClusterVersion: 1, MinClusterVersion: 1, MaxClusterVersion: 2, Admission: client.AdmissionOpen,
	}, members[1])
	health, err := c.Cluster().Health(ctx)
	require.NoError(t, err)
	require.False(t, health.Healthy)
	require.Len(t, health.Reasons, 1)
	v, err := c.Cluster().Verify(ctx)
	require.NoError(t, err)
	require.Equal(t, client.NodeDigest{ID: "n3", Error: "no answer in time"}, v.Digests[2])

	for _, id := range []string{"", "n2", "n1"} {
		moved, err := c.Cluster().TransferLeadership(ctx, id)
		require.NoError(t, err)
		require.Equal(t, id != "n1", moved, "n1 leads")
	}
	require.NoError(t, c.Cluster().RemoveMember(ctx, "n3"))
	require.NoError(t, c.Node().Join(ctx, []string{"host1:7302"}))
	require.NoError(t, c.Node().Leave(ctx))
	require.Equal(t, []string{"transfer", "transfer n2", "remove n3", "join host1:7302", "leave"}, o.Calls())

	o.Err = job.Errorf(job.CodeQuorumWouldFail, "2 of 3 voters would be left")
	require.ErrorIs(t, c.Cluster().RemoveMember(ctx, "n2"), client.Code("quorum_would_fail"))
}

func TestAddressesAreChecked(t *testing.T) {
	for addr, says := range map[string]string{
		"":                  "host:port",
		"localhost":         "host:port",
		":7300":             "host:port",
		"host:1/path":       "host:port",
		"ftp://host:1":      "scheme",
		"http://host:7300/": "",
		"[::1]:7300":        "",
	} {
		_, err := client.New([]string{addr})
		if says == "" {
			require.NoError(t, err, addr)
		} else {
			require.ErrorContains(t, err, says, addr)
		}
	}
	_, err := client.New(nil)
	require.Error(t, err)
}

func TestAForeignAnswerIsNamed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, strings.Repeat("<html>", 10))
	}))
	defer s.Close()
	c, err := client.New([]string{s.Listener.Addr().String()}, client.WithPatience(100*time.Millisecond))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Get(t.Context(), "x")
	require.ErrorContains(t, err, "not Tarry's: 404")
}

// TestACallSaysWhatANodeAnswered asks one node that has no leader and one that is
// not there, in either order.
func TestACallSaysWhatANodeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "gone:7300" {
				return nil, errors.New("connection refused")
			}
			text := `{"success":false,"code":"not_applied","error":"there is no leader","outcome":"not_applied"}`
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		})
		for _, nodes := range [][]string{{"node:7300", "gone:7300"}, {"gone:7300", "node:7300"}} {
			var said []string
			var left time.Duration
			c, err := client.New(nodes, client.WithHTTPClient(&http.Client{Transport: answers}), client.WithPatience(300*time.Millisecond), client.WithRetrying(func(err error, l time.Duration) {
				said, left = append(said, err.Error()), l
			}))
			require.NoError(t, err)
			for range 3 { // it starts anywhere
				for name, call := range map[string]func() error{
					"add":     func() error { _, err := c.Add(t.Context(), client.NewJob{Topic: "t"}); return err },
					"remove":  func() error { return c.Cluster().RemoveMember(t.Context(), "n1") },
					"members": func() error { _, err := c.Cluster().Members(t.Context()); return err },
				} {
					said = nil
					require.EqualError(t, call(), "there is no leader", name)
					require.Equal(t, []string{"there is no leader"}, said, "once, at once")
					require.Positive(t, left)
					require.LessOrEqual(t, left, 300*time.Millisecond)
				}
			}
			c.Close()
		}
	})
}

// A redirect turns a DELETE into a GET, whose success says nothing of the job.
func TestRedirectsAreNotFollowed(t *testing.T) {
	followed := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed++
			_, err := w.Write([]byte(`{"success":true}`))
			require.NoError(t, err)
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
	}))
	defer s.Close()
	for _, options := range [][]client.Option{nil, {client.WithHTTPClient(&http.Client{})}} {
		c, err := client.New([]string{s.Listener.Addr().String()}, append(options, client.WithPatience(0))...)
		require.NoError(t, err)
		require.ErrorContains(t, c.Delete(t.Context(), client.Ref{ID: "a"}), "301")
		c.Close()
	}
	require.Zero(t, followed)
}
