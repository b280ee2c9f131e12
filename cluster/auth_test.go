package cluster

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// putToken returns the operation that makes a token with one rule.
func putToken(t *testing.T, id string, topics, verbs []string) *jobpb.Op {
	r, err := auth.ParseRule(topics, verbs)
	require.NoError(t, err)
	token := &jobpb.Token{Id: id, Hash: bytes.Repeat([]byte{7}, 32), Rules: []*jobpb.Rule{r}}
	return &jobpb.Op{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Token: token}}}
}

func setAuthMode(mode jobpb.AuthMode) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetAuth{SetAuth: &jobpb.SetAuth{Settings: &jobpb.AuthSettings{Mode: mode}}}}
}

// Principals come with operations from any node, and the state machine decides by them.
func TestOperationsHavePrincipalsOnEveryNode(t *testing.T) {
	c := newTestCluster(t, 3)
	leader, follower := c.nodes[c.leader()], c.follower()
	as := func(id string) context.Context { return auth.NewContext(t.Context(), auth.TokenPrincipal(id)) }
	code := func(ctx context.Context, n *Node, op *jobpb.Op) job.Code {
		t.Helper()
		for {
			rs, err := n.shard.Do(ctx, []*jobpb.Op{op})
			if job.CodeOf(err) == job.CodeNotApplied && err != nil {
				continue // an election
			}
			require.NoError(t, err)
			return job.CodeOfResult(rs[0].Code)
		}
	}
	first := putToken(t, "root", []string{"*"}, auth.VerbNames())
	first.GetPutToken().Bootstrap = true
	changed := follower.AuthChanged()
	require.Empty(t, code(t.Context(), follower, first))
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Fatal("the follower is not told of the token")
	}
	require.Equal(t, job.CodeForbidden, code(t.Context(), follower, setAuthMode(jobpb.AuthMode_AUTH_REPORT)), "in every mode")
	for _, op := range []*jobpb.Op{
		putToken(t, "producer", []string{"a.*"}, []string{"add"}), putToken(t, "consumer", []string{"a.*"}, []string{"consume"}),
		putToken(t, "late", []string{"a.*"}, []string{"consume"}), setAuthMode(jobpb.AuthMode_AUTH_ENFORCE),
	} {
		require.Empty(t, code(as("root"), follower, op))
	}
	for _, n := range []*Node{leader, follower} {
		require.Empty(t, code(as("producer"), n, add("", "a.x", 0)))
		require.Equal(t, job.CodeForbidden, code(as("producer"), n, add("", "b.x", 0)))
		require.Equal(t, job.CodeForbidden, code(t.Context(), n, add("", "a.x", 0)))
		require.Equal(t, job.CodeForbidden, code(as("consumer"), n, add("", "a.x", 0)))

		_, err := n.shard.Reserve(as("producer"), &jobpb.Reserve{Topics: []string{"a.x"}, Max: 1}, time.Minute)
		require.Equal(t, job.CodeForbidden, job.CodeOf(err), "%v", err)
		jobs, err := n.shard.Reserve(as("consumer"), &jobpb.Reserve{Topics: []string{"a.x"}, Max: 1}, time.Minute)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		end := []*jobpb.Finish{finish(jobs[0]).GetFinish()}
		results, _, err := n.shard.FinishAndReserve(as("producer"), end, &jobpb.Reserve{Topics: []string{"a.x"}, Max: 1}, false)
		require.NoError(t, err)
		require.Equal(t, jobpb.Code_NOT_FOUND, results[0].Code, "it may not read the topic")
		results, _, err = n.shard.FinishAndReserve(as("consumer"), end, &jobpb.Reserve{Topics: []string{"a.x"}, Max: 1}, false)
		require.NoError(t, err)
		require.Equal(t, jobpb.Code_OK, results[0].Code, results[0].Message)
	}

	// Who waited when its token was revoked gets no job, and the next waiter does.
	type outcome struct {
		jobs []*jobpb.Reserved
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		jobs, err := follower.shard.Reserve(as("late"), &jobpb.Reserve{Topics: []string{"a.late"}, Max: 1}, 2*time.Minute)
		got <- outcome{jobs, err}
	}()
	c.awaitWaiters(1)
	require.Empty(t, code(as("root"), leader, &jobpb.Op{Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "late"}}}))
	require.Empty(t, code(as("producer"), leader, add("", "a.late", 0)))
	o := <-got
	require.Equal(t, job.CodeForbidden, job.CodeOf(o.err), "%v", o.err)
	require.Empty(t, o.jobs)

	// A consumer that hangs up leaves nothing reserved: the node gives the job back by itself.
	jobs, err := follower.shard.Reserve(as("consumer"), &jobpb.Reserve{Topics: []string{"a.late"}, Max: 1}, time.Minute)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	follower.shard.giveBack(jobs)
	jobs, err = leader.shard.Reserve(as("consumer"), &jobpb.Reserve{Topics: []string{"a.late"}, Max: 1}, time.Minute)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
}
