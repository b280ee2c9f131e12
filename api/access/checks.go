package access

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/api/audit"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// Source has the state of tokens as this node knows it.
type Source interface {
	// Auth returns the present state. It is cheap and does not block.
	Auth() *auth.State
	// AuthChanged returns a channel that is closed when the state that Auth returned before
	// may have changed.
	AuthChanged() <-chan struct{}
}

// Checks decides about calls. Its methods may be called from many goroutines.
type Checks struct {
	*Limits
	source Source
	audit  *audit.Log
	denied *prometheus.CounterVec
}

// New returns checks by the state of source. What is denied goes to log, which may be nil, and
// to the metrics of registry, unless that is nil.
func New(source Source, log *audit.Log, registry prometheus.Registerer) *Checks {
	c := &Checks{Limits: newLimits(source), source: source, audit: log, denied: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tarry_auth_denied_total",
		Help: "Calls and operations for which the caller has no right, by the verb that is missing and the reason. In the mode report they were done.",
	}, []string{"verb", "reason"})}
	if registry != nil {
		registry.MustRegister(c.denied, c.limited)
	}
	return c
}

// Request is who makes a call, and what the audit log says of it.
type Request struct {
	Principal auth.Principal
	Claimed   string // the id in the token, if that is not accepted
	Remote    string // address and port
	Via       string // http, dashboard or beanstalkd
	Call      string
	Resource  string      // what it is about, such as a topic; may be empty
	Secret    auth.Secret // the token's text with which the call was made; may be zero
	// Certificate is that with which the call was made instead; may be zero.
	Certificate Certificate

	reportedRead atomic.Bool
	account      account
}

// seen reports whether a read of the call was reported before: several looks are taken at one.
func (r *Request) seen(verbs auth.Verbs, reported bool) bool {
	return r != nil && reported && verbs == auth.Read && r.reportedRead.Swap(true)
}

type requestKey struct{}

// NewContext returns a context in which r causes what is done.
func NewContext(ctx context.Context, r *Request) context.Context {
	return &requestContext{Context: ctx, request: r}
}

// requestContext has two values in one allocation: a request, and its principal.
type requestContext struct {
	context.Context
	request *Request
}

func (c *requestContext) Value(key any) any {
	switch key.(type) {
	case requestKey:
		return c.request
	case auth.ContextKey:
		return &c.request.Principal
	}
	return c.Context.Value(key)
}

// State returns the state by which the next check decides.
func (c *Checks) State() *auth.State { return c.source.Auth() }

// off reports whether nothing is checked. What needs the verb admin always is.
func off(s *auth.State, verbs auth.Verbs) bool {
	return s.Mode() == jobpb.AuthMode_AUTH_OFF && verbs&auth.Admin == 0
}

func now() int64 { return time.Now().UnixMilli() }

// Allow returns an error that names the verbs and the topic, unless the caller may do all of
// verbs on it.
func (c *Checks) Allow(ctx context.Context, verbs auth.Verbs, topic string) error {
	s := c.source.Auth()
	if off(s, verbs) {
		return nil
	}
	if d := s.Check(auth.FromContext(ctx), now(), verbs, topic); d != auth.Allowed {
		return c.deny(ctx, s, d, verbs, topic)
	}
	return nil
}

// AllowOn is Allow for several topics.
func (c *Checks) AllowOn(ctx context.Context, verbs auth.Verbs, topics []string) error {
	for _, topic := range topics {
		if err := c.Allow(ctx, verbs, topic); err != nil {
			return err
		}
	}
	return nil
}

// AllowSome is Allow for a call of which it is not known yet which of verbs it needs, on which
// topics: one of them on some topic.
func (c *Checks) AllowSome(ctx context.Context, verbs auth.Verbs) error {
	return c.allow(ctx, verbs, (*auth.Grants).AllowOnAny)
}

// AllowEverywhere is Allow for a call that is about all topics.
func (c *Checks) AllowEverywhere(ctx context.Context, verbs auth.Verbs) error {
	if err := c.allow(ctx, verbs, (*auth.Grants).AllowOnAll); err != nil {
		return job.Errorf(job.CodeForbidden, "%w: this call is about all topics; name one that the token is for", err)
	}
	return nil
}

// allow is Allow for a call without a topic: suffices reports whether grants are enough for it.
func (c *Checks) allow(ctx context.Context, verbs auth.Verbs, suffices func(*auth.Grants, auth.Verbs) bool) error {
	s := c.source.Auth()
	if off(s, verbs) {
		return nil
	}
	p := auth.FromContext(ctx)
	g, d := s.GrantsOf(p, now())
	switch {
	case p.IsSystem() || d == auth.Allowed && suffices(g, verbs):
		return nil
	case d == auth.Allowed:
		d = missing(p)
	}
	return c.deny(ctx, s, d, verbs, "")
}

// missing is why a principal that is known may not do something.
func missing(p auth.Principal) auth.Denial {
	if p.IsAnonymous() {
		return auth.NoToken
	}
	return auth.NotGranted
}

// reports reports whether what is denied is done all the same.
func reports(s *auth.State, verbs auth.Verbs) bool {
	return s.Mode() != jobpb.AuthMode_AUTH_ENFORCE && verbs&auth.Admin == 0
}

// deny counts and records a denial. It returns nil where it is only reported.
func (c *Checks) deny(ctx context.Context, s *auth.State, d auth.Denial, verbs auth.Verbs, topic string) error {
	reported := reports(s, verbs)
	c.Denied(ctx, d, verbs, topic, reported)
	if reported {
		return nil
	}
	return auth.Forbidden(d, verbs, topic)
}

// Denied counts and records a denial that somebody else has decided. reported is set if it was
// done all the same.
func (c *Checks) Denied(ctx context.Context, d auth.Denial, verbs auth.Verbs, topic string, reported bool) {
	c.record(ctx, denied{denial{d, verbs, reported}, topic, 1})
}

// Record writes that a call which needs verbs was made, with the code of its error, if it
// failed.
func (c *Checks) Record(r *Request, verbs auth.Verbs, failed job.Code) {
	if c.audit == nil || failed == job.CodeForbidden || failed == CodeUnauthorized { // a denial is recorded by itself
		return
	}
	record := r.record(audit.Done, verbs)
	if failed != "" {
		record.Outcome, record.Code = audit.Failed, string(failed)
	}
	c.audit.Add(record)
}

func (r *Request) record(outcome string, verbs auth.Verbs) audit.Record {
	return audit.Record{Principal: r.Principal.TokenID(), Claimed: r.Claimed, Remote: r.Remote, Via: r.Via, Call: r.Call, Resource: r.Resource, Verb: verbs.String(), Outcome: outcome}
}
