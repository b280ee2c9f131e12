package api

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// behind is a node whose leader has other tokens.
type behind struct {
	mu      sync.Mutex
	here    *auth.State
	there   *auth.State
	changed chan struct{}
}

func (b *behind) Auth() *auth.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.here
}

func (b *behind) AuthChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// asked is the answer of the leader; without a state of its own there is none.
func (b *behind) asked(context.Context) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there == nil {
		return 0, job.NotApplied("there is no leader")
	}
	return b.there.Revision, nil
}

// leads makes the leader have a state.
func (b *behind) leads(s *auth.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.there = s
}

// follows brings the leader's state here.
func (b *behind) follows() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.here = b.there
	close(b.changed)
	b.changed = make(chan struct{})
}

// A new node, and one that was away, has an old state of tokens, which may let everybody do
// everything: it refuses what it cannot decide.
func TestANodeThatHasNotCaughtUpDecidesNothing(t *testing.T) {
	b := &behind{here: auth.NewState(0, false, nil, nil), changed: make(chan struct{})}
	control := access.Open(access.Options{Source: b, Leader: b.asked, ReadyWait: time.Nanosecond})
	defer control.Close()
	r := newRig(t, func(o *Options) { o.Access = control })
	call := func(method, path, body string) int { return r.do(method, path, body).Code }
	refusedCalls := func() {
		t.Helper()
		refused(t, r.do("GET", "/v1/topics", ""), 503, job.CodeNotApplied, "caught up")
		for _, c := range [][3]string{
			{"POST", "/v1/jobs", `{"topic":"a","body":1}`}, {"POST", "/v1/reserve", `{"topics":["a"]}`}, {"GET", "/v1/cluster/backup", ""},
			{"GET", "/v1/cluster/backup?consistency=stale", ""}, {"DELETE", "/v1/cluster/members/n1", ""}, {"POST", "/v1/cluster/drain", ""},
			{"GET", "/v1/tokens", ""}, {"POST", "/", `{"command":"add"}`}, {"GET", "/readyz", ""},
		} {
			require.Equal(t, 503, call(c[0], c[1], c[2]), c)
		}
		refused(t, r.do("DELETE", "/v1/cluster/members/n1", ""), 503, job.CodeNotApplied, "A lost majority")
		require.Equal(t, 200, call("GET", "/livez", ""))
		require.Equal(t, 200, call("GET", "/v1/cluster/health", ""))
		require.Equal(t, 200, call("GET", "/v1/cluster/node/log", ""), "as the events, with which it is in a bundle")
		require.NotEqual(t, 503, call("POST", "/v1/cluster/join", `{"addresses":["127.0.0.1:1"]}`))
	}
	refusedCalls()
	closed, _ := matrix(t, enforce)
	b.leads(closed)
	refusedCalls()
	b.follows()
	<-control.Ready()
	require.Equal(t, 401, call("GET", "/v1/topics", ""))
	require.NotContains(t, r.do("GET", "/v1/cluster/members", "").Body.String(), `"id":"n`)
	require.Contains(t, r.as("observe", "GET", "/v1/cluster/members", "").Body.String(), `"id":"n`)
	require.Equal(t, 401, call("POST", "/v1/jobs", `{"topic":"a","body":1}`))
	require.Equal(t, 200, call("GET", "/readyz", ""))
}

// What only the node decides about, it decides by what the leader has now.
func TestCallsOfOperatorsAreDecidedByThePresentTokens(t *testing.T) {
	open := auth.NewState(1, false, nil, nil)
	b := &behind{here: open, there: open, changed: make(chan struct{})}
	control := access.Open(access.Options{Source: b, Leader: func(ctx context.Context) (uint64, error) {
		revision, err := b.asked(ctx)
		if revision > b.Auth().Revision {
			b.follows()
		}
		return revision, err
	}})
	defer control.Close()
	<-control.Ready()
	r := newRig(t, func(o *Options) { o.Access = control })
	require.Equal(t, http.StatusOK, r.do("DELETE", "/v1/cluster/members/n1", "").Code)
	for _, c := range [][2]string{
		{"DELETE", "/v1/cluster/members/n1"}, {"POST", "/v1/cluster/clock/reset"}, {"GET", "/v1/cluster/backup"}, {"POST", "/v1/cluster/transfer-leadership"},
	} {
		closed, _ := matrix(t, enforce)
		b.leads(closed)
		require.Equal(t, http.StatusUnauthorized, r.do(c[0], c[1], "").Code, c)
		b.mu.Lock()
		b.here = open
		b.mu.Unlock()
	}
	b.leads(nil)
	lost := r.do("DELETE", "/v1/cluster/members/n1", "")
	refused(t, lost, http.StatusServiceUnavailable, job.CodeNotApplied, "docs/operations.md, A lost majority")
	require.NotContains(t, lost.Body.String(), "token", "there may be none")
	require.Equal(t, http.StatusOK, r.do("GET", "/v1/cluster/node/log", "").Code, "it is of this node alone, and wanted most without a leader")
}

// revoking is a state from which a token goes after some looks at it.
type revoking struct {
	left          atomic.Int64
	before, after *auth.State
}

func (r *revoking) Auth() *auth.State {
	if r.left.Add(-1) >= 0 {
		return r.before
	}
	return r.after
}

func (r *revoking) AuthChanged() <-chan struct{} { return nil }

func TestAReadIsUnauthorizedWheneverItsTokenIsRevoked(t *testing.T) {
	without := auth.NewState(1, true, &jobpb.AuthSettings{Mode: enforce}, nil)
	source := &revoking{after: without, before: without.WithToken(1, auth.NewToken(&jobpb.Token{Id: "a", Hash: secretFor(t, "a").Hash(), Rules: []*jobpb.Rule{ruleOf(t, "*", "read")}}))}
	control := access.Open(access.Options{Source: source})
	t.Cleanup(control.Close)
	r := newRig(t, func(o *Options) { o.Access = control })
	const most = 100
	for looks := range int64(most) {
		source.left.Store(looks)
		w := r.as("a", "GET", "/v1/topics/mail", "")
		if w.Code == http.StatusOK {
			require.Greater(t, looks, int64(3))
			return
		}
		require.Equal(t, http.StatusUnauthorized, w.Code, "after %d looks: %s", looks, w.Body)
	}
	require.Fail(t, "it is never let in")
}
