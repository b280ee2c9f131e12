package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

func rated(name string, milli uint64) *jobpb.Op {
	return putNamespace(&jobpb.Namespace{Name: name, TopicPrefix: name + ".", Quotas: &jobpb.Quotas{RateMilli: &milli}})
}

func anybodyMay(*jobpb.Op, *jobpb.Add) bool { return true }

// takeFrom takes tokens that are not given back.
func takeFrom(q *rateQuotas, all *fsm.Namespaces, ops []*jobpb.Op, now time.Time) error {
	_, err := q.take(all, ops, anybodyMay, now)
	return err
}

// thenOf finishes a job that may not exist, and adds n jobs to a topic.
func thenOf(topic string, n int) *jobpb.Op {
	op := &jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "nope", Seq: 1, Generation: 1}}}
	for range n {
		op.Adds = append(op.Adds, add("", topic, 0).GetAdd())
	}
	return &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: op}}
}

func TestARateIsHeldOverTime(t *testing.T) {
	all := machineWith(t, rated("a", 2000), rated("slow", 100)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	one := func(topic string) error { return takeFrom(&q, all, []*jobpb.Op{add("", topic, 0)}, now) }
	require.NoError(t, one("a.x"))
	require.NoError(t, one("a.y"), "a second of it at once")
	err := one("a.x")
	require.Equal(t, job.CodeOverQuota, job.CodeOf(err))
	require.ErrorContains(t, err, `namespace "a"`)
	require.Equal(t, 500*time.Millisecond, err.(*job.Error).RetryAfter)
	require.NoError(t, one("b.x"), "in no namespace")
	require.NoError(t, one("slow.x"), "a rate below 1 lets one through")
	require.Equal(t, 10*time.Second, one("slow.x").(*job.Error).RetryAfter)
	now = now.Add(500 * time.Millisecond)
	require.NoError(t, one("a.x"))
	require.Error(t, one("a.x"))
	now = now.Add(time.Hour)
	require.NoError(t, one("a.x"))
	require.NoError(t, one("a.x"))
	require.Error(t, one("a.x"), "an hour of silence is no hour of adds")
}

func TestABatchIsWithinTheRateOrRefusedAsAWhole(t *testing.T) {
	all := machineWith(t, rated("a", 2000)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	batch := []*jobpb.Op{add("", "a.x", 0), add("", "a.x", 0), add("", "a.x", 0), add("", "a.x", 0)}
	require.NoError(t, takeFrom(&q, all, batch, now), "it may take more than there is")
	require.Error(t, takeFrom(&q, all, batch[:1], now.Add(time.Second)), "and the next one waits for that")
	require.NoError(t, takeFrom(&q, all, batch[:2], now.Add(2*time.Second)))
	mixed := []*jobpb.Op{add("", "other", 0), add("", "a.x", 0)}
	require.Error(t, takeFrom(&q, all, mixed, now.Add(2*time.Second)))
	finish := &jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: 1}}, Adds: []*jobpb.Add{{Topic: "a.x"}}}
	require.NoError(t, takeFrom(&q, all, []*jobpb.Op{{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: finish}}}, now.Add(2*time.Second)), "a finish is not refused")
	require.Error(t, takeFrom(&q, all, batch[:1], now.Add(2900*time.Millisecond)), "but what follows it counts")
}

func TestAnImportTakesOfTheRate(t *testing.T) {
	all := machineWith(t, rated("a", 1000)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	imported := &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: &jobpb.ImportJob{Add: add("", "a.x", 0).GetAdd()}}}
	require.NoError(t, takeFrom(&q, all, []*jobpb.Op{imported}, now))
	require.Equal(t, job.CodeOverQuota, job.CodeOf(takeFrom(&q, all, []*jobpb.Op{imported}, now)))
}

// A change of some namespace gives no tokens back.
func TestOtherRatesKeepTheirTokens(t *testing.T) {
	m := machineWith(t, rated("a", 1000))
	var q rateQuotas
	now := time.Unix(1000, 0)
	ops := []*jobpb.Op{add("", "a.x", 0)}
	require.NoError(t, takeFrom(&q, m.Namespaces(), ops, now))
	changed := machineWith(t, rated("a", 1000), rated("b", 1000)).Namespaces()
	require.Error(t, takeFrom(&q, changed, ops, now))
	require.NoError(t, takeFrom(&q, machineWith(t).Namespaces(), ops, now), "without namespaces there is no rate")
}

func TestWhatWasNotDoneTakesNothingOfTheRate(t *testing.T) {
	all := machineWith(t, rated("a", 2000)).Namespaces()
	now := time.Unix(1000, 0)
	done, refused, found := &jobpb.Result{}, &jobpb.Result{Code: jobpb.Code_OVER_QUOTA}, &jobpb.Result{Existing: true}
	atomic := &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{Adds: []*jobpb.Add{{Topic: "a.x"}, {Topic: "a.y"}}}}}
	run := &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "nightly", Now: true}}}
	planned := &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "nightly"}}}
	for name, c := range map[string]struct {
		ops     []*jobpb.Op
		results []*jobpb.Result
		err     error
		left    int // of two tokens
	}{
		"done":           {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, []*jobpb.Result{done, done}, nil, 0},
		"one refused":    {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, []*jobpb.Result{refused, done}, nil, 1},
		"other refused":  {[]*jobpb.Op{add("", "x", 0), add("", "a.y", 0)}, []*jobpb.Result{refused, done}, nil, 1},
		"all refused":    {[]*jobpb.Op{thenOf("a.x", 1000), add("", "a.y", 0)}, []*jobpb.Result{refused, refused}, nil, 2},
		"not applied":    {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, nil, job.NotApplied("no leader"), 2},
		"unknown":        {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, nil, job.Unknown("timeout"), 0},
		"one found":      {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, []*jobpb.Result{found, done}, nil, 1},
		"an atomic one":  {[]*jobpb.Op{atomic}, []*jobpb.Result{{Details: &jobpb.Details{Parts: []*jobpb.Result{done, found}}}}, nil, 1},
		"a run":          {[]*jobpb.Op{run}, []*jobpb.Result{done}, nil, 1},
		"a run again":    {[]*jobpb.Op{run}, []*jobpb.Result{found}, nil, 2},
		"a planned run":  {[]*jobpb.Op{planned}, []*jobpb.Result{done}, nil, 2},
		"a part unknown": {[]*jobpb.Op{add("", "a.x", 0), add("", "a.y", 0)}, []*jobpb.Result{refused}, job.Unknown("timeout"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := rateQuotas{topicOf: func(name string) string { return map[string]string{"nightly": "a.n"}[name] }}
			tokens, err := q.take(all, c.ops, anybodyMay, now)
			require.NoError(t, err)
			q.giveBack(tokens, c.results, c.err)
			require.InDelta(t, c.left, q.of["a"].Left, 1e-9)
		})
	}
}

// Who may not add in a namespace neither takes its tokens nor learns that it has none.
func TestTheRateIsOfThoseWhoMayAdd(t *testing.T) {
	all := machineWith(t, rated("a", 1000), rated("b", 1000)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	onlyB := func(_ *jobpb.Op, add *jobpb.Add) bool { return add.Topic == "b.x" }
	foreign := []*jobpb.Op{add("", "a.x", 0), thenOf("a.x", 5), {Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{
		Adds: []*jobpb.Add{{Topic: "b.x"}, {Topic: "a.x"}}}}}}
	tokens, err := q.take(all, foreign, onlyB, now)
	require.NoError(t, err)
	require.Empty(t, tokens, "what is refused as a whole takes nothing of its own namespace either")
	require.NoError(t, takeFrom(&q, all, []*jobpb.Op{add("", "a.x", 0)}, now))
	_, err = q.take(all, foreign, onlyB, now)
	require.NoError(t, err)
}

// What follows finishes is never refused, so there is a bound on how long others wait for it.
func TestTheDebtOfWhatFollowsFinishesIsBounded(t *testing.T) {
	all := machineWith(t, rated("a", 5000)).Namespaces()
	var q rateQuotas
	now := time.Unix(1000, 0)
	for range 20 {
		require.NoError(t, takeFrom(&q, all, []*jobpb.Op{thenOf("a.x", 1000)}, now))
	}
	err := takeFrom(&q, all, []*jobpb.Op{add("", "a.x", 0)}, now)
	require.Equal(t, maxThenDebt+200*time.Millisecond, err.(*job.Error).RetryAfter)
	require.NoError(t, takeFrom(&q, all, []*jobpb.Op{add("", "a.x", 0)}, now.Add(maxThenDebt+200*time.Millisecond)))
}

func TestAnotherRateBeginsWithoutDebt(t *testing.T) {
	var q rateQuotas
	now := time.Unix(1000, 0)
	one := []*jobpb.Op{add("", "a.x", 0)}
	before := machineWith(t, rated("a", 1000)).Namespaces()
	require.NoError(t, takeFrom(&q, before, append(one, one...), now))
	require.Error(t, takeFrom(&q, before, one, now))
	require.NoError(t, takeFrom(&q, machineWith(t, rated("a", 2000)).Namespaces(), one, now))
}

// With a rate that brings no second token during the test.
func TestATenantDoesNotExhaustTheRateOfAnother(t *testing.T) {
	c := newTestCluster(t, 1)
	as := func(id string) context.Context { return auth.NewContext(t.Context(), auth.TokenPrincipal(id)) }
	do := func(id string, ops ...*jobpb.Op) ([]*jobpb.Result, error) {
		for {
			rs, err := c.nodes[0].shard.Do(as(id), ops)
			if err == nil || job.CodeOf(err) != job.CodeNotApplied {
				return rs, err
			}
		}
	}
	root := putToken(t, "root", []string{"*"}, auth.VerbNames())
	root.GetPutToken().Bootstrap = true
	for _, op := range []*jobpb.Op{root, rated("v", 1), putToken(t, "tv", []string{"v.*"}, []string{"add", "consume"}),
		putToken(t, "ta", []string{"ta.*"}, []string{"add", "consume"}), setAuthMode(jobpb.AuthMode_AUTH_ENFORCE)} {
		rs, err := do("root", op)
		require.NoError(t, err)
		require.Equal(t, jobpb.Code_OK, rs[0].Code, rs[0].Message)
	}
	attack := func() {
		rs, err := do("ta", add("", "v.a", 0), add("", "v.a", 0), thenOf("v.a", 3))
		require.NoError(t, err)
		for _, r := range rs {
			require.Equal(t, jobpb.Code_FORBIDDEN, r.Code)
			require.NotContains(t, r.Message, `namespace`)
		}
	}
	attack()
	rs, err := do("tv", thenOf("v.a", 3))
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_NOT_FOUND, rs[0].Code)
	rs, err = do("tv", add("", "v.a", 0))
	require.NoError(t, err, "the token is still there")
	require.Equal(t, jobpb.Code_OK, rs[0].Code, rs[0].Message)
	_, err = do("tv", add("", "v.a", 0))
	require.Equal(t, job.CodeOverQuota, job.CodeOf(err))
	attack() // nor does it learn that the rate is used up
}
