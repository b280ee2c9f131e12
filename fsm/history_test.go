package fsm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// The add and the latest events are kept, each with a bounded reason.
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

func TestNoHistoryWithoutARetention(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Reason: "x"}))
	rec, err := record.ReadJob(r.m.store.db, 1, false)
	require.NoError(t, err)
	require.Empty(t, rec.Status.History)
	rec.Status.Reason, rec.Status.LastError = "", ""
	require.Len(t, rec.Status.Append(nil, record.StatusVersion), record.StatusFixed)
}
