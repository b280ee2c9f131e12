package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// herd adds jobs that are due one after the other from an instant on.
func (r *rig) herd(topic string, jobs int, start time.Time, every time.Duration) {
	r.t.Helper()
	for i := range jobs {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"id":"%s-%d","body":1,"due_at":%d}`, topic, topic, i, start.Add(time.Duration(i)*every).UnixMilli()))
	}
}

// dues returns when the delayed jobs of a topic are due, by id.
func (r *rig) dues(topic string) map[string]time.Time {
	r.t.Helper()
	due := map[string]time.Time{}
	for cursor := ""; ; {
		page := decoded(r.t, r.do(http.MethodGet, "/v1/topics/"+topic+"/jobs?state=delayed&max=1000"+cursor, ""))
		for _, j := range page["jobs"].([]any) {
			at, err := time.Parse(time.RFC3339, j.(map[string]any)["due_at"].(string))
			require.NoError(r.t, err)
			due[j.(map[string]any)["id"].(string)] = at
		}
		if page["next"] == nil {
			return due
		}
		cursor = "&cursor=" + page["next"].(string)
	}
}

func rangeOf(from, to time.Time) string {
	return fmt.Sprintf(`"filter":{"due_from":%d,"due_to":%d}`, from.UnixMilli(), to.UnixMilli())
}

// rescheduleAll calls until there are no more jobs, and returns how many were changed.
func (r *rig) rescheduleAll(topic, fields string) (jobs float64) {
	r.t.Helper()
	for cursor := ""; ; {
		answer := r.ok("/v1/topics/"+topic+"/reschedule", "{"+fields+cursor+"}")
		jobs += answer["rescheduled"].(float64)
		if answer["next"] == nil {
			require.Nil(r.t, answer["more"])
			return jobs
		}
		require.Equal(r.t, true, answer["more"])
		cursor = fmt.Sprintf(`,"cursor":%q`, answer["next"])
	}
}

// tomorrow is the beginning of a minute in the future.
func tomorrow() time.Time { return time.Now().Add(24 * time.Hour).Truncate(time.Minute) }

func TestAHerdIsSpread(t *testing.T) {
	const jobs = 300
	r, start := newRig(t), tomorrow()
	r.herd("t", jobs, start, time.Millisecond)
	r.herd("t2", 1, start, 0)
	before := r.dues("t")
	spread := `"all":true,"spread":1800,` + rangeOf(start, start.Add(time.Minute))
	require.InDelta(t, jobs, r.rescheduleAll("t", spread), 1)
	after := r.dues("t")
	require.Len(t, after, jobs)
	byMinute := map[time.Duration]int{}
	for id, at := range after {
		require.False(t, at.Before(before[id]), "%s is not due earlier than before", id)
		byMinute[at.Sub(start)/time.Minute]++
	}
	for minute := range time.Duration(30) {
		require.InDelta(t, jobs/30, byMinute[minute], 3, "jobs in minute %d", minute)
	}
	require.Len(t, byMinute, 30)
	require.Zero(t, r.rescheduleAll("t", spread), "who repeats it changes nothing")
	require.Equal(t, after, r.dues("t"))
	require.Equal(t, start, r.dues("t2")["t2-0"].Local(), "other topics stay")
}

// Jobs in the middle of a range that must not become earlier go to the rest of it.
func TestAHerdInTheMiddleOfARange(t *testing.T) {
	const jobs = 200
	start := tomorrow()
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprint("earlier ", earlier), func(t *testing.T) {
			r := newRig(t)
			r.herd("t", jobs, start.Add(30*time.Minute), 0)
			r.rescheduleAll("t", fmt.Sprintf(`"all":true,"spread":3600,"earlier":%t,%s`, earlier, rangeOf(start, start.Add(time.Hour))))
			first, second := 0, 0
			for _, at := range r.dues("t") {
				require.Less(t, at.Sub(start), time.Hour)
				if at.Sub(start) < 30*time.Minute {
					first++
				} else {
					second++
				}
			}
			if earlier {
				require.InDelta(t, jobs/2, first, 5)
			} else {
				require.Equal(t, []int{0, jobs}, []int{first, second})
			}
		})
	}
}

func TestJobsArePostponedOnce(t *testing.T) {
	start := tomorrow()
	for _, c := range []struct {
		postpone time.Duration
		max      string
	}{{time.Minute, `"all":true`}, {time.Second, `"max":3`}, {7 * time.Minute, `"max":2`}, {2 * time.Hour, `"max":4`}} {
		t.Run(fmt.Sprint(c.postpone, c.max), func(t *testing.T) {
			r := newRig(t)
			r.herd("t", 30, start, 2*time.Minute)
			before := r.dues("t")
			fields := fmt.Sprintf(`%s,"postpone":%g,%s`, c.max, c.postpone.Seconds(), rangeOf(start, start.Add(40*time.Minute)))
			require.Equal(t, 20.0, r.rescheduleAll("t", fields))
			for id, at := range r.dues("t") {
				want := time.Duration(0)
				if before[id].Sub(start) < 40*time.Minute {
					want = c.postpone
				}
				require.Equal(t, want, at.Sub(before[id]), id)
			}
		})
	}
}

// A response that is lost is not known to the client, so it sends the same call again.
func TestAPostponementWhoseResponseIsLost(t *testing.T) {
	r, start := newRig(t), tomorrow()
	r.herd("t", 30, start, time.Minute)
	before := r.dues("t")
	fields := `"max":4,"postpone":300,` + rangeOf(start, start.Add(30*time.Minute))
	for cursor := ""; ; {
		request := "{" + fields + cursor + "}"
		lost := r.ok("/v1/topics/t/reschedule", request)
		require.LessOrEqual(t, lost["rescheduled"].(float64), 4.0)
		answer := r.ok("/v1/topics/t/reschedule", request)
		if answer["next"] == nil {
			break
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, answer["next"])
	}
	for id, at := range r.dues("t") {
		require.Equal(t, 5*time.Minute, at.Sub(before[id]), id)
	}
}

func TestAStepOfARescheduleThatFails(t *testing.T) {
	r, start := newRig(t), tomorrow()
	r.herd("t", 2, start, time.Hour)
	fields := `"all":true,"spread":86400,` + rangeOf(start, start.Add(24*time.Hour))
	r.queue.FailNext(job.NotApplied("no leader"))
	require.Equal(t, http.StatusServiceUnavailable, r.post("/v1/topics/t/reschedule", "{"+fields+"}").Code)
	r.queue.FailNext(errors.New("a defect"))
	require.Equal(t, http.StatusInternalServerError, r.post("/v1/topics/t/reschedule", "{"+fields+"}").Code)
	require.Equal(t, 2.0, r.rescheduleAll("t", fields))
	for _, op := range r.queue.Ops() {
		if u := op.GetUpdate(); u != nil {
			require.Equal(t, uint32(1), u.Condition.Revision, "a job that has changed since it was read stays as it is")
		}
	}
}

// What the steps before have done is not lost: the response says where to go on.
func TestALaterStepOfARescheduleThatFails(t *testing.T) {
	r, start := newRig(t), tomorrow()
	for range 2 {
		jobs := strings.Repeat(fmt.Sprintf(`{"topic":"t","body":1,"due_at":%d},`, start.UnixMilli()), sweepStep-1)
		r.ok("/v1/jobs/batch", `{"jobs":[`+strings.TrimSuffix(jobs, ",")+`]}`)
	}
	fields := `"all":true,"spread":3600,` + rangeOf(start, start.Add(time.Minute))
	r.queue.FailNext(nil, nil, nil, job.NotApplied("no leader")) // a read and a change, twice
	answer := r.ok("/v1/topics/t/reschedule", "{"+fields+"}")
	require.Equal(t, true, answer["more"])
	first := answer["rescheduled"].(float64)
	require.InDelta(t, sweepStep, first, 3)
	rest := r.rescheduleAll("t", fmt.Sprintf(`%s,"cursor":%q`, fields, answer["next"]))
	require.InDelta(t, 2*sweepStep-2, first+rest, 3)
}

func TestOtherJobsAreNotRescheduled(t *testing.T) {
	r, start := newRig(t), tomorrow()
	r.herd("t", 1, start, 0)
	at := start.UnixMilli()
	r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"t","id":"expires","body":1,"due_at":%d,"expires_at":%d}`, at, at+60_000))
	r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"t","id":"tenant","body":1,"due_at":%d,"headers":{"tenant":"a"}}`, at))
	answer := r.ok("/v1/topics/t/reschedule", `{"all":true,"postpone":3600,`+rangeOf(start, start.Add(time.Minute))+`}`)
	require.Equal(t, []any{2.0, 1.0}, []any{answer["rescheduled"], answer["skipped"]})
	require.Contains(t, answer["reason"], "expires")
	later := start.Add(time.Hour)
	answer = r.ok("/v1/topics/t/reschedule", fmt.Sprintf(`{"all":true,"postpone":3600,"filter":{"due_from":%d,"due_to":%d,"headers":{"tenant":"a"}}}`, later.UnixMilli(), later.UnixMilli()+1))
	require.Equal(t, 1.0, answer["rescheduled"])
	due := r.dues("t")
	require.Equal(t, []time.Duration{time.Hour, 0, 2 * time.Hour}, []time.Duration{due["t-0"].Sub(start), due["expires"].Sub(start), due["tenant"].Sub(start)})
}

func TestRefusedReschedules(t *testing.T) {
	r, start := newRig(t), tomorrow()
	fine := rangeOf(start, start.Add(time.Hour))
	for body, field := range map[string]string{
		`{"all":true,"spread":60}`:                                                             "filter.due_from",
		`{"all":true,"spread":60,"filter":{"due_from":2000000000000}}`:                         "filter.due_to",
		`{"spread":60,` + fine + `}`:                                                           "max",
		`{"max":0,"spread":60,` + fine + `}`:                                                   "max",
		`{"all":true,` + fine + `}`:                                                            "spread",
		`{"all":true,"spread":60,"postpone":60,` + fine + `}`:                                  "spread",
		`{"all":true,"spread":0.5,` + fine + `}`:                                               "spread",
		`{"all":true,"postpone":-60,` + fine + `}`:                                             "postpone",
		`{"all":true,"postpone":1e12,` + fine + `}`:                                            "postpone",
		`{"all":true,"postpone":60,"earlier":true,` + fine + `}`:                               "earlier",
		`{"all":true,"postpone":1,` + rangeOf(start, start.Add(24*time.Hour)) + `}`:            "postpone",
		`{"all":true,"spread":60,` + rangeOf(start, start) + `}`:                               "filter.due_to",
		`{"all":true,"spread":60,"cursor":"x",` + fine + `}`:                                   "cursor",
		fmt.Sprintf(`{"all":true,"spread":60,"cursor":"%d.",%s}`, start.UnixMilli(), fine):     "cursor",
		fmt.Sprintf(`{"all":true,"postpone":60,"cursor":"%d.",%s}`, start.UnixMilli()+1, fine): "cursor",
	} {
		w := r.post("/v1/topics/t/reschedule", body)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", body, w.Body)
		require.Equal(t, field, decoded(t, w)["field"], "%s: %s", body, w.Body)
	}
	require.Empty(t, r.queue.Ops())
}
