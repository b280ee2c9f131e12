package fsm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestHistoryTellsTheLifeOfAJob(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 5000)
	at := func(ms int64) int64 { return rigStart + ms }
	reserve := opReserve(1, "t")
	reserve.GetReserve().Consumer = "worker-1"
	for i, op := range []*jobpb.Op{
		opAdd(&jobpb.Add{Topic: "t", MaxAttempts: 9, DelayMs: 1}), opAdvance(1), reserve,
		opTouch(bySeq(1), 50), opRelease(&jobpb.Release{Ref: bySeq(1), Reason: "no route", DelayMs: 9}), opKick(bySeq(1)),
		opReserve(1, "t"), opBury(&jobpb.Bury{Ref: bySeq(1), Reason: "bad"}),
		{Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: bySeq(1), TtrMs: new(int64(1))}}},
		opReserveJob(bySeq(1), 1), opAdvance(1),
		opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Returned: true}),
		opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Undelivered: true}),
		opReserve(1, "t"), opFinish(bySeq(1)),
	} {
		r.now = at(int64(i))
		require.Equal(t, jobpb.Code_OK, r.one(op).Code)
	}
	const (
		delayed, ready, held   = jobpb.State_STATE_DELAYED, jobpb.State_STATE_READY, jobpb.State_STATE_RESERVED
		deadState, done        = jobpb.State_STATE_DEAD, jobpb.State_STATE_FINISHED
		reservedEvent, release = jobpb.Event_RESERVED, jobpb.Event_RELEASED
	)
	want := []*jobpb.Event{
		{Kind: jobpb.Event_ADDED, AtMs: at(0), State: delayed, DueMs: at(1)},
		{Kind: reservedEvent, AtMs: at(2), State: held, Attempt: 1, Consumer: "worker-1"},
		{Kind: release, AtMs: at(4), State: delayed, Attempt: 1, DueMs: at(13), Reason: "no route"},
		{Kind: jobpb.Event_KICKED, AtMs: at(5), State: ready, Attempt: 1, DueMs: at(5)},
		{Kind: reservedEvent, AtMs: at(6), State: held, Attempt: 2},
		{Kind: jobpb.Event_BURIED, AtMs: at(7), State: deadState, Attempt: 2, Reason: "bad"},
		{Kind: jobpb.Event_UPDATED, AtMs: at(8), State: deadState, Attempt: 2},
		{Kind: reservedEvent, AtMs: at(9), State: held, Attempt: 1},
		{Kind: jobpb.Event_TIMED_OUT, AtMs: at(10), State: ready, Attempt: 1, DueMs: at(5)},
		{Kind: reservedEvent, AtMs: at(11), State: held, Attempt: 2},
		{Kind: release, AtMs: at(12), State: ready, Attempt: 2, DueMs: at(5), Reason: "the consumer's connection ended"},
		{Kind: reservedEvent, AtMs: at(13), State: held, Attempt: 3},
		{Kind: release, AtMs: at(14), State: ready, Attempt: 3, DueMs: at(5), Reason: "the consumer never saw it; the attempt does not count"},
		{Kind: reservedEvent, AtMs: at(15), State: held, Attempt: 3},
		{Kind: jobpb.Event_FINISHED, AtMs: at(16), State: done, Attempt: 3},
	}
	got := r.job(1)
	require.Len(t, got.History, len(want))
	for i := range want {
		require.Truef(t, proto.Equal(want[i], got.History[i]), "event %d:\nwant %v\ngot  %v", i, want[i], got.History[i])
	}
	require.Zero(t, got.HistoryDropped)
}

// The add and the latest events are kept, and each keeps so much of its reason.
func TestHistoryIsBounded(t *testing.T) {
	r := newRig(t, Options{})
	r.retain("t", 5000)
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	reason := strings.Repeat("ü", job.MaxReasonBytes/2)
	const rounds = 40
	for range rounds {
		r.now++
		r.do(opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Reason: reason}))
	}
	r.reopen()
	j := r.job(1)
	require.Len(t, j.History, job.MaxHistory)
	require.EqualValues(t, 2*rounds-(job.MaxHistory-1), j.HistoryDropped)
	require.Equal(t, jobpb.Event_ADDED, j.History[0].Kind)
	require.EqualValues(t, rigStart, j.History[0].AtMs)
	last := j.History[job.MaxHistory-1]
	require.Equal(t, r.now, last.AtMs)
	require.Equal(t, reason[:job.MaxHistoryText], last.Reason)
	require.Equal(t, reason, j.LastError, "the job itself has all of it")
}

func TestHistoryCutsAtACharacter(t *testing.T) {
	require.Equal(t, "aü", cut("aüü", 4))
	require.Equal(t, "aü", cut("aü", 3))
	require.Empty(t, cut("ü", 1))
}

func TestHistoryOfJobsFromBeforeTheRetention(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"))
	require.Len(t, r.job(1).History, 1, "no more than the record of the add says")
	r.retain("t", 1000)
	r.one(opRelease(&jobpb.Release{Ref: bySeq(1)}))
	r.retain("t", 0)
	r.one(opReserve(1, "t"))
	h := r.job(1).History
	require.Len(t, h, 2)
	require.Equal(t, jobpb.Event_RELEASED, h[1].Kind)
}

func TestDamagedHistoryIsAnError(t *testing.T) {
	whole := addEvent("", 5, &jobpb.Event{Kind: jobpb.Event_RELEASED, AtMs: 9, DueMs: 3, State: 2}, "why")
	_, _, err := decodeHistory(whole, 5)
	require.NoError(t, err)
	for n := 1; n < len(whole); n++ {
		_, _, err := decodeHistory(whole[:n], 5)
		require.Error(t, err, "the first %d bytes", n)
	}
	for _, bad := range []string{whole + "x", "\x02" + whole[1:], "\xff" + whole[1:]} {
		_, _, err := decodeHistory(bad, 5)
		require.Error(t, err)
	}
}

// Jobs of other topics have nothing of it in their records.
func TestNoHistoryWithoutARetention(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Reason: "x"}))
	rec, err := readJob(r.m.store.db, 1, false)
	require.NoError(t, err)
	require.Empty(t, rec.history)
	rec.reason, rec.lastError = "", ""
	require.Len(t, rec.fate.append(nil, fateVersion), fateFixed)
}
