package api

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

// reserveOne adds a job and reserves it; it returns its token.
func (r *rig) reserveOne(id string) string {
	r.ok("/v1/jobs", `{"topic":"t","id":"`+id+`","body":""}`)
	return r.ok("/v1/reserve", `{"topics":["t"]}`)["jobs"].([]any)[0].(map[string]any)["token"].(string)
}

// items returns a list of the reply, as objects.
func items(reply map[string]any, list string) (all []map[string]any) {
	for _, one := range reply[list].([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}

func TestAReserveFinishesJobsFirst(t *testing.T) {
	r := newRig(t)
	first := r.reserveOne("a")
	r.ok("/v1/jobs", `{"topic":"t","id":"b","body":""}`)
	require.Equal(t, 200, r.do("PUT", "/v1/topics/t/settings", `{"max_reserved":1}`).Code)
	reply := r.ok("/v1/reserve", `{"topics":["t"],"finish":[{"id":"a","token":"`+first+`"}]}`)
	require.Equal(t, []map[string]any{{"success": true, "id": "a", "seq": 1.0, "state": "gone"}}, items(reply, "finished"))
	require.Equal(t, "b", items(reply, "jobs")[0]["id"], "the topic's limit sees the finish first")

	second := items(reply, "jobs")[0]["token"].(string)
	reply = r.ok("/v1/reserve", `{"topics":["t"],"finish":[{"token":"`+second+`"}]}`)
	require.Equal(t, "b", items(reply, "finished")[0]["id"])
	require.Empty(t, reply["jobs"], "nothing is ready")
}

func TestAFinishThatFailsDoesNotStopTheReserve(t *testing.T) {
	r := newRig(t)
	stale := r.reserveOne("a")
	r.ok("/v1/jobs/a/release", `{"token":"`+stale+`","delay":60}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"b","body":""}`)
	reply := r.ok("/v1/reserve", `{"topics":["t"],"finish":[{"id":"a","token":"`+stale+`"},{"id":"none"},{"id":"b","token":"9-1-1"}]}`)
	require.Equal(t, false, reply["success"], "as in every batch of which an item failed")
	var codes []any
	for _, f := range items(reply, "finished") {
		codes = append(codes, f["code"])
	}
	require.Equal(t, []any{"stale_token", "not_found", "stale_token"}, codes)
	require.Equal(t, "b", items(reply, "jobs")[0]["id"])
}

func TestAFinishThatIsInvalidFailsTheWholeReserve(t *testing.T) {
	r := newRig(t)
	token := r.reserveOne("a")
	r.ok("/v1/jobs", `{"topic":"t","id":"b","body":""}`)
	for finish, field := range map[string]string{
		`[{"id":"a","token":"` + token + `"},{"id":"a","token":"x"}]`: "finish[1].token",
		`[{"id":"a"},{}]`:        "finish[1].id",
		`[{"id":"a","then":[]}]`: "finish[0].then",
		`{"id":"a"}`:             "finish",
		`[` + strings.Repeat(`{"id":"a"},`, 1000) + `{"id":"a"}]`: "finish",
	} {
		w := r.post("/v1/reserve", `{"topics":["t"],"finish":`+finish+`}`)
		require.Equal(t, 400, w.Code, w.Body)
		require.Contains(t, w.Body.String(), `"field":"`+field+`"`)
	}
	require.Equal(t, "reserved", decoded(t, r.do("GET", "/v1/jobs/a", ""))["state"])
	require.Equal(t, "ready", decoded(t, r.do("GET", "/v1/jobs/b", ""))["state"])
}

func TestTheResultsOfFinishesOutliveTheReserve(t *testing.T) {
	for name, failure := range map[string]error{
		"nothing was reserved":   job.NotApplied("no leader"),
		"the outcome is unknown": job.Unknown("the leader was lost"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			token := r.reserveOne("a")
			r.queue.FailNext(nil, failure) // the wait for a job, after the finish
			reply := r.ok("/v1/reserve", `{"topics":["t"],"wait":5,"finish":[{"id":"a","token":"`+token+`"}]}`)
			require.Equal(t, "gone", items(reply, "finished")[0]["state"])
			require.Empty(t, reply["jobs"])
		})
	}
}

func TestAFinishWhoseOutcomeIsNotKnownFailsTheReserve(t *testing.T) {
	r := newRig(t)
	token := r.reserveOne("a")
	r.queue.FailNext(job.Unknown("the leader was lost"))
	w := r.post("/v1/reserve", `{"topics":["t"],"finish":[{"id":"a","token":"`+token+`"}]}`)
	require.Equal(t, 504, w.Code)
	require.Contains(t, w.Body.String(), `"outcome":"unknown"`)
}

func TestAReserveWaitsAfterItsFinishes(t *testing.T) {
	r := newRig(t)
	token := r.reserveOne("a")
	got := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		got <- r.post("/v1/reserve", `{"topics":["t"],"wait":60,"finish":[{"id":"a","token":"`+token+`"}]}`)
	}()
	require.Eventually(t, func() bool { return r.queue.Waiting() == 1 }, soon, time.Millisecond)
	r.ok("/v1/jobs", `{"topic":"t","id":"b","body":""}`)
	require.Contains(t, (<-got).Body.String(), `"id":"b"`)
}

func TestANodeThatDrainsFinishesAndReservesNothing(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Draining = func() bool { return true } })
	_, err := r.queue.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", TtrMs: 60_000, MaxAttempts: 1}}}})
	require.NoError(t, err)
	held, err := r.queue.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, 0)
	require.NoError(t, err)
	addAnother(t, r.queue)
	reply := r.ok("/v1/reserve", `{"topics":["t"],"wait":5,"finish":[{"id":"a","token":"`+job.TokenOf(held[0]).String()+`"}]}`)
	require.Equal(t, "gone", items(reply, "finished")[0]["state"])
	require.Empty(t, reply["jobs"])
}

func addAnother(t *testing.T, q *apitest.Queue) {
	t.Helper()
	_, err := q.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "b", Topic: "t", TtrMs: 60_000, MaxAttempts: 1}}}})
	require.NoError(t, err)
}

// lateFinish hands its jobs out only once the client is gone.
type lateFinish struct {
	*apitest.Queue
	leave func()
}

func (q *lateFinish) FinishAndReserve(ctx context.Context, f []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	results, jobs, err := q.Queue.FinishAndReserve(ctx, f, r, waits)
	q.leave()
	<-ctx.Done()
	return results, jobs, err
}

func TestJobsReservedWithAFinishOfAClientThatHungUpGoBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := &lateFinish{apitest.New(t), cancel}
	addOne(t, q.Queue)
	h := New(Options{Queue: q, Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/v1/reserve", strings.NewReader(`{"topics":["t"],"finish":[{"id":"none"}]}`)))
	wentBack(t, q.Queue)
}

// askedQueue records whether callers wait.
type askedQueue struct {
	*apitest.Queue
	waits []bool
}

func (q *askedQueue) FinishAndReserve(ctx context.Context, f []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	q.waits = append(q.waits, waits)
	return q.Queue.FinishAndReserve(ctx, f, r, waits)
}

func TestTheLeaderKnowsWhoWaitsAfterAFinish(t *testing.T) {
	q := &askedQueue{Queue: apitest.New(t)}
	addOne(t, q.Queue)
	h := New(Options{Queue: q, Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	for _, wait := range []string{"", `"wait":0,`, `"wait":5,`} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/reserve", strings.NewReader(`{"topics":["t"],`+wait+`"finish":[{"id":"none"}]}`)))
	}
	require.Equal(t, []bool{false, false, true}, q.waits)
}
