package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

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
