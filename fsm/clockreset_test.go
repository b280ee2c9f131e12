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

func TestClockSetBackBringsNearerWhatWasAskedForByIt(t *testing.T) {
	r := newRig(t, Options{})
	add := func(id string, change func(*jobpb.Add)) {
		a := &jobpb.Add{Id: id, Topic: "t", TtrMs: 60_000}
		change(a)
		require.Equal(t, jobpb.Code_OK, r.one(opAdd(a)).Code)
	}
	add("delayed before", func(a *jobpb.Add) { a.DelayMs = 2 * resetDay })
	add("came early", func(a *jobpb.Add) { a.DelayMs = 1000 })
	r.now += resetDay
	r.one(opAdvance(100))
	add("delayed", func(a *jobpb.Add) { a.DelayMs = 5000 })
	add("at an instant", func(a *jobpb.Add) { a.DueMs = r.now + 5000 })
	add("ready", func(*jobpb.Add) {})
	add("reserved", func(a *jobpb.Add) { a.Topic = "u" })
	require.Len(t, r.one(opReserve(1, "u")).Jobs, 1)
	r.one(opPause("paused", 30_000, true))

	back := rigStart + int64(2000)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opReset(r.now, 0)).Code, "it is not ahead")
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opReset(back, 1)).Code, "another epoch")
	require.Equal(t, jobpb.Code_OK, r.one(opReset(back, 0)).Code)
	require.Equal(t, int64(atOnce), r.m.NextDue(), "the jobs are to be gone through")
	r.check()
	r.reopen() // it goes on with that

	r.one(opAdd(&jobpb.Add{Id: "late", Topic: "t", TtrMs: 1})) // told by the clock that has gone
	require.Equal(t, back, r.m.Applied().ClockMS)
	r.now = back + 10
	for r.m.NextDue() == atOnce {
		r.doAt(1, opAdvance(2))
		r.check()
	}

	for id, want := range map[string]struct {
		state jobpb.State
		at    int64
	}{
		"delayed before": {jobpb.State_STATE_DELAYED, rigStart + 2*resetDay},
		"came early":     {jobpb.State_STATE_READY, rigStart + 1000},
		"delayed":        {jobpb.State_STATE_DELAYED, r.now + 5000},
		"at an instant":  {jobpb.State_STATE_DELAYED, rigStart + resetDay + 5000},
		"ready":          {jobpb.State_STATE_READY, r.now},
		"reserved":       {jobpb.State_STATE_RESERVED, r.now + 60_000},
	} {
		v := r.m.View()
		j, found, err := v.Job(id)
		require.NoError(t, err)
		require.True(t, found, id)
		require.NoError(t, v.Close())
		require.Equal(t, want.state, j.State, id)
		if want.state == jobpb.State_STATE_RESERVED {
			require.InDelta(t, want.at, j.ReservedUntilMs, 10, id)
			continue
		}
		require.InDelta(t, want.at, j.DueMs, 10, id)
	}
	require.Equal(t, back+30_000, r.topic("paused").PausedUntilMs)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.doAt(1, opReset(back-1000, 0))[0].Code, "asked for twice")
}

// However many jobs there are, one entry goes through a bounded number.
func TestClockSetBackIsBoundedWorkAnEntry(t *testing.T) {
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
