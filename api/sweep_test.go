package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestKicksOfATopic(t *testing.T) {
	for body, want := range map[string]struct {
		kicked float64
		more   any
		ready  [][]string
	}{
		`{"max":2}`:                              {2, true, [][]string{{"a1", "b1"}}},
		`{"max":9}`:                              {3, nil, [][]string{{"a1", "b1", "a2"}}},
		`{"all":true}`:                           {3, nil, [][]string{{"a1", "b1", "a2"}}},
		`{"all":true,"filter":{"reason":"big"}}`: {1, nil, [][]string{{"a2"}}},
		`{"all":true,"filter":{"headers":{"tenant":"a"}}}`:                                   {2, nil, [][]string{{"a1", "a2"}}},
		`{"max":1,"filter":{"id_prefix":"b"}}`:                                               {1, true, [][]string{{"b1"}}},
		`{"all":true,"filter":{"died_to":"1970-01-01T00:00:01Z"}}`:                           {0, nil, [][]string{{}}},
		`{"all":true,"filter":{"died_from":"1970-01-01T00:00:01Z","due_from":100000000000}}`: {3, nil, [][]string{{"a1", "b1", "a2"}}},
		`{"all":true,"filter":{"due_from":"2050-01-01T00:00:00Z"},"rate":null}`:              {0, nil, [][]string{{}}},
	} {
		t.Run(body, func(t *testing.T) {
			r := newRig(t)
			r.dead("t", "no route", "a1", "b1")
			r.dead("t", "too big", "a2")
			answer := r.ok("/v1/topics/t/kick", body)
			require.Equal(t, []any{want.kicked, want.more}, []any{answer["kicked"], answer["more"]})
			require.Equal(t, want.ready, r.pages("/v1/topics/t/jobs?state=ready"))
		})
	}
}

// Jobs that are kicked at a rate become due one after the other, also over the
// bounds of one command.
func TestAKickAtARate(t *testing.T) {
	const jobs = sweepStep + 5
	r := newRig(t)
	for range jobs {
		r.ok("/v1/jobs", `{"topic":"t","body":1}`)
	}
	for n := 0; n < jobs; {
		taken := r.ok("/v1/reserve", `{"topics":["t"],"max":1000}`)["jobs"].([]any)
		n += len(taken)
		for _, j := range taken {
			r.ok(fmt.Sprintf("/v1/jobs/%s/bury", j.(map[string]any)["id"]), ``)
		}
	}
	require.Equal(t, float64(jobs), r.ok("/v1/topics/t/kick", `{"all":true,"rate":0.5}`)["kicked"])
	due := map[float64]time.Time{}
	for cursor := ""; ; {
		page := decoded(t, r.do("GET", "/v1/topics/t/jobs?max=1000"+cursor, ""))
		for _, j := range page["jobs"].([]any) {
			at, err := time.Parse(time.RFC3339, j.(map[string]any)["due_at"].(string))
			require.NoError(t, err)
			due[j.(map[string]any)["seq"].(float64)] = at
		}
		if page["next"] == nil {
			break
		}
		cursor = "&cursor=" + page["next"].(string)
	}
	require.Len(t, due, jobs)
	for seq := 2.0; seq <= jobs; seq++ {
		require.Equal(t, time.Duration(seq-1)*2*time.Second, due[seq].Sub(due[1]), "job %v", seq)
	}
}

func TestDeadJobsGoToAnotherTopic(t *testing.T) {
	r := newRig(t)
	r.dead("t", "x", "a1", "a2", "a3")
	require.Equal(t, "ready", r.ok("/v1/jobs/a2/kick", `{"to_topic":"slow"}`)["state"])
	require.Equal(t, "dead", r.ok("/v1/jobs/a1/move", `{"to":"bin"}`)["state"])
	require.Equal(t, 1.0, r.ok("/v1/topics/t/kick", `{"all":true,"to_topic":"slow"}`)["kicked"])
	require.Equal(t, [][]string{{"a2", "a3"}}, r.pages("/v1/topics/slow/jobs?state=ready"))
	require.Equal(t, [][]string{{"a1"}}, r.pages("/v1/topics/bin/jobs?state=dead"))
	require.Equal(t, [][]string{{}}, r.pages("/v1/topics/t/jobs?"))
}

func TestPurge(t *testing.T) {
	r := newRig(t)
	r.dead("t", "no route", "a1", "b1", "a2")
	r.ok("/v1/jobs", `{"topic":"t","id":"d","body":1,"delay":60}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"r","body":1}`)
	answer := r.ok("/v1/topics/t/purge", `{"state":"dead","max":1,"filter":{"id_prefix":"a"}}`)
	require.Equal(t, []any{1.0, true}, []any{answer["deleted"], answer["more"]})
	require.Equal(t, 2.0, r.ok("/v1/topics/t/purge", `{"state":"dead","all":true}`)["deleted"])
	require.Equal(t, 1.0, r.ok("/v1/topics/t/purge", `{"state":"delayed","all":true}`)["deleted"])
	require.Equal(t, 1.0, r.ok("/v1/topics/t/purge", `{"state":"ready","all":true}`)["deleted"])
	require.Equal(t, 0.0, r.ok("/v1/topics/nobody/purge", `{"state":"ready","all":true}`)["deleted"])
	require.Equal(t, 5.0, decoded(t, r.do("GET", "/v1/topics/t", ""))["deleted"])
}

func TestATopicMoves(t *testing.T) {
	r := newRig(t)
	r.dead("t", "x", "a1")
	r.ok("/v1/jobs", `{"topic":"t","id":"d","body":1,"delay":60}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"held","body":1}`)
	token := r.ok("/v1/reserve", `{"topics":["t"]}`)["jobs"].([]any)[0].(map[string]any)["token"]
	require.Equal(t, 3.0, r.ok("/v1/topics/t/move", `{"to":"u"}`)["moved"])
	require.Equal(t, [][]string{{"d", "held", "a1"}}, r.pages("/v1/topics/u/jobs?"))
	require.Equal(t, "ready", r.ok("/v1/jobs/held/release", fmt.Sprintf(`{"token":%q}`, token))["state"], "its consumer has noticed nothing")

	r.ok("/v1/jobs", `{"topic":"t","id":"new","body":1}`)
	require.Equal(t, 2.0, r.ok("/v1/topics/u/move", `{"to":"t","states":["dead","ready"]}`)["moved"])
	require.Equal(t, [][]string{{"held", "new", "a1"}}, r.pages("/v1/topics/t/jobs?"))
	require.Equal(t, [][]string{{"d"}}, r.pages("/v1/topics/u/jobs?"))
	require.Equal(t, 0.0, r.ok("/v1/topics/nobody/move", `{"to":"t"}`)["moved"])
}

// A step that certainly was not done ends a sweep with what was done before; the
// next call hears why. After a step of unknown outcome nobody can say how many.
func TestASweepThatFailsOnTheWay(t *testing.T) {
	r := newRig(t)
	r.dead("t", "x", "a", "b")
	r.queue.FailNext(job.NotApplied("no leader"))
	refused(t, r.post("/v1/topics/t/kick", `{"all":true}`), http.StatusServiceUnavailable, job.CodeNotApplied, "no leader")
	var jobs string
	for range sweepStep {
		jobs += `,{"topic":"t","delay":60,"body":1}`
	}
	fill := func() {
		r.ok("/v1/jobs/batch", `{"jobs":[`+jobs[1:]+`]}`)
		r.ok("/v1/jobs", `{"topic":"t","delay":60,"body":1}`)
	}
	const purge = `{"all":true,"state":"delayed"}`
	fill()
	r.queue.FailNext(nil, job.NotApplied("no leader"))
	first := r.ok("/v1/topics/t/purge", purge)
	require.Equal(t, []any{1000.0, true}, []any{first["deleted"], first["more"]})
	require.Equal(t, 1.0, r.ok("/v1/topics/t/purge", purge)["deleted"])
	fill()
	r.queue.FailNext(nil, job.Unknown("lost"))
	refused(t, r.post("/v1/topics/t/purge", purge), http.StatusGatewayTimeout, job.CodeUnknown, "the first 1000 jobs were done; then: lost")
	require.Equal(t, 1.0, r.ok("/v1/topics/t/purge", purge)["deleted"])
}
