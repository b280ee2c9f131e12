package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/groupcommit"
	"tarry/cluster/logstore"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Package job limits the parts of a request; the size of an entry limits the whole.
func TestRequestsWithinTheLimitsFitInAnEntry(t *testing.T) {
	name := strings.Repeat("n", job.MaxNameBytes)
	delays := make([]int64, job.MaxBackoffDelays)
	for i := range delays {
		delays[i] = job.MaxDelay.Milliseconds()
	}
	options := &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: delays}}
	for range job.MaxHeaders {
		options.Headers = append(options.Headers, &jobpb.Header{Name: "h", Value: strings.Repeat("v", job.MaxHeaderBytes/job.MaxHeaders)})
	}
	add := func(body int) *jobpb.Add {
		return &jobpb.Add{
			Id: name, Topic: name, DueMs: job.NeverMS, TtrMs: job.MaxTTR.Milliseconds(), MaxAttempts: 1 << 31, Options: options,
			Body: make([]byte, body), Condition: &jobpb.Condition{Revision: 1 << 31},
		}
	}
	all := &jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: name}}}
	for range job.MaxBatch {
		all.Adds = append(all.Adds, add(job.MaxAtomicAddBytes/job.MaxBatch))
	}
	topics := make([]string, job.MaxReserveTopics)
	for i := range topics {
		topics[i] = name
	}
	for _, op := range []*jobpb.Op{
		{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: all}},
		{Kind: &jobpb.Op_Add{Add: add(job.HardMaxBodyBytes)}},
		{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: topics}}},
	} {
		require.LessOrEqual(t, oplog.OpSize(op), groupcommit.MaxEntryBytes, "%T", op.Kind)
	}

	// Operations that the leader proposes as one unit.
	var back []*jobpb.Reserved
	for range job.MaxReserve {
		back = append(back, &jobpb.Reserved{Id: name, Seq: 1 << 63, Generation: 1 << 31, ReservedUntilMs: job.NeverMS})
	}
	var fires []*jobpb.Op
	for range dueSchedules {
		fire := &jobpb.FireSchedule{Name: name, Trouble: name, NextMs: job.NeverMS, ExpectNextMs: job.NeverMS, Missed: 1 << 63, LastMissedMs: job.NeverMS}
		for range dueRuns {
			fire.Runs = append(fire.Runs, &jobpb.ScheduledRun{PlannedMs: job.NeverMS, OffsetS: -1})
		}
		fires = append(fires, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: fire}})
	}
	for what, ops := range map[string][]*jobpb.Op{"jobs that go back": dispatch.GiveBack(back, 0), "runs of schedules": fires} {
		size := 0
		for _, op := range ops {
			size += oplog.OpSize(op)
		}
		require.LessOrEqual(t, size, groupcommit.MaxEntryBytes, what)
	}
	require.Less(t, groupcommit.MaxEntryBytes, logstore.MaxEntryBytes)
}

func TestAMessagePastTheLimitOfAnEntryIsRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	v := &service{shard: func(uint32) *Shard { return c.nodes[0].shard }}
	op, err := oplog.AppendOp(nil, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Body: make([]byte, groupcommit.MaxEntryBytes)}}})
	require.NoError(t, err)
	_, err = v.Propose(t.Context(), &noderpc.ProposeRequest{Count: 1, Ops: op})
	require.Equal(t, job.CodeTooLarge, job.CodeOf(err))
	require.ErrorContains(t, err, "it may take 16777216 at most")
}
