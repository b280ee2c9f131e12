package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func putEvery(name, spec string, change func(*jobpb.Schedule)) *jobpb.Op {
	s := &jobpb.Schedule{Spec: spec, Zone: "UTC", MissedAfterMs: 60_000, Job: &jobpb.Add{Topic: name, TtrMs: 60_000, Body: []byte("{{run}}")}}
	if change != nil {
		change(s)
	}
	return &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Schedule: s}}}
}

func TestAScheduleRunsAndIsReadThroughAFollower(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	f := c.follower()
	do(t, f, putEvery("tick", "@every 1s", nil), putEvery("other", "@daily", nil))
	for i := range 2 {
		jobs := reserveOne(t, f, patience, "tick")
		require.Len(t, jobs, 1)
		require.Equal(t, fmt.Sprint(i+1), string(jobs[0].Body))
		do(t, f, finish(jobs[0]))
	}
	info, err := f.shard.Schedule(t.Context(), "tick", false)
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.State.Runs, uint64(2))
	c.eventually(func() bool {
		measured := uint64(0)
		for _, n := range c.nodes {
			count, _ := runLateness(t, n.Metrics())
			measured += count
		}
		return measured >= info.State.Runs
	}, "each run's lateness is measured")
	_, err = f.shard.Schedule(t.Context(), "none", false)
	require.Equal(t, job.CodeNotFound, job.CodeOf(err))
	list, err := f.shard.Schedules(t.Context(), "", 10, false)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "other", list[0].Name)
	list, err = f.shard.Schedules(t.Context(), "other", 10, true)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// runLateness is how many runs were measured, and their lateness together.
func runLateness(t *testing.T, from prometheus.Gatherer) (count uint64, seconds float64) {
	families, err := from.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "tarry_schedule_lateness_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			return h.GetSampleCount(), h.GetSampleSum()
		}
	}
	t.Fatal("there is no such metric")
	return 0, 0
}

func TestTheLatenessOfRunsIsMeasuredFromTheirPlannedInstants(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newShardMetrics(registry)
	fire := func(planned ...int64) *jobpb.Op {
		op := &jobpb.FireSchedule{}
		for _, ms := range planned {
			op.Runs = append(op.Runs, &jobpb.ScheduledRun{PlannedMs: ms})
		}
		return &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: op}}
	}
	ops := []*jobpb.Op{fire(1000, 2000), fire(), fire(500), fire(3000)}
	refused := &jobpb.Result{Code: jobpb.Code_CONDITION_FAILED}
	m.fired(ops, []*jobpb.Result{{}, {}, refused, {}}, time.UnixMilli(2500))
	count, seconds := runLateness(t, registry)
	require.EqualValues(t, 3, count, "one that was refused is planned again")
	require.InDelta(t, 1.5+0.5, seconds, 1e-9, "one that is ahead, by another clock, is not late")
}

func TestAScheduleThatTheLeaderCannotComputeStopsAloneWithAReason(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.leader()
	n := c.nodes[0]
	do(t, n, putEvery("bad", "* * * * *", func(s *jobpb.Schedule) { s.Zone = "Europe/Bielefeld" }), putEvery("good", "@every 1s", nil))
	require.Len(t, reserveOne(t, n, patience, "good"), 1)
	info, err := n.shard.Schedule(t.Context(), "bad", false)
	require.NoError(t, err)
	require.True(t, info.State.Paused)
	require.Contains(t, info.State.Trouble, "Europe/Bielefeld")
}

func TestRunsWaitWhileADiskIsLow(t *testing.T) {
	t.Parallel()
	tune, free := fakeDisks(1)
	c := newTunedCluster(t, 1, tune)
	c.leader()
	n := c.nodes[0]
	free[0].Store(99)
	c.eventually(func() bool { return codeOfAdd(n, "d") == job.CodeDiskLow }, "adds are refused")
	do(t, n, putEvery("tick", "@every 1s", nil))
	require.Empty(t, reserveOne(t, n, 1500*time.Millisecond, "tick"))
	free[0].Store(900)
	require.Len(t, reserveOne(t, n, patience, "tick"), 1)
	info, err := n.shard.Schedule(t.Context(), "tick", false)
	require.NoError(t, err)
	require.Equal(t, info.State.AnchorMs+1000, info.State.Past[0].PlannedMs, "the run that waited comes first")
}

// An entry is bounded, however many runs are due and however large their jobs are. The
// next entries have the rest.
func TestRunsThatAreDueTogetherAreSpreadOverEntries(t *testing.T) {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	index := uint64(0)
	apply := func(now int64, ops ...*jobpb.Op) []*jobpb.Result {
		index++
		data := oplog.AppendEntryHeader(nil, now)
		for _, op := range ops {
			data, err = oplog.AppendOp(data, op)
			require.NoError(t, err)
		}
		rs, _, err := m.Apply([]fsm.Entry{{Index: index, Term: 1, Data: data}}, true)
		require.NoError(t, err)
		return rs[0]
	}
	const start = 1_000_000
	large := func(s *jobpb.Schedule) { s.Job.Body = []byte(strings.Repeat("x", job.MaxScheduleBodyBytes)) }
	growing := func(s *jobpb.Schedule) {
		s.Job.Body = []byte(strings.Repeat("{{planned}}", job.MaxScheduleBodyBytes/len("{{planned}}")))
	}
	for i := range 150 {
		change := []func(*jobpb.Schedule){nil, large, growing}[i%3]
		apply(start, putEvery(fmt.Sprintf("s%03d", i), "@every 1s", change))
	}
	now := int64(start + 20_000)
	started, entries := 0, 0
	for next := m.NextSchedule(); next != 0 && next <= now; next = m.NextSchedule() {
		ops, err := planSchedules(m, now)
		require.NoError(t, err)
		require.NotEmpty(t, ops)
		require.LessOrEqual(t, len(ops), dueSchedules)
		runs := 0
		for _, op := range ops {
			runs += len(op.GetFireSchedule().Runs)
		}
		require.LessOrEqual(t, runs, dueRuns+1)
		before := m.Metrics().WAL.BytesIn
		for _, r := range apply(now, ops...) {
			require.NoError(t, job.ResultError(r))
			started += int(r.Count)
		}
		require.Less(t, m.Metrics().WAL.BytesIn-before, uint64(dueRunBytes+1<<20), "the jobs of one entry")
		entries++
		require.Less(t, entries, 1000, "it makes progress")
	}
	require.Equal(t, 150*20, started)
}
