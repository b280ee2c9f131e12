package fsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestWaitsOfABackoff(t *testing.T) {
	list := &jobpb.Backoff{DelaysMs: []int64{10, 20, 70}}
	doubling := &jobpb.Backoff{BaseMs: 100, FactorPermille: 2000, MaxMs: 1500}
	slow := &jobpb.Backoff{BaseMs: 1, FactorPermille: 1001, MaxMs: 1e12}
	for _, c := range []struct {
		b       *jobpb.Backoff
		attempt uint32
		want    int64
	}{
		{list, 0, 10}, {list, 1, 10}, {list, 2, 20}, {list, 3, 70}, {list, 4_000_000_000, 70},
		{doubling, 1, 100}, {doubling, 2, 200}, {doubling, 4, 800}, {doubling, 5, 1500}, {doubling, 4_000_000_000, 1500},
		{slow, 4_000_000_000, 1}, // grows by less than a millisecond: the loop must end
	} {
		require.Equal(t, c.want, backoffWait(c.b, c.attempt), "%v, attempt %d", c.b, c.attempt)
	}
}

func TestJitterDependsOnTheCommandAlone(t *testing.T) {
	wait := func(entropy uint64) int64 {
		r := newRig(t, Options{})
		a := &jobpb.Add{Id: "a", Topic: "t", Options: &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{100_000}, JitterPercent: 30}}}
		r.do(opAdd(a), opReserve(1, "t"))
		res := r.one(opRelease(&jobpb.Release{Ref: byID("a"), Backoff: true, Entropy: entropy}))
		require.Equal(t, jobpb.State_STATE_DELAYED, res.State)
		return res.DueMs - r.now
	}
	seen := map[int64]bool{}
	for entropy := range uint64(20) {
		w := wait(entropy)
		require.Equal(t, w, wait(entropy), "the same command, the same wait")
		require.LessOrEqual(t, w, int64(100_000))
		require.Greater(t, w, int64(70_000))
		seen[w] = true
	}
	require.Greater(t, len(seen), 15)
}

// What fails is usually down for longer than 16 attempts at once take.
func TestAReleaseWaitsThoughNobodyHasABackoff(t *testing.T) {
	r := newRig(t, Options{})
	release := func(version uint32) []int64 {
		id := fmt.Sprint("v", version)
		r.do(opAdd(&jobpb.Add{Id: id, Topic: "t", MaxAttempts: job.DefaultMaxAttempts}))
		var waits []int64
		for {
			require.Len(t, r.one(opReserve(1, "t")).Jobs, 1)
			res := r.one(opRelease(&jobpb.Release{Ref: byID(id), Backoff: true, Entropy: uint64(len(waits))}))
			if res.State == jobpb.State_STATE_DEAD {
				return waits
			}
			waits = append(waits, max(res.DueMs-r.now, 0))
			r.now = max(r.now, res.DueMs+1)
			r.do(opAdvance(100))
		}
	}
	require.Equal(t, make([]int64, 15), release(1))
	require.Equal(t, jobpb.Code_OK, r.one(opRaise(2)).Code)
	var total int64
	for i, wait := range release(2) {
		whole := min(1000<<i, 3600_000)
		require.LessOrEqual(t, wait, int64(whole))
		require.GreaterOrEqual(t, wait, int64(whole)*8/10)
		total += wait
	}
	require.InDelta(t, (4 * time.Hour).Milliseconds(), total, float64(time.Hour.Milliseconds()))

	for name, at := range map[string]*jobpb.Release{
		"its backoff is none": {Ref: byID("none"), Backoff: true},
		"a delay of zero":     {Ref: byID("zero")},
	} {
		add := &jobpb.Add{Id: at.Ref.GetId(), Topic: "u"}
		if at.Backoff {
			add.Options = &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{0}}}
		}
		r.do(opAdd(add), opReserve(1, "u"))
		require.Equal(t, jobpb.State_STATE_READY, r.one(opRelease(at)).State, name)
		r.do(opDelete(byID(add.Id)))
	}
	r.do(opAdd(&jobpb.Add{Id: "expires", Topic: "w", TtrMs: 1000}), opReserve(1, "w"))
	r.now += 1001
	r.do(opAdvance(100))
	require.EqualValues(t, 1, r.topic("w").Ready, "an expired reservation has taken time already")
}
