package fsm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

func everySchedule(body string) *jobpb.Schedule {
	return &jobpb.Schedule{
		Spec: "@every 1s", Zone: "UTC", MissedAfterMs: 10,
		Job: &jobpb.Add{Topic: "t", TtrMs: 1000, MaxAttempts: 1, Body: []byte(body)},
	}
}

func opPut(name string, s *jobpb.Schedule) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Schedule: s}}}
}

func opFire(f *jobpb.FireSchedule) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: f}}
}

func (r *rig) schedule(name string) *jobpb.ScheduleInfo {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	s, found, err := v.Schedule(name)
	require.NoError(r.t, err)
	if !found {
		return nil
	}
	return s
}

// fire does what the leader would: it saw the schedule as it is now.
func (r *rig) fire(name string, next int64, planned ...int64) *jobpb.Op {
	s := r.schedule(name)
	f := &jobpb.FireSchedule{Name: name, Revision: s.State.Revision, ExpectNextMs: s.State.NextMs, NextMs: next}
	for _, p := range planned {
		f.Runs = append(f.Runs, &jobpb.ScheduledRun{PlannedMs: p})
	}
	return opFire(f)
}

func TestARunIsStartedOnceWhoeverAsks(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, jobpb.Code_OK, r.one(opPut("s", everySchedule("{{name}} {{run}} {{planned}} {{planned_ms}}"))).Code)
	require.EqualValues(t, 1, r.m.NextSchedule(), "the leader has to work out the first instant")
	require.Equal(t, jobpb.Code_OK, r.one(r.fire("s", rigStart+1000)).Code)
	require.EqualValues(t, rigStart+1000, r.m.NextSchedule())

	r.now += 1500
	fire := r.fire("s", rigStart+2000, rigStart+1000)
	again := proto.Clone(fire).(*jobpb.Op) // of a leader that lost the answer, or of the next one
	results := r.do(fire, again)
	require.EqualValues(t, 1, results[0].Count)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, results[1].Code)
	r.reopen()
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(again).Code)
	require.EqualValues(t, rigStart+2000, r.m.NextSchedule())

	st := r.schedule("s").State
	require.EqualValues(t, 1, st.Runs)
	require.Len(t, st.Past, 1)
	j := r.job(st.LastSeq)
	require.Equal(t, "s@1970-01-01T00:16:41Z", j.Id)
	require.Equal(t, "s 1 1970-01-01T00:16:41Z 1001000", string(j.Body))
	require.EqualValues(t, 1, r.topic("t").Ready)
}

func TestARunOfAReplacedScheduleIsNotStarted(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("old")))
	r.one(r.fire("s", rigStart+1000))
	r.now += 1000
	fire := r.fire("s", rigStart+2000, rigStart+1000)
	r.one(&jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: "s"}}})
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(fire).Code)
	require.Zero(t, r.m.NextSchedule())
	r.one(opPut("s", everySchedule("new")))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(fire).Code, "the name is the same, the schedule is not")
	require.Zero(t, r.topic("t").Added)
}

func TestAnotherBodyKeepsTheNextInstant(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("old")))
	r.one(r.fire("s", rigStart+1000))
	require.True(t, r.one(opPut("s", everySchedule("old"))).Existing)
	require.False(t, r.one(opPut("s", everySchedule("new"))).Existing)
	require.EqualValues(t, rigStart+1000, r.m.NextSchedule())
	other := everySchedule("new")
	other.Spec = "@every 2s"
	r.one(opPut("s", other))
	require.EqualValues(t, 1, r.m.NextSchedule())
}

func TestNoRunIsStartedEarly(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	r.one(r.fire("s", rigStart+1000))
	require.Equal(t, jobpb.Code_INVALID, r.one(r.fire("s", rigStart+2000, rigStart+1000)).Code)
	r.now += 999
	require.Equal(t, jobpb.Code_INVALID, r.one(r.fire("s", rigStart+2000, rigStart+1000)).Code)
}

func TestOverlappingRunsAreSkippedUntilTheLastIsDone(t *testing.T) {
	r := newRig(t, Options{})
	s := everySchedule("x")
	s.Overlap = jobpb.Overlap_OVERLAP_SKIP
	r.one(opPut("s", s))
	next := int64(rigStart + 1000)
	r.one(r.fire("s", next))
	step := func() *jobpb.PastRun {
		r.now = next
		r.one(r.fire("s", next+1000, next))
		next += 1000
		past := r.schedule("s").State.Past
		return past[len(past)-1]
	}
	first := step()
	require.Equal(t, jobpb.RunOutcome_RUN_STARTED, first.Outcome)
	require.Equal(t, jobpb.RunOutcome_RUN_SKIPPED, step().Outcome, "it is ready")
	r.one(opReserveJob(bySeq(first.Seq), 60_000))
	require.Equal(t, jobpb.RunOutcome_RUN_SKIPPED, step().Outcome, "it is reserved")
	r.one(opFinish(bySeq(first.Seq)))
	second := step()
	require.Equal(t, jobpb.RunOutcome_RUN_STARTED, second.Outcome)
	r.one(opReserveJob(bySeq(second.Seq), 60_000))
	r.one(opBury(&jobpb.Bury{Ref: bySeq(second.Seq)}))
	require.Equal(t, jobpb.RunOutcome_RUN_STARTED, step().Outcome, "a dead one is done")
	now := opFire(&jobpb.FireSchedule{Name: "s", Now: true, Runs: []*jobpb.ScheduledRun{{PlannedMs: r.now}}})
	require.Equal(t, jobpb.Code_OK, r.one(now).Code, "out of turn it is not asked")
	st := r.schedule("s").State
	require.Equal(t, []uint64{4, 2}, []uint64{st.Runs, st.Skipped})
}

// As after an answer that was lost.
func TestARunOutOfTurnThatIsAskedForAgainByItsKeyIsOneRun(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	now := func(key string) *jobpb.Result {
		return r.one(opFire(&jobpb.FireSchedule{Name: "s", Now: true, Key: key, Runs: []*jobpb.ScheduledRun{{}}}))
	}
	first := now("k")
	require.Equal(t, []any{"s@now-k", false}, []any{first.Id, first.Existing})
	r.now += 5
	again := now("k")
	require.Equal(t, []any{first.Seq, first.Id, first.DueMs, true}, []any{again.Seq, again.Id, again.DueMs, again.Existing})
	require.False(t, now("other").Existing)
	r.one(opDelete(byID("s@now-k")))
	again = now("k")
	require.Equal(t, []any{first.Seq, jobpb.State_STATE_NONE, true}, []any{again.Seq, again.State, again.Existing}, "the job has gone, but the run is remembered")
	st := r.schedule("s").State
	require.EqualValues(t, 2, st.Runs)
	require.Len(t, st.Past, 2)
	for range job.PastRuns {
		require.False(t, now("").Existing)
	}
	require.False(t, now("k").Existing, "of so many later runs it was not the last 20 any more")
	require.Equal(t, jobpb.Code_INVALID, now(strings.Repeat("k", job.MaxRunKeyBytes+1)).Code)
	longest := strings.Repeat("s", job.MaxScheduleNameBytes)
	r.one(opPut(longest, everySchedule("x")))
	run := &jobpb.FireSchedule{Name: longest, Now: true, Key: strings.Repeat("k", job.MaxRunKeyBytes), Runs: []*jobpb.ScheduledRun{{}}}
	require.Equal(t, jobpb.Code_OK, r.one(opFire(run)).Code, "an id has room for both")
}

// A topic may keep what was finished for a while; it is done all the same.
func TestARetainedJobIsDone(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RetainMs: 600_000}}))
	s := everySchedule("x")
	s.Overlap = jobpb.Overlap_OVERLAP_SKIP
	r.one(opPut("s", s))
	next := int64(rigStart + 1000)
	r.one(r.fire("s", next))
	for i := range 3 {
		r.now = next
		require.EqualValues(t, 1, r.one(r.fire("s", next+1000, next)).Count, "run %d", i)
		next += 1000
		seq := r.schedule("s").State.LastSeq
		if i == 0 {
			r.one(opDelete(bySeq(seq)))
			continue
		}
		r.one(opReserveJob(bySeq(seq), 60_000))
		r.one(opFinish(bySeq(seq)))
	}
}

func TestARunThatCannotBeMadeIsToldAndTheNextOneComes(t *testing.T) {
	r := newRig(t, Options{maxTopics: 1})
	r.one(opAdd(&jobpb.Add{Topic: "other"}))
	r.one(opPut("s", everySchedule("x")))
	r.one(r.fire("s", rigStart+1000))
	r.now += 1000
	require.Zero(t, r.one(r.fire("s", rigStart+2000, rigStart+1000)).Count)
	st := r.schedule("s").State
	require.EqualValues(t, 1, st.Refused)
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, st.Past[0].Code)
	require.EqualValues(t, rigStart+2000, st.NextMs)
}

// What a follower does without building results is the same.
func TestAFollowersScheduleIsTheLeaders(t *testing.T) {
	r, follower := newRig(t, Options{maxTopics: 1}), newRig(t, Options{maxTopics: 1})
	s := everySchedule("x")
	s.JitterMs = 5000
	ops := []*jobpb.Op{opPut("s", s)}
	fire := func(f *jobpb.FireSchedule) { f.Name, f.Revision = "s", 1; ops = append(ops, opFire(f)) }
	fire(&jobpb.FireSchedule{NextMs: rigStart - 30})
	fire(&jobpb.FireSchedule{ExpectNextMs: rigStart - 30, NextMs: rigStart - 20, Runs: []*jobpb.ScheduledRun{{PlannedMs: rigStart - 30}}, Entropy: 99})
	ops = append(ops, opAdd(&jobpb.Add{Topic: "other"}))
	for i, op := range ops {
		e := []Entry{{Index: uint64(i + 1), Term: 1, Data: encodeEntry(t, rigStart, op)}}
		_, _, err := r.m.Apply(e, true)
		require.NoError(t, err)
		_, _, err = follower.m.Apply(e, false)
		require.NoError(t, err)
	}
	require.Equal(t, r.digest(), follower.digest())
	require.NotZero(t, r.schedule("s").State.LastSeq)
}

func TestJitterPutsAJobOffAndNeverForward(t *testing.T) {
	r := newRig(t, Options{})
	s := everySchedule("x")
	s.JitterMs = 500
	r.one(opPut("s", s))
	next := int64(rigStart + 10)
	r.one(r.fire("s", next))
	seen := map[int64]bool{}
	for i := range 200 {
		r.now = next
		op := r.fire("s", next+10, next)
		op.GetFireSchedule().Entropy = uint64(i)
		r.one(op)
		put := r.job(r.schedule("s").State.LastSeq).DueMs - next
		require.True(t, put >= 0 && put <= 500, "%d", put)
		seen[put] = true
		next += 10
	}
	require.Greater(t, len(seen), 100)
}

func TestRunsAreSpreadAsTheTopicSaysAndNeverForward(t *testing.T) {
	const window, schedules = 1000, 100
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{SpreadMs: window}}))
	planned := r.now + 10
	for i := range schedules {
		r.one(opPut(fmt.Sprint(i), everySchedule("x")))
		r.one(r.fire(fmt.Sprint(i), planned))
	}
	r.now = planned + window/10 // the leader comes late
	ready, tenths := 0, make([]int, 10)
	for i := range schedules {
		r.one(r.fire(fmt.Sprint(i), planned+5000, planned))
		j := r.job(r.schedule(fmt.Sprint(i)).State.LastSeq)
		late := j.DueMs - planned
		require.True(t, late >= window/10 && late < window, "never early, and never handed out before now: %d", late)
		if tenths[late/(window/10)]++; j.State == jobpb.State_STATE_READY {
			ready++
		}
	}
	require.InDelta(t, schedules/10, ready, 3, "those whose share was over")
	require.InDelta(t, 2*schedules/10, tenths[1], 4)
	for _, n := range tenths[2:] {
		require.InDelta(t, schedules/10, n, 3, "evenly: %v", tenths)
	}

	now := r.one(opFire(&jobpb.FireSchedule{Name: "0", Now: true, Runs: []*jobpb.ScheduledRun{{}}}))
	require.Equal(t, jobpb.State_STATE_READY, now.State, "a run out of turn waits for nothing")
	added := r.one(opAdd(&jobpb.Add{Topic: "t", DueMs: r.now}))
	require.Equal(t, jobpb.State_STATE_READY, added.State, "nor does the next add")
}

func TestTheLastRunsAreRemembered(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	next := int64(rigStart + 10)
	r.one(r.fire("s", next))
	for range job.PastRuns + 5 {
		r.now = next
		r.one(r.fire("s", next+10, next))
		next += 10
	}
	past := r.schedule("s").State.Past
	require.Len(t, past, job.PastRuns)
	require.Equal(t, next-10, past[job.PastRuns-1].PlannedMs)
}

func TestTroubleStopsAScheduleUntilItIsChangedOrResumed(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	op := r.fire("s", 0)
	op.GetFireSchedule().Trouble = "zone unknown"
	r.one(op)
	require.Zero(t, r.m.NextSchedule())
	st := r.schedule("s").State
	require.True(t, st.Paused)
	require.Equal(t, "zone unknown", st.Trouble)
	r.one(&jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: "s", Paused: new(false)}}})
	require.EqualValues(t, 1, r.m.NextSchedule())
	require.Empty(t, r.schedule("s").State.Trouble)
}

func TestSchedulesThatAreRefused(t *testing.T) {
	r := newRig(t, Options{})
	for says, change := range map[string]func(*jobpb.Schedule){
		"spec has":         func(s *jobpb.Schedule) { s.Spec = strings.Repeat("*", job.MaxSpecBytes+1) },
		"zone has":         func(s *jobpb.Schedule) { s.Zone = "" },
		"end lies":         func(s *jobpb.Schedule) { s.StartMs, s.EndMs = 5, 4 },
		"before 1970":      func(s *jobpb.Schedule) { s.StartMs = -1 },
		"jitter is":        func(s *jobpb.Schedule) { s.JitterMs = job.MaxJitter.Milliseconds() + 1 },
		"missed_max is 0":  func(s *jobpb.Schedule) { s.Missed = jobpb.Missed_MISSED_ALL },
		"missed_max is 1;": func(s *jobpb.Schedule) { s.MissedMax = 1 },
		"missed_after is":  func(s *jobpb.Schedule) { s.MissedAfterMs = 0 },
		"body has":         func(s *jobpb.Schedule) { s.Job.Body = make([]byte, job.MaxScheduleBodyBytes+1) },
		"no id":            func(s *jobpb.Schedule) { s.Job.Id = "x" },
		"ttr_ms":           func(s *jobpb.Schedule) { s.Job.TtrMs = 0 },
		"topic":            func(s *jobpb.Schedule) { s.Job.Topic = "" },
	} {
		s := everySchedule("x")
		change(s)
		got := r.one(opPut("s", s))
		require.Equal(t, jobpb.Code_INVALID, got.Code, says)
		require.Contains(t, got.Message, says)
	}
	for _, name := range []string{"", "$s", `a"b`, `a\b`, "{a}", "preview", strings.Repeat("x", job.MaxScheduleNameBytes+1)} {
		require.Equal(t, jobpb.Code_INVALID, r.one(opPut(name, everySchedule("x"))).Code, name)
	}
}

// A name may be as long as it likes within its limit: the ids of the jobs fit.
func TestTheLongestNameGivesGoodIDs(t *testing.T) {
	name := strings.Repeat("x", job.MaxScheduleNameBytes)
	require.NoError(t, job.CheckScheduleName("name", name))
	require.NoError(t, job.CheckID("id", job.RunID(name, 253402300799001, math.MaxUint64)))
}

func TestTheNumberOfSchedulesIsBounded(t *testing.T) {
	r := newRig(t, Options{})
	var ops []*jobpb.Op
	for i := range job.MaxSchedules {
		ops = append(ops, opPut(fmt.Sprint("s", i), everySchedule("")))
	}
	r.do(ops...)
	require.Equal(t, jobpb.Code_TOO_MANY_SCHEDULES, r.one(opPut("more", everySchedule(""))).Code)
	require.Equal(t, jobpb.Code_OK, r.one(&jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: "s7"}}}).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opPut("more", everySchedule(""))).Code)
	require.Len(t, r.m.DueSchedules(1<<60, 100), 100)
}

func TestCheckFindsASpoiltSchedule(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	v := r.m.View()
	require.NoError(t, v.Check())
	require.NoError(t, v.Close())
	db := r.m.store.db
	key := appendScheduleKey(nil, scheduleDef, "s")
	value, closer, err := db.Get(key)
	require.NoError(t, err)
	value = append([]byte(nil), value...)
	require.NoError(t, closer.Close())
	require.NoError(t, db.Delete(key, nil))
	v = r.m.View()
	require.ErrorContains(t, v.Check(), `schedule "s" has a state but no description`)
	require.NoError(t, v.Close())
	require.NoError(t, db.Set(key, value, nil))
	require.NoError(t, db.Set(appendScheduleKey(nil, scheduleDef, "t"), value, nil))
	v = r.m.View()
	require.ErrorContains(t, v.Check(), "description but no state")
	require.NoError(t, v.Close())
	require.NoError(t, db.Delete(appendScheduleKey(nil, scheduleDef, "t"), nil))
}
