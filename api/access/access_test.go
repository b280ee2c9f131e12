package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/api/audit"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// changing is a state that a test changes.
type changing struct {
	mu      sync.Mutex
	state   *auth.State
	changed chan struct{}
}

func newChanging(s *auth.State) *changing {
	return &changing{state: s, changed: make(chan struct{})}
}

func (c *changing) Auth() *auth.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *changing) AuthChanged() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *changing) set(s *auth.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
	close(c.changed)
	c.changed = make(chan struct{})
}

func secretFor(t *testing.T, id string) auth.Secret {
	sum := sha256.Sum256([]byte(id))
	s, err := auth.Generate(bytes.NewReader(sum[:]), id)
	require.NoError(t, err)
	return s
}

func withToken(t *testing.T, s *auth.State, id, topics, verbs string) *auth.State {
	r, err := auth.ParseRule(strings.Fields(topics), strings.Fields(verbs))
	require.NoError(t, err)
	return s.WithToken(s.Revision+1, auth.NewToken(&jobpb.Token{Id: id, Hash: secretFor(t, id).Hash(), Rules: []*jobpb.Rule{r}}))
}

func enforced() *auth.State {
	return auth.NewState(1, true, &jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE}, nil)
}

// A token that was made on another node is known here before it is refused.
func TestAnUnknownTokenIsAskedForAtTheLeader(t *testing.T) {
	source := newChanging(enforced())
	ahead := withToken(t, source.Auth(), "new", "mail", "add")
	asked := 0
	var leads error
	i := NewIdentity(source, func(context.Context) (uint64, error) {
		if asked++; leads != nil {
			return 0, leads
		}
		go source.set(ahead) // the log brings it here later
		return ahead.Revision, nil
	})
	p, err := i.Of(t.Context(), secretFor(t, "new"), "10.0.0.1:5", true)
	require.NoError(t, err)
	require.Equal(t, "new", p.TokenID())
	_, err = i.Of(t.Context(), secretFor(t, "new"), "10.0.0.1:5", true)
	require.NoError(t, err)
	require.Equal(t, 1, asked, "a token that is known is not asked for")

	for range 5 { // the leader is asked once
		_, err = i.Of(t.Context(), secretFor(t, "nobody"), "10.0.0.1:5", true)
		require.ErrorIs(t, err, auth.ErrUnknown)
	}
	require.Equal(t, 2, asked)

	leads = job.NotApplied("there is no leader")
	_, err = i.Of(t.Context(), secretFor(t, "other"), "10.0.0.1:5", true)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "nobody knows whether the token is valid")
}

// The audit log says which token an unknown one claims to be, and nothing of its text.
func TestTheClaimOfATokenThatIsNotAcceptedIsRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c := Open(Options{Source: newChanging(withToken(t, enforced(), "shop", "mail", "add")), Audit: log})
	defer c.Close()
	claims := func(secret auth.Secret, cert Certificate) Caller {
		h := http.Header{}
		if secret.ID() != "" {
			h.Set("Authorization", "Bearer "+secret.Text())
		}
		by, denial, err := c.Caller(t.Context(), Shown{Header: h, Certificate: cert, Remote: "10.0.0.1:5"}, false)
		if err != nil {
			r := &Request{Principal: by.Principal, Claimed: by.Claimed, Remote: "10.0.0.1:5", Via: "http", Call: "GET /v1/stats"}
			c.Denied(NewContext(t.Context(), r), denial, auth.Read, "", false)
		}
		return by
	}
	nobody := secretFor(t, "nobody")
	require.Equal(t, Caller{Claimed: "nobody"}, claims(nobody, Certificate{}))
	require.Equal(t, Caller{Claimed: "gone"}, claims(auth.Secret{}, CertificateOf("gone", time.Now().Add(time.Hour))))
	require.Empty(t, claims(secretFor(t, "shop"), Certificate{}).Claimed)
	log.Close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"principal":"","claimed":"nobody","remote"`)
	require.Contains(t, string(text), `"claimed":"gone"`)
	require.NotContains(t, string(text), "tarry_")
	require.NotContains(t, string(text), nobody.Text()[15:40])
}

// One address cannot make a node ask for more than it may, and others are not affected.
func TestAskingIsLimitedByAddress(t *testing.T) {
	asked := 0
	i := NewIdentity(newChanging(enforced()), func(context.Context) (uint64, error) { asked++; return 0, nil })
	guess := func(n int, from string) {
		_, err := i.Of(t.Context(), secretFor(t, "g"+strings.Repeat("x", n%20)+string(rune('a'+n/20))), from, true)
		if !errors.Is(err, auth.ErrUnknown) {
			require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "nobody knows whether the token is valid")
		}
	}
	guess(0, "10.0.0.1:1")
	_, err := i.Of(t.Context(), secretFor(t, "ga"), "10.0.0.1:1", true)
	require.ErrorIs(t, err, auth.ErrUnknown)
	for n := range 400 {
		guess(n, "10.0.0.1:"+string(rune('1'+n%9)))
	}
	require.GreaterOrEqual(t, asked, askBurst)
	require.Less(t, asked, 400)
	before := asked
	guess(401, "10.0.0.2:1")
	require.Equal(t, before+1, asked)

	for n := range 2 * maxUnknown { // what is remembered is bounded
		i.remember(sha256.Sum256([]byte{byte(n), byte(n >> 8)}))
	}
	require.LessOrEqual(t, len(i.unknown), maxUnknown)
}

func TestWhatIsNotAllowedAnyMoreEnds(t *testing.T) {
	source := newChanging(withToken(t, enforced(), "worker", "mail", "consume"))
	c := Open(Options{Source: source})
	defer c.Close()
	ctx := auth.NewContext(t.Context(), auth.TokenPrincipal("worker"))
	mail, stop := c.WhileAllowed(ctx, auth.Consume, []string{"mail"})
	defer stop()
	sms, stop := c.WhileAllowed(ctx, auth.Consume, []string{"mail", "sms"})
	defer stop()
	require.True(t, Revoked(sms), "it never was allowed")
	source.set(withToken(t, source.Auth(), "other", "mail", "consume"))
	source.set(withToken(t, source.Auth(), "worker", "mail sms", "consume"))
	require.NoError(t, mail.Err())
	source.set(source.Auth().WithoutToken(source.Auth().Revision+1, "worker"))
	<-mail.Done()
	require.True(t, Revoked(mail))
	stopped, stop := c.WhileAllowed(t.Context(), auth.Consume, nil)
	stop()
	require.ErrorIs(t, stopped.Err(), context.Canceled)
	require.False(t, Revoked(stopped))
}

// A token that ends while something waits ends that, without a change of the state.
func TestWhatWaitsEndsWhenItsTokenExpires(t *testing.T) {
	s := enforced()
	rule := &jobpb.Rule{Topics: []string{"mail"}, Verbs: []jobpb.Verb{jobpb.Verb_VERB_CONSUME}}
	s = s.WithToken(2, auth.NewToken(&jobpb.Token{Id: "brief", Rules: []*jobpb.Rule{rule}, ExpiresMs: time.Now().Add(50 * time.Millisecond).UnixMilli()}))
	c := Open(Options{Source: newChanging(s)})
	defer c.Close()
	ctx, stop := c.WhileAllowed(auth.NewContext(t.Context(), auth.TokenPrincipal("brief")), auth.Consume, []string{"mail"})
	defer stop()
	<-ctx.Done()
	require.True(t, Revoked(ctx))
}

func TestDenialsAreCountedAndRecorded(t *testing.T) {
	for _, mode := range []jobpb.AuthMode{jobpb.AuthMode_AUTH_OFF, jobpb.AuthMode_AUTH_REPORT, jobpb.AuthMode_AUTH_ENFORCE} {
		path := filepath.Join(t.TempDir(), "audit.log")
		log, err := audit.Open(path, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		registry := prometheus.NewRegistry()
		state := withToken(t, auth.NewState(1, true, &jobpb.AuthSettings{Mode: mode}, nil), "shop", "mail", "add")
		c := Open(Options{Source: newChanging(state), Audit: log, Registry: registry})
		shop := NewContext(t.Context(), &Request{Principal: auth.TokenPrincipal("shop"), Remote: "10.0.0.1:5", Via: "http", Call: "POST /v1/jobs"})
		require.NoError(t, c.Allow(shop, auth.Add, "mail"))
		err = c.Allow(shop, auth.Add, "sms")
		require.Equal(t, mode == jobpb.AuthMode_AUTH_ENFORCE, err != nil)
		require.Equal(t, mode == jobpb.AuthMode_AUTH_ENFORCE, c.Allow(t.Context(), auth.Add, "mail") != nil)
		require.Error(t, c.Allow(shop, auth.Admin, ""), "in every mode")
		c.Close()
		log.Close()
		text, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		sms := `"principal":"shop","remote":"10.0.0.1:5","via":"http","call":"POST /v1/jobs","resource":"topic sms","verb":"add","outcome":"`
		counted := testutil.ToFloat64(c.denied.WithLabelValues("add", "not_granted"))
		switch mode {
		case jobpb.AuthMode_AUTH_OFF:
			require.NotContains(t, string(text), "sms")
			require.Zero(t, counted)
		case jobpb.AuthMode_AUTH_REPORT:
			require.Contains(t, string(text), sms+`reported","reason":"not_granted"`)
			require.EqualValues(t, 1, counted)
			require.EqualValues(t, 1, testutil.ToFloat64(c.denied.WithLabelValues("add", "no_token")))
		default:
			require.Contains(t, string(text), sms+`denied","reason":"not_granted"`)
			require.ErrorContains(t, err, `add on topic "sms"`)
			require.EqualValues(t, 1, counted)
		}
		require.Contains(t, string(text), `"verb":"admin","outcome":"denied"`)
	}
}

// A batch writes no more to the audit log than a call does.
func TestTheDenialsOfABatchAreOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c := New(newChanging(withToken(t, enforced(), "shop", "mail", "add read")), log, nil)
	q := c.Queue(denying{})
	shop := NewContext(t.Context(), &Request{Principal: auth.TokenPrincipal("shop"), Call: "POST /v1/jobs/batch"})
	_, err = q.Do(shop, adds(1000))
	require.NoError(t, err)
	a, err := q.Read(shop, &jobpb.Read{What: &jobpb.Read_JobsById{JobsById: &jobpb.JobsByID{Ids: make([]string, 1000)}}}, false)
	require.NoError(t, err)
	for _, j := range a.ById {
		require.Zero(t, j.Seq)
	}
	log.Close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], `"resource":"topic sms","verb":"add","outcome":"denied","reason":"not_granted","times":999}`)
	require.Contains(t, lines[1], `"resource":"topic sms","verb":"add","outcome":"denied","reason":"expired_token"}`)
	require.Contains(t, lines[2], `"verb":"read","outcome":"denied","reason":"not_granted","times":1000}`)
	require.EqualValues(t, 999, testutil.ToFloat64(c.denied.WithLabelValues("add", "not_granted")))
}

// denying is a queue that denies what is done, the last for another reason, and shows jobs of
// topics that nobody may read.
type denying struct{ queue }

func (denying) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i := range results {
		d := &jobpb.Denied{Reason: uint32(auth.NotGranted), Verbs: uint32(auth.Add), Topic: "sms"}
		if i == len(ops)-1 {
			d.Reason = uint32(auth.ExpiredToken)
		}
		results[i] = &jobpb.Result{Code: jobpb.Code_FORBIDDEN, Details: &jobpb.Details{Denied: d}}
	}
	return results, nil
}

func (denying) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	a := &jobpb.ReadResult{}
	for i := range r.GetJobsById().GetIds() {
		a.ById = append(a.ById, &jobpb.Job{Seq: uint64(i + 1), Topic: "sms"})
	}
	return a, nil
}

// A read that this package does not know is not for everybody.
func TestEveryReadIsChecked(t *testing.T) {
	c := Open(Options{Source: newChanging(withToken(t, enforced(), "reader", "mail", "read add manage consume push"))})
	defer c.Close()
	ctx := auth.NewContext(t.Context(), auth.TokenPrincipal("reader"))
	fields := (&jobpb.Read{}).ProtoReflect().Descriptor().Oneofs().ByName("what").Fields()
	for n := range fields.Len() {
		f := fields.Get(n)
		r := &jobpb.Read{}
		if f.Message() != nil {
			r.ProtoReflect().Set(f, r.ProtoReflect().NewField(f))
		} else if f.Kind().String() == "string" {
			r.ProtoReflect().Set(f, protoreflect.ValueOfString("sms"))
		} else {
			r.ProtoReflect().Set(f, r.ProtoReflect().NewField(f))
		}
		a, err := c.Queue(leaky{}).Read(ctx, r, false)
		if err != nil {
			require.Equal(t, job.CodeForbidden, job.CodeOf(err), f.Name())
			continue
		}
		require.NotContains(t, a.String(), "sms", f.Name())
	}
	_, err := c.Queue(leaky{}).Read(ctx, &jobpb.Read{}, false)
	require.Equal(t, job.CodeForbidden, job.CodeOf(err))
}

// leaky is a queue in which all is of the topic sms, or about it.
type leaky struct{ queue }

func (leaky) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	j := &jobpb.Job{Seq: 1, Topic: "sms"}
	info := &jobpb.ScheduleInfo{Name: "s", Schedule: &jobpb.Schedule{Job: &jobpb.Add{Topic: "sms"}}, State: &jobpb.ScheduleState{}}
	topics := []*jobpb.Topic{{Name: "sms"}}
	switch what := r.What.(type) {
	case *jobpb.Read_Job, *jobpb.Read_JobSeq, *jobpb.Read_Peek:
		return &jobpb.ReadResult{Job: j}, nil
	case *jobpb.Read_JobsById:
		return &jobpb.ReadResult{ById: []*jobpb.Job{j}}, nil
	case *jobpb.Read_Jobs:
		return &jobpb.ReadResult{Jobs: &jobpb.JobPage{Jobs: []*jobpb.Job{j}}}, nil
	case *jobpb.Read_Topics:
		if what.Topics.After == "" {
			return &jobpb.ReadResult{Topics: topics}, nil
		}
	case *jobpb.Read_ConfiguredTopics:
		if what.ConfiguredTopics.After == "" {
			return &jobpb.ReadResult{Topics: topics}, nil
		}
	case *jobpb.Read_Schedules:
		if what.Schedules.After == "" {
			return &jobpb.ReadResult{Schedules: []*jobpb.ScheduleInfo{info}}, nil
		}
	case *jobpb.Read_Schedule:
		return &jobpb.ReadResult{Schedule: info}, nil
	case *jobpb.Read_Explain:
		return &jobpb.ReadResult{Explanation: &jobpb.Explanation{Topic: "sms"}}, nil
	case *jobpb.Read_DueTopics:
		return &jobpb.ReadResult{DueTopics: &jobpb.DueTopics{Topics: []*jobpb.DueTopic{{Topic: "sms"}}}}, nil
	case *jobpb.Read_DeadTopics:
		return &jobpb.ReadResult{DeadTopics: &jobpb.DeadTopics{Groups: []*jobpb.DeadGroup{{Topic: "sms"}}}}, nil
	case *jobpb.Read_Topic:
		return &jobpb.ReadResult{Topic: topics[0]}, nil
	}
	return &jobpb.ReadResult{}, nil
}
