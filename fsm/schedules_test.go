package fsm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
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

// fire proposes a run as a leader that saw the present schedule does.
func (r *rig) fire(name string, next int64, planned ...int64) *jobpb.Op {
	s := r.schedule(name)
	f := &jobpb.FireSchedule{Name: name, Revision: s.State.Revision, ExpectNextMs: s.State.NextMs, NextMs: next}
	for _, p := range planned {
		f.Runs = append(f.Runs, &jobpb.ScheduledRun{PlannedMs: p})
	}
	return opFire(f)
}

// A follower, which builds no results, has the same schedules.
func TestFollowersHaveTheLeadersSchedule(t *testing.T) {
	r, follower := newRig(t, Options{limits: job.Limits{MaxTopics: 1}}), newRig(t, Options{limits: job.Limits{MaxTopics: 1}})
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

func TestJitterOnlyDelays(t *testing.T) {
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

func TestRunsAreSpreadByTheTopicsSetting(t *testing.T) {
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
		require.True(t, late >= window/10 && late < window, "never early: %d", late)
		if tenths[late/(window/10)]++; j.State == jobpb.State_STATE_READY {
			ready++
		}
	}
	require.InDelta(t, schedules/10, ready, 3, "those whose share has passed")
	require.InDelta(t, 2*schedules/10, tenths[1], 4)
	for _, n := range tenths[2:] {
		require.InDelta(t, schedules/10, n, 3, "evenly: %v", tenths)
	}

	now := r.one(opFire(&jobpb.FireSchedule{Name: "0", Now: true, Runs: []*jobpb.ScheduledRun{{}}}))
	require.Equal(t, jobpb.State_STATE_READY, now.State, "a run started now is not spread")
	added := r.one(opAdd(&jobpb.Add{Topic: "t", DueMs: r.now}))
	require.Equal(t, jobpb.State_STATE_READY, added.State, "nor is the next add")
}

// The ids of the jobs of a schedule with the longest name are valid.
func TestTheLongestNameGivesValidIDs(t *testing.T) {
	name := strings.Repeat("x", job.MaxScheduleNameBytes)
	require.NoError(t, job.CheckScheduleName("name", name))
	require.NoError(t, job.CheckID("id", job.RunID(name, 253402300799001, math.MaxUint64)))
}

func TestSchedulesAreBounded(t *testing.T) {
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

func TestCheckFindsADamagedSchedule(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opPut("s", everySchedule("x")))
	v := r.m.View()
	require.NoError(t, check.Records(v, nil))
	require.NoError(t, v.Close())
	db := r.m.store.db
	key := record.AppendScheduleKey(nil, record.ScheduleDef, "s")
	value, closer, err := db.Get(key)
	require.NoError(t, err)
	value = append([]byte(nil), value...)
	require.NoError(t, closer.Close())
	require.NoError(t, db.Delete(key, pebble.NoSync))
	v = r.m.View()
	require.ErrorContains(t, check.Records(v, nil), `schedule "s" has a state but no definition`)
	require.NoError(t, v.Close())
	require.NoError(t, db.Set(key, value, pebble.NoSync))
	require.NoError(t, db.Set(record.AppendScheduleKey(nil, record.ScheduleDef, "t"), value, pebble.NoSync))
	v = r.m.View()
	require.ErrorContains(t, check.Records(v, nil), "definition but no state")
	require.NoError(t, v.Close())
	require.NoError(t, db.Delete(record.AppendScheduleKey(nil, record.ScheduleDef, "t"), pebble.NoSync))
}
