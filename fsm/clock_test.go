package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

const resetDay = 24 * 60 * 60 * 1000

func opReset(to int64, epoch uint64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{ToMs: to, Epoch: epoch}}}
}

// doAt applies operations in an epoch of the clock.
func (r *rig) doAt(epoch uint64, ops ...*jobpb.Op) []*jobpb.Result {
	r.t.Helper()
	r.index++
	results, _, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntryAt(r.t, r.now, epoch, ops...)}}, true)
	require.NoError(r.t, err)
	return results[0]
}

// One entry changes a bounded number of jobs.
func TestClockResetIsBoundedPerEntry(t *testing.T) {
	r := newRig(t, Options{})
	const jobs = 25
	r.now += resetDay
	for i := range jobs {
		r.one(opAdd(&jobpb.Add{Id: fmt.Sprint("j", i), Topic: "t", DelayMs: 1000, TtrMs: 1}))
	}
	r.one(opReset(rigStart+1, 0))
	r.now = rigStart + 1
	entries := 0
	for moved := 0; r.m.NextDue() == atOnce; entries++ {
		r.doAt(1, opAdvance(10))
		now := 0
		for seq := range uint64(jobs) {
			if r.job(seq+1).DueMs < resetDay {
				now++
			}
		}
		require.LessOrEqual(t, now-moved, 10)
		moved = now
	}
	require.Equal(t, 3, entries)
}

// A retained job is not counted among those with a push_url, also when a reset moves it.
func TestClockResetKeepsCountsOfRetainedJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.now += resetDay
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{
		RetainMs: resetDay,
		Push:     &jobpb.PushTarget{Secret: "0123456789abcdef", JobUrls: true},
	}}))
	for _, id := range []string{"kept", "deleted"} {
		r.one(opAdd(&jobpb.Add{Topic: "t", Id: id, TtrMs: 1, Options: &jobpb.JobOptions{PushUrl: "https://a.example/b"}}))
	}
	r.one(opDelete(&jobpb.Ref{Id: "deleted"}))
	r.one(opReset(rigStart+1, 0))
	r.now = rigStart + 1
	r.doAt(1, opAdvance(10))
	require.EqualValues(t, 1, r.m.topics["t"].PushURLs)
	r.check()
}
