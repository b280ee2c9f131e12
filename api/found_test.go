package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

// order is a queue with jobs of order 5 in two topics, one in each state, and one of order 6.
func order(t *testing.T) *rig {
	r := newRig(t)
	r.index("mail", `["order"]`)
	r.index("push", `["order"]`)
	add := func(topic, id, order, more string) {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"id":%q,"body":1,"headers":{"order":%q}%s}`, topic, id, order, more))
	}
	add("mail", "dead", "5", "")
	r.ok("/v1/reserve", `{"topics":["mail"]}`)
	r.ok("/v1/jobs/dead/bury", `{"reason":"no route"}`)
	add("push", "reserved", "5", "")
	r.ok("/v1/reserve", `{"topics":["push"]}`)
	add("push", "delayed", "5", `,"delay":60`)
	add("mail", "ready", "5", "")
	add("mail", "other", "6", `,"delay":60`)
	add("none", "unindexed", "5", `,"delay":60`)
	return r
}

func TestJobsFoundByHeaderAreDeleted(t *testing.T) {
	for query, want := range map[string]struct {
		deleted float64
		left    [][]string
	}{
		"?header.order=5&all=true":                  {4, [][]string{{}}},
		"?header.order=5&max=9":                     {4, [][]string{{}}},
		"?header.order=5&all=true&topic=mail":       {2, [][]string{{"reserved", "delayed"}}},
		"?header.order=5&all=true&state=delayed":    {1, [][]string{{"dead", "reserved", "ready"}}},
		"?header.order=5&all=true&reason=route":     {1, [][]string{{"reserved", "delayed", "ready"}}},
		"?header.order=5&header.tenant=x&all=true":  {0, [][]string{{"dead", "reserved", "delayed", "ready"}}},
		"?id_prefix=re&all=true":                    {2, [][]string{{"dead", "delayed"}}},
		"?header.order=5&all=true&state=ready&max=": {-1, nil},
		"?header.order=7&all=true":                  {0, [][]string{{"dead", "reserved", "delayed", "ready"}}},
	} {
		t.Run(query, func(t *testing.T) {
			r := order(t)
			w := r.do("DELETE", "/v1/jobs"+query, "")
			if want.left == nil {
				refused(t, w, 400, job.CodeInvalid, "max")
				return
			}
			answer := decoded(t, w)
			require.Equal(t, []any{want.deleted, nil, nil, nil}, []any{answer["deleted"], answer["skipped"], answer["more"], answer["incomplete"]})
			require.Equal(t, want.left, r.pages("/v1/jobs?header.order=5"))
			require.Equal(t, [][]string{{"other"}}, r.pages("/v1/jobs?header.order=6"))
		})
	}
}

func TestDeletingGoesOnWhereItEnded(t *testing.T) {
	r := order(t)
	answer := decoded(t, r.do("DELETE", "/v1/jobs?header.order=5&max=3", ""))
	require.Equal(t, []any{3.0, true}, []any{answer["deleted"], answer["more"]})
	answer = decoded(t, r.do("DELETE", "/v1/jobs?header.order=5&max=3&cursor="+answer["next"].(string), ""))
	require.Equal(t, []any{1.0, nil}, []any{answer["deleted"], answer["more"]})
}

func TestJobsFoundByHeaderAreUpdated(t *testing.T) {
	r := order(t)
	answer := decoded(t, r.do("PATCH", "/v1/jobs?header.order=5&all=true", `{"priority":7,"body":{"new":true},"backoff":[5],"headers":{"order":"8"}}`))
	require.Equal(t, []any{3.0, 1.0, nil}, []any{answer["updated"], answer["skipped"], answer["more"]})
	require.Contains(t, answer["reason"], `job "reserved" is reserved`)
	require.Equal(t, [][]string{{"dead", "delayed", "ready"}}, r.pages("/v1/jobs?header.order=8"))
	for _, id := range []string{"dead", "delayed", "ready"} {
		j := decoded(t, r.do("GET", "/v1/jobs/"+id, ""))
		require.Equal(t, []any{7.0, map[string]any{"new": true}}, []any{j["priority"], j["body"]})
		require.NotNil(t, j["backoff"])
	}
	require.Equal(t, 1024.0, decoded(t, r.do("GET", "/v1/jobs/other", ""))["priority"])

	answer = decoded(t, r.do("PATCH", "/v1/jobs?header.order=8&all=true&state=delayed", `{"delay":120}`))
	require.Equal(t, []any{1.0, nil}, []any{answer["updated"], answer["skipped"]})
}

func TestJobsFoundByHeaderAreKicked(t *testing.T) {
	r := order(t)
	answer := decoded(t, r.do("POST", "/v1/jobs/kick?header.order=5&all=true", ""))
	require.Equal(t, []any{2.0, 2.0, nil}, []any{answer["kicked"], answer["skipped"], answer["more"]})
	require.Equal(t, [][]string{{"dead", "delayed", "ready"}}, r.pages("/v1/jobs?header.order=5&state=ready"))
	answer = decoded(t, r.do("POST", "/v1/jobs/kick?header.order=6&all=true", `{"to_topic":"push"}`))
	require.Equal(t, 1.0, answer["kicked"])
	require.Equal(t, [][]string{{"other"}}, r.pages("/v1/jobs?header.order=6&topic=push"))
}

// More jobs than one step changes, and an update that is so large that a step has few.
func TestChangesTakeSteps(t *testing.T) {
	r := newRig(t)
	r.index("mail", `["order"]`)
	const jobs = sweepStep + 5
	for range jobs {
		r.ok("/v1/jobs", `{"topic":"mail","body":1,"headers":{"order":"5"}}`)
	}
	require.Equal(t, float64(jobs), decoded(t, r.do("PATCH", "/v1/jobs?header.order=5&all=true", `{"priority":1}`))["updated"])
	require.Equal(t, float64(jobs), decoded(t, r.do("DELETE", "/v1/jobs?header.order=5&all=true", ""))["deleted"])
}

func TestChangesThatAreRefused(t *testing.T) {
	r := order(t)
	for _, c := range []struct{ method, path, body, says string }{
		{"DELETE", "/v1/jobs", "", "max is missing"},
		{"DELETE", "/v1/jobs?header.order=5", "", "max is missing"},
		{"DELETE", "/v1/jobs?all=true", "", "id_prefix or header.NAME is missing"},
		{"DELETE", "/v1/jobs?header.order=&all=true", "", "header.order is empty"},
		{"DELETE", "/v1/jobs?header.order=5&max=1&all=true", "", "max and all are both given"},
		{"DELETE", "/v1/jobs?header.order=5&all=false", "", `all is "false"`},
		{"DELETE", "/v1/jobs?header.order=5&max=10001", "", "max is 10001"},
		{"DELETE", "/v1/jobs?header.order=5&all=true&state=finished", "", "state is finished"},
		{"DELETE", "/v1/jobs?header.colour=red&all=true", "", "header.colour is not indexed"},
		{"PATCH", "/v1/jobs?header.order=5&all=true", "{}", "the request changes nothing"},
		{"PATCH", "/v1/jobs?header.order=5&all=true", `{"ttr":0}`, "ttr is 0"},
		{"PATCH", "/v1/jobs?header.order=5&all=true", `{"priority":1,"if_revision":1}`, "if_revision"},
		{"POST", "/v1/jobs/kick?header.order=5&all=true", `{"to_topic":""}`, "to_topic is missing or empty"},
	} {
		t.Run(c.method+c.path+c.body, func(t *testing.T) {
			refused(t, r.do(c.method, c.path, c.body), 400, job.CodeInvalid, c.says)
		})
	}
	require.Equal(t, [][]string{{"dead", "reserved", "delayed", "ready"}}, r.pages("/v1/jobs?header.order=5"), "nothing has changed")
}

// A job that changes between the read and the command is left alone.
func TestOnlyJobsThatAreStillFoundAreChanged(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Queue = &meanwhile{Queue: o.Queue, do: func() {
			_, err := o.Queue.(*meanwhile).Queue.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Update{Update: &jobpb.Update{
				Ref: &jobpb.Ref{Id: "a"}, Headers: &jobpb.Headers{List: []*jobpb.Header{{Name: "order", Value: "6"}}},
			}}}})
			require.NoError(t, err)
		}}
	})
	r.index("mail", `["order"]`)
	for _, id := range []string{"a", "b"} {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"mail","id":%q,"body":1,"headers":{"order":"5"}}`, id))
	}
	answer := decoded(t, r.do("DELETE", "/v1/jobs?header.order=5&all=true", ""))
	require.Equal(t, []any{1.0, nil}, []any{answer["deleted"], answer["skipped"]})
	require.Equal(t, [][]string{{"a"}}, r.pages("/v1/jobs?header.order=6"))
}

// meanwhile is a queue in which something happens after each read of jobs.
type meanwhile struct {
	Queue
	do func()
}

func (q *meanwhile) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	a, err := q.Queue.Read(ctx, r, stale)
	if a.GetJobs() != nil && len(a.Jobs.Jobs) == 2 {
		q.do()
	}
	return a, err
}

// shardDown is a queue of which a shard fails: operations that end one job, or all of them, get no result.
type shardDown struct {
	*apitest.Queue
	all bool
	why error
}

func (q shardDown) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results, err := q.Queue.Do(ctx, ops)
	for i, op := range ops {
		if op.GetDelete() != nil && (q.all || i == 0) {
			results[i] = job.ErrorResult(q.why)
		}
	}
	return results, err
}

func TestJobsThatAShardGaveNoResultForAreNotSkipped(t *testing.T) {
	for _, c := range []struct {
		all     bool
		why     error
		code    string
		message string
	}{
		{false, job.NotApplied("shard 2: no leader"), "unknown", "the first 3 jobs were done; then: shard 2: no leader"},
		{false, job.Unknown("shard 2: no reply"), "unknown", "the first 3 jobs were done; then: shard 2: no reply"},
		{true, job.NotApplied("shard 2: no leader"), "not_applied", "shard 2: no leader"},
	} {
		r := order(t)
		h := New(Options{Queue: shardDown{r.queue, c.all, c.why}, Operator: r.operator, Hosts: []string{"example.com"}})
		reply := decoded(t, (&rig{t: t, handler: h}).do("DELETE", "/v1/jobs?header.order=5&all=true", ""))
		require.Equal(t, []any{c.code, c.message}, []any{reply["code"], reply["error"]})
	}
}
