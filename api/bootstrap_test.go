package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/api/apitest"
	"tarry/api/audit"
	"tarry/job"
	"tarry/job/jobpb"
)

// nonces is an AuthReset in memory.
type nonces struct {
	nonce string // empty: there is none
	used  bool
	fault error // of Use
}

func (n *nonces) Holds(nonce string) bool { return n.nonce != "" && n.nonce == nonce }

func (n *nonces) Use(string) (bool, error) {
	was := n.used
	n.used = true
	return !was, n.fault
}

func (n *nonces) Undo(string) error {
	n.used = false
	return nil
}

// failing is a queue whose next operations fail.
type failing struct {
	*apitest.Queue
	err  error // nil: none
	done bool  // the operation is done all the same
}

func (q *failing) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	err := q.err
	q.err = nil
	if err != nil && !q.done {
		return nil, err
	}
	results, failed := q.Queue.Do(ctx, ops)
	return results, errors.Join(failed, err)
}

// resetRig is a closed cluster whose admin token is lost.
func resetRig(t *testing.T, f *nonces, q *failing) *closedRig {
	r := newClosedRig(t, func(o *Options) {
		o.AuthReset = f
		q.Queue, o.Queue = o.Queue.(*apitest.Queue), q
	})
	r.mode("enforce")
	return r
}

const again = `{"secret":"nonce"}`

func TestAFirstTokenIsMadeAgainAfterAReset(t *testing.T) {
	f := &nonces{}
	r := resetRig(t, f, &failing{})
	refused(t, r.post("/v1/auth/bootstrap", again), 403, job.CodeForbidden, "tarry auth reset")
	f.nonce = "nonce"
	w := r.post("/v1/auth/bootstrap", again)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	root := decoded(t, w)["token"].(string)
	require.True(t, f.used)
	require.Equal(t, 401, r.with(r.root, "GET", "/v1/tokens", "").Code, "the lost text is not accepted any more")
	require.Equal(t, 200, r.with(root, "GET", "/v1/tokens", "").Code)
	require.Equal(t, "enforce", decoded(t, r.with(root, "GET", "/v1/whoami", ""))["mode"])

	// The reply may have been lost. Anything else needs another nonce.
	repeated := r.post("/v1/auth/bootstrap", again)
	require.Equal(t, http.StatusCreated, repeated.Code, repeated.Body)
	require.Equal(t, decoded(t, w), decoded(t, repeated))
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"nonce","id":"other"}`), 412, job.CodeConditionFailed, "used already")
	w = r.with(root, "POST", "/v1/tokens/root/rotate", `{"overlap":0}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	refused(t, r.post("/v1/auth/bootstrap", again), 412, job.CodeConditionFailed, "used already")
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"proof","id":"other"}`), 412, job.CodeConditionFailed, "first token already")

	f.nonce, f.used = "second", false
	w = r.post("/v1/auth/bootstrap", `{"secret":"second","id":"other"}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	require.Equal(t, 200, r.with(decoded(t, w)["token"].(string), "GET", "/v1/tokens", "").Code)
}

// A nonce is spent before it is used, unless nothing was done with it.
func TestANonceIsSpentBeforeItIsUsed(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		done  bool
		spent bool
	}{
		{"nothing was done", job.NotApplied("there is no leader"), false, false},
		{"the outcome is unknown", job.Unknown("the leader was lost"), false, true},
		{"an internal error", errors.New("broken"), false, true},
		{"done, and the outcome is unknown", job.Unknown("the leader was lost"), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, q := &nonces{nonce: "nonce"}, &failing{done: c.done}
			r := resetRig(t, f, q)
			q.err = c.err
			w := r.post("/v1/auth/bootstrap", again)
			require.GreaterOrEqual(t, w.Code, 500, w.Body)
			require.Equal(t, c.spent, f.used)
			w = r.post("/v1/auth/bootstrap", again)
			if c.spent && !c.done {
				refused(t, w, 412, job.CodeConditionFailed, "make another one")
				return
			}
			require.Equal(t, http.StatusCreated, w.Code, w.Body)
			require.Equal(t, 200, r.with(decoded(t, w)["token"].(string), "GET", "/v1/tokens", "").Code)
		})
	}
	f := &nonces{nonce: "nonce", fault: errors.New("the disk is full")}
	r := resetRig(t, f, &failing{})
	require.Equal(t, 500, r.post("/v1/auth/bootstrap", again).Code)
	require.Equal(t, 200, r.with(r.root, "GET", "/v1/tokens", "").Code, "nothing was done")
}

func TestProofsAreAudited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var control *access.Control
	r := newRig(t, func(o *Options) {
		control = access.Open(access.Options{Source: o.Queue.(access.Source), Audit: log})
		o.Access, o.AuthReset = control, &nonces{nonce: "nonce"}
		o.CheckBootstrap = func(secret string) bool { return secret == "proof" }
	})
	defer control.Close()
	require.Equal(t, http.StatusCreated, r.post("/v1/auth/bootstrap", `{"secret":"proof"}`).Code)
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"guess"}`), 403, job.CodeForbidden, "secret")
	require.Equal(t, http.StatusCreated, r.post("/v1/auth/bootstrap", again).Code)
	log.Close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"call":"POST /v1/auth/bootstrap","verb":"admin","outcome":"denied","reason":"wrong_proof"`)
	require.Contains(t, string(text), `"call":"POST /v1/auth/bootstrap","resource":"token root","verb":"admin","outcome":"done"`)
	require.Contains(t, string(text), `"call":"POST /v1/auth/bootstrap","resource":"token root, with the nonce of tarry auth reset","verb":"admin","outcome":"done"`)
	require.NotContains(t, string(text), "guess")
	require.NotContains(t, string(text), "tarry_root")
}
