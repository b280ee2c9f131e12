package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

// An operation that job.CheckOp accepts is valid to an empty state machine whose clock is
// not behind. So all rules that need neither state nor clock are in CheckOp. What it
// refuses changes nothing.
func FuzzCheckedOperationsAreValid(f *testing.F) {
	ref := &jobpb.Ref{Id: "a"}
	for _, op := range []*jobpb.Op{
		opAdd(&jobpb.Add{Id: "a", Topic: "t", TtrMs: 1, DueMs: 5, Options: &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{1}}, Headers: []*jobpb.Header{{Name: "n"}}}}),
		opAtomicAdd(&jobpb.AtomicAdd{Adds: []*jobpb.Add{{Topic: "t", TtrMs: 1}, {Id: "b", Topic: "t", TtrMs: 1, IfExists: jobpb.IfExists_IF_EXISTS_KEEP}}}),
		opReserve(1, "t"),
		{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: ref, Consumer: "c"}}},
		{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}},
		opRelease(&jobpb.Release{Ref: ref, DelayMs: 1, Reason: "r"}),
		{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref, TtrMs: 1}}},
		opBury(&jobpb.Bury{Ref: ref}),
		{Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: ref, DueMs: new(int64(1)), MaxAttempts: new(uint32(1)), Backoff: &jobpb.Backoff{}}}},
		{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref, ToTopic: "u"}}},
		{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "t", Max: 1, ToTopic: "u", Sweep: &jobpb.Sweep{Scan: 1, From: &jobpb.Progress{Done: 1}, Filter: &jobpb.Filter{Reason: "r"}}}}},
		{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{Topic: "t", Max: 1, State: jobpb.State_STATE_DEAD, Sweep: &jobpb.Sweep{Scan: 1}}}},
		{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: "t", To: "u", Max: 1, States: []jobpb.State{1}}}},
		{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", Create: true, UntilMs: 9}}},
		{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{TtrMs: new(int64(5)), RateMilli: 5, Burst: 1}}}},
		opPut("s", everySchedule("x")),
		{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "s", Now: true, Key: "k", Runs: []*jobpb.ScheduledRun{{}}}}},
		{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "s", NextMs: 5}}},
		opAdvance(1), opSetCluster("c"), opForget("n"),
		{Kind: &jobpb.Op_Migrate{Migrate: &jobpb.Migrate{Max: 1}}},
	} {
		require.NoError(f, job.CheckOp(op, job.Newest()), op)
		b, err := op.MarshalVT()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		op := new(jobpb.Op)
		if proto.Unmarshal(b, op) != nil || op.Kind == nil || op.GetRaiseVersion() != nil {
			return // a version that this release does not run ends the machine
		}
		bringNear(op)
		run, err := job.AppendOp(nil, op)
		if err != nil {
			return
		}
		if _, err := job.CheckOps(run, job.MaxVersion); err != nil {
			return
		}
		r := newRig(t, Options{})
		r.now = maxClockMS
		r.one(opPut("s", everySchedule("x")))
		before := r.digest()
		refused := job.CheckOp(op, job.LimitsAt(r.m.Version()))
		got := r.one(op)
		require.Equal(t, refused != nil, got.Code == jobpb.Code_INVALID, "%v: %s", refused, got.Message)
		if refused != nil {
			require.Equal(t, before, r.digest())
		}
	})
}

// bringNear reduces every instant that the clock limits to the last valid one.
func bringNear(op *jobpb.Op) {
	near := func(ms *int64) { *ms = min(*ms, maxClockMS) }
	for _, add := range append([]*jobpb.Add{op.GetAdd()}, op.GetAtomicAdd().GetAdds()...) {
		if add != nil {
			near(&add.DueMs)
		}
	}
	if u := op.GetUpdate(); u.GetDueMs() != 0 {
		near(u.DueMs)
	}
	if p := op.GetPauseTopic(); p != nil {
		near(&p.UntilMs)
	}
	for _, sweep := range []*jobpb.Sweep{op.GetKickTopic().GetSweep(), op.GetPurge().GetSweep()} {
		if sweep.GetFrom() != nil {
			near(&sweep.From.StartMs)
		}
	}
}
