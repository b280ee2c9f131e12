package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestJobsDueAtOneInstantAreSpread(t *testing.T) {
	const window, jobs = 1000, 500
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{SpreadMs: window}}))
	due := r.now + 60_000
	tenths := make([]int, 10)
	for i := range jobs {
		res := r.one(opAdd(&jobpb.Add{Id: fmt.Sprint(i), Topic: "t", DueMs: due}))
		late := res.DueMs - due
		require.True(t, late >= 0 && late < window, "never early: %d", late)
		require.Equal(t, res.DueMs, r.job(res.Seq).DueMs)
		tenths[late/(window/10)]++
	}
	for _, n := range tenths {
		require.InDelta(t, jobs/10, n, 3, "evenly: %v", tenths)
	}
	again := r.one(opAdd(&jobpb.Add{Id: "7", Topic: "t", DueMs: due}))
	require.True(t, again.Existing, "the requested delay is compared")
	require.Equal(t, r.job(again.Seq).DueMs, again.DueMs)

	ready := r.one(opAdd(&jobpb.Add{Id: "now", Topic: "t"}))
	require.Equal(t, r.now, ready.DueMs, "a job that need not wait is not spread")
	moved := r.one(opUpdate(&jobpb.Update{Ref: byID("now"), DueMs: new(due)}))
	postponed := r.one(opAdd(&jobpb.Add{Id: "now", Topic: "t", DueMs: due, IfExists: jobpb.IfExists_IF_EXISTS_POSTPONE}))
	require.Equal(t, moved.DueMs, postponed.DueMs, "a job keeps its share of the window")
	require.Greater(t, moved.DueMs, due)
}

func TestSpreadStaysInItsRange(t *testing.T) {
	require.Zero(t, spread(1<<64-1, 0))
	for _, seq := range []uint64{0, 1, 2, 1 << 32, 1<<64 - 1} {
		for _, window := range []int64{1, 2, 1000, job.MaxSpread.Milliseconds(), 1<<63 - 1} {
			share := spread(seq, window)
			require.True(t, share >= 0 && share < window, "%d in %d: %d", seq, window, share)
		}
	}
}
