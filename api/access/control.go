package access

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/api/audit"
	"tarry/auth"
	"tarry/internal/tokenbucket"
	"tarry/job"
	"tarry/job/jobpb"
)

// Control is what the ports of a node share: who callers are, and what they may do.
type Control struct {
	*Checks
	*Identity
	*Watch
	*Current
	signIns *tokenbucket.Buckets // that failed, by the networks of clients
}

// Options configure a Control. Source is required.
type Options struct {
	Source Source
	// Leader returns the revision of the tokens that the leader has. nil: this node has all.
	Leader func(context.Context) (revision uint64, err error)
	// ReadyWait is how long a call waits for this node to have had what the leader had; 0: some
	// seconds.
	ReadyWait time.Duration
	Audit     *audit.Log            // nil: none
	Registry  prometheus.Registerer // nil: the metrics are not published
}

// Open returns a Control, which the caller must Close.
func Open(o Options) *Control {
	ask := o.Leader
	if ask == nil {
		ask = func(context.Context) (uint64, error) { return o.Source.Auth().Revision, nil }
	}
	c := &Control{Checks: New(o.Source, o.Audit, o.Registry), Identity: NewIdentity(o.Source, ask), signIns: tokenbucket.NewBuckets(signInBurst, signInEvery, maxAsked)}
	c.Watch = newWatch(o.Source, c.forget)
	var asked *leader
	if o.Leader != nil {
		asked = c.Identity.leader
	}
	c.Current = newCurrent(asked, o.ReadyWait)
	return c
}

// Close ends what Open has started.
func (c *Control) Close() {
	c.Identity.leader.close()
	c.Current.close()
	c.Watch.Close()
}

// Everything lets everybody do everything except what needs the verb admin, as a cluster without
// tokens does. It need not be closed.
func Everything() *Control { return Open(Options{Source: noTokens{}}) }

// noTokens is a state that never changes.
type noTokens struct{}

var noState = auth.NewState(0, false, nil, nil)

func (noTokens) Auth() *auth.State            { return noState }
func (noTokens) AuthChanged() <-chan struct{} { return nil }

// WhileAllowed returns a context that also ends when the caller may not do verbs on one of the
// topics any more, or its text of the token is not accepted any more: Revoked reports that. The
// caller must call stop.
func (c *Control) WhileAllowed(ctx context.Context, verbs auth.Verbs, topics []string) (until context.Context, stop func()) {
	r, _ := ctx.Value(requestKey{}).(*Request)
	if r == nil {
		r = &Request{Principal: auth.FromContext(ctx)}
	}
	ctx, end := context.WithCancelCause(ctx)
	timed := &ending{end: func() { end(errRevoked{}) }}
	until, forget := c.While(ctx, func(s *auth.State) bool {
		if s.Mode() != jobpb.AuthMode_AUTH_ENFORCE {
			timed.at(0)
			return true
		}
		if !r.accepted(s) {
			return false
		}
		timed.at(r.endOf(s))
		return !slices.ContainsFunc(topics, func(topic string) bool {
			return s.Check(r.Principal, now(), verbs, topic) != auth.Allowed
		})
	})
	return until, func() { forget(); timed.at(0); end(nil) } // forget first: a look that is under way sets the timer
}

// accepted reports whether a state accepts that by which the caller is known.
func (r *Request) accepted(s *auth.State) bool {
	var err error
	switch {
	case r.Secret.ID() != "":
		_, err = s.Authenticate(r.Secret, now())
	case r.Certificate.TokenID != "":
		_, err = r.Certificate.authenticate(s, now())
	}
	return err == nil
}

// endOf returns when the token of a caller ends, or its text, or its certificate; 0: never.
func (r *Request) endOf(s *auth.State) (ms int64) {
	t := s.Token(r.Principal.TokenID())
	if t == nil {
		return 0
	}
	ms = t.ExpiresMs
	if ends := r.Certificate.EndsMS; ends != 0 && (ms == 0 || ends < ms) {
		return ends
	}
	if r.Secret.ID() == "" || bytes.Equal(t.Hash, r.Secret.Hash()) {
		return ms
	}
	if ms == 0 {
		return t.OldUntilMs
	}
	return min(ms, t.OldUntilMs)
}

// ending ends something at an instant, which can be changed.
type ending struct {
	end func()

	mu    sync.Mutex
	timer *time.Timer
}

// at sets the instant; 0: never.
func (e *ending) at(ms int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if ms != 0 {
		e.timer = time.AfterFunc(time.Until(time.UnixMilli(ms)), e.end)
	}
}

// NotAnyMore is the error of what has waited until its caller might not do it any more.
func NotAnyMore() error {
	return job.Errorf(job.CodeForbidden, "the token was revoked or has ended, or does not allow this any more")
}
