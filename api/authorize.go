package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"tarry/api/access"
	"tarry/api/clienttls"
	"tarry/api/httpx"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

const (
	off     = jobpb.AuthMode_AUTH_OFF
	enforce = jobpb.AuthMode_AUTH_ENFORCE
)

// admit finds out who makes a call, and refuses it if that is certainly not allowed to.
func (s *server) admit(rt route, e endpoint, x *call) error {
	switch {
	case e.need == access.Nobody:
		return job.Errorf(job.CodeForbidden, "nobody may make this call")
	case e.need.Open():
		x.identify(access.Caller{}, rt, e)
		return nil
	}
	if e.need.UnlessOff() && s.Access.State().Mode() == off {
		by, _, _ := s.callerOf(x.r, false) // for the audit log
		x.identify(by, rt, e)
		return nil
	}
	if !e.need.Early() {
		err := s.Access.AwaitReady(x.r.Context())
		switch {
		case err != nil && e.need.Fresh():
			return access.WithoutLeader(err)
		case err != nil:
			return err
		}
	}
	if err := s.decide(rt, e, x); err != nil {
		return err
	}
	if e.need.Fresh() && x.r.URL.Query().Get("consistency") != "stale" {
		// Nothing but this node decides about the call, and it may be behind.
		if err := s.Access.Fresh(x.r.Context()); err != nil {
			return err
		}
		if err := s.decide(rt, e, x); err != nil {
			return err
		}
	}
	return x.begin(e.need)
}

// begin counts a call by the limits of its token.
func (x *call) begin(n access.Need) error {
	if x.who.Principal.IsAnonymous() {
		return nil
	}
	err := x.s.Access.Begin(x.who, httpx.ConnectionOf(x.r), n.Verbs()&auth.Consume != 0)
	if x.who.Crowded() {
		x.w.Header().Set("Connection", "close")
	}
	return err
}

// decide looks at a call by the tokens that this node has.
func (s *server) decide(rt route, e endpoint, x *call) error {
	// While nothing is refused, a call does not wait for who it is from.
	ask := s.Access.State().Mode() != off || e.need.Verbs()&auth.Admin != 0
	by, denial, err := s.callerOf(x.r, ask)
	x.identify(by, rt, e)
	ctx := x.r.Context()
	if err != nil && s.deniesUnknown(x, e.need, denial) {
		return err
	}
	topic, err := url.PathUnescape(mux.Vars(x.r)["topic"])
	switch {
	case s.Access.State().Mode() != enforce && e.need.Verbs()&(auth.Add|auth.Consume|auth.Manage) != 0:
		return nil // what would be denied of it is reported once, where its topics are known
	case e.need == access.NeedCaller || err != nil: // the call itself refuses the path
		return nil
	case e.need.Everywhere():
		return s.Access.AllowEverywhere(ctx, e.need.Verbs())
	case topic != "" || e.need.Verbs()&(auth.Observe|auth.Operate|auth.Admin) != 0:
		return s.Access.Allow(ctx, e.need.Verbs(), topic)
	}
	return s.Access.AllowSome(ctx, e.need.Verbs())
}

// decideAgain decides once more about a call to operate the cluster, when size bytes of its body
// have arrived: that may take half a minute, and nothing but this node decides about the call.
func (s *server) decideAgain(x *call, size int) error {
	if x.needs.Verbs()&auth.Operate == 0 || size == 0 {
		return nil
	}
	ctx := x.r.Context()
	if x.needs.Fresh() {
		if err := s.Access.Fresh(ctx); err != nil {
			return err
		}
	}
	return s.Access.Allow(ctx, x.needs.Verbs(), "")
}

// shows reports whether an open call shows its caller what needs verbs. It denies nothing.
func (s *server) shows(x *call, verbs auth.Verbs) bool {
	state := s.Access.State()
	if state.Mode() != enforce {
		return true
	}
	by, _, err := s.callerOf(x.r, false) // it must not wait
	return err == nil && state.Check(by.Principal, time.Now().UnixMilli(), verbs, "") == auth.Allowed
}

// deniesUnknown counts a request whose token is not accepted, and reports whether it ends here.
func (s *server) deniesUnknown(x *call, n access.Need, d auth.Denial) bool {
	mode := s.Access.State().Mode()
	ends := mode == enforce || n.Verbs()&auth.Admin != 0
	if mode != off || ends {
		s.Access.Denied(x.r.Context(), d, n.Verbs(), "", !ends)
	}
	return ends
}

// identify makes by the caller of the call.
func (x *call) identify(by access.Caller, rt route, e endpoint) {
	x.who = &access.Request{
		Principal: by.Principal, Claimed: by.Claimed, Secret: by.Secret, Certificate: by.Certificate,
		Remote: x.r.RemoteAddr, Via: "http", Call: x.r.Method + " " + rt.shown, Resource: resourceOf(x.r),
	}
	if x.ofDashboard() {
		x.who.Via = "dashboard"
	}
	if e.need.Everywhere() {
		x.who.Resource = "all topics"
	}
	x.needs = e.need
	if by.Principal.IsAnonymous() && x.s.Access.State().Mode() == off && !e.need.Audited() {
		return // most calls to an open cluster; without a request in the context they are nobody's
	}
	x.r = x.r.WithContext(access.NewContext(x.r.Context(), x.who))
}

// manages makes a command of POST / one of the calls that the audit log has.
func (x *call) manages(command, resource string) {
	if x.who == nil {
		x.identify(access.Caller{}, route{shown: "/"}, endpoint{need: access.NeedManage})
	}
	x.needs = access.NeedManage
	x.who.Call, x.who.Resource = x.who.Call+" "+command, resource
}

// about names for the audit log what a call is about whose path does not say it.
func (x *call) about(resource func() string) {
	if x.who != nil && x.needs.Audited() {
		x.who.Resource = resource()
	}
}

// callerOf returns who makes a request, as access.Identity does. What a browser adds by itself
// to the requests of any page, a certificate or a password that it keeps, counts for nothing in
// those of a page of another origin.
func (s *server) callerOf(r *http.Request, ask bool) (access.Caller, auth.Denial, error) {
	h, cert := r.Header, certificateOf(r)
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	kept := strings.EqualFold(scheme, "Basic")
	if (kept || cert.TokenID != "") && httpx.OfOtherPage(r) {
		cert = access.Certificate{}
		if kept {
			h = h.Clone()
			h.Del("Authorization")
		}
	}
	return s.Access.Caller(r.Context(), access.Shown{Header: h, Certificate: cert, Connection: httpx.ConnectionOf(r), Remote: r.RemoteAddr}, ask)
}

// certificateOf returns the certificate of a request that names a token.
func certificateOf(r *http.Request) access.Certificate {
	if r.TLS == nil {
		return access.Certificate{}
	}
	return access.CertificateOf(clienttls.TokenOf(r.TLS))
}

// resourceOf names what the path of a request is about.
func resourceOf(r *http.Request) string {
	for name, value := range mux.Vars(r) {
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		switch name {
		case "topic", "namespace":
			return name + " " + value
		case "name":
			return "schedule " + value
		}
		return value
	}
	return ""
}

// namedJobs is how many jobs of a list are named in the audit log.
const namedJobs = 5

// resourceOfOps names what a list of operations is about: the first few jobs, or the topics that
// they come into, and how many there are.
func resourceOfOps(ops []*jobpb.Op) string {
	var names []string
	for _, op := range ops {
		name := oplog.RefOf(op).GetId()
		if add := op.GetImportJob().GetAdd(); add != nil {
			name = "topic " + add.Topic
		}
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == namedJobs {
			names = append(names, "...")
			break
		}
		names = append(names, name)
	}
	word := "jobs"
	if len(ops) == 1 {
		word = "job"
	}
	return fmt.Sprintf("%d %s: %s", len(ops), word, strings.Join(names, ", "))
}

// resourceOfQuery names which jobs a query finds. The values of headers are not for the log.
func resourceOfQuery(q *jobpb.JobQuery) string {
	parts := []string{"jobs of all topics"}
	if q.Topic != "" {
		parts[0] = "jobs of topic " + q.Topic
	}
	if prefix := q.Filter.GetIdPrefix(); prefix != "" {
		parts = append(parts, "id_prefix "+prefix)
	}
	for _, h := range q.Filter.GetHeaders() {
		parts = append(parts, "header "+h.Name)
	}
	return strings.Join(parts, ", ")
}

// unauthorized returns what a caller without a token gets instead of forbidden: it must first
// say who it is.
func (x *call) unauthorized(e *job.Error) *job.Error {
	asks := x.s.Access.State().Mode() == enforce || x.needs.Verbs()&auth.Admin != 0
	if e.Code == job.CodeForbidden && asks && !x.needs.Open() && (x.who == nil || x.who.Principal.IsAnonymous() || x.reads() && x.ended()) {
		return asError(access.Unauthorized())
	}
	return e
}

// ended reports whether the token of the call is not accepted any more: a read is decided by
// tokens that may be newer than those with which the call was let in.
func (x *call) ended() bool {
	_, d := x.s.Access.State().GrantsOf(x.who.Principal, time.Now().UnixMilli())
	return d == auth.UnknownToken || d == auth.ExpiredToken
}

// record writes the call to the audit log, if it is of the kind that is recorded.
func (x *call) record(err error) {
	if x.who == nil || !x.needs.Audited() {
		return
	}
	failed := job.Code("")
	if err != nil {
		failed = asError(err).Code
	}
	x.s.Access.Record(x.who, x.needs.Verbs(), failed)
}

// observing lets those who may observe use a handler that is no route.
func (s *server) observing(h http.Handler) http.Handler {
	e := endpoint{need: access.NeedObserve}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := newCall(s, w, r)
		defer x.close()
		if err := s.admit(route{path: r.URL.Path, shown: r.URL.Path}, e, x); err != nil {
			x.fail(err)
			_ = x.send() // fails if the client is gone
			return
		}
		h.ServeHTTP(w, r)
	})
}

// checkedQueue is the queue with the checks of access.
type checkedQueue struct {
	Queue
	checked *access.Queue
}

// Checked returns q with the checks of access, for the callers of the contexts.
func Checked(q Queue, control *access.Control) Queue { return checkedQueue{q, control.Queue(q)} }

// Do implements Queue.
func (q checkedQueue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	return q.checked.Do(ctx, ops)
}

// Reserve implements Queue.
func (q checkedQueue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	return q.checked.Reserve(ctx, r, wait)
}

// FinishAndReserve implements Queue.
func (q checkedQueue) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	return q.checked.FinishAndReserve(ctx, finishes, r, waits)
}

// DeleteAndReserve implements Queue.
func (q checkedQueue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	return q.checked.DeleteAndReserve(ctx, d, r)
}

// Read implements Queue.
func (q checkedQueue) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	return q.checked.Read(ctx, r, stale)
}
