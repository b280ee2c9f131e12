package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scheduled is a history of three runs of a schedule, one of which was delivered
// twice.
func scheduled() []Op {
	ops := []Op{
		{Kind: Schedule, Topic: "t", TTR: time.Second, Plan: &Plan{Name: "tick", Every: time.Second, Missed: "all"}, Invoke: 0, Complete: 5 * ms},
		{Kind: Unschedule, Topic: "t", Plan: &Plan{Name: "tick", Every: time.Second, Missed: "all", Started: 3}, Invoke: 10 * sec, Complete: 10*sec + ms},
	}
	for i := range 3 {
		ops = append(ops, runAt(i, uint64(i+1))...)
	}
	again := *find(ops, runID(1), Deliver, 0)
	again.Complete, again.Generation, again.Attempts, again.ReservedUntil = 3100*ms, 2, 2, 4090*ms
	find(ops, runID(1), Finish, 0).Generation = 2
	find(ops, runID(1), Finish, 0).Invoke = 3200 * ms
	find(ops, runID(1), Finish, 0).Complete = 3210 * ms
	return append(ops, again)
}

func runID(i int) string { return fmt.Sprintf("tick@1970-01-01T00:00:0%d.5Z", i) }

func runAt(i int, seq uint64) []Op {
	at := int64(i)*sec + 500*ms
	return []Op{
		{Kind: Deliver, ID: runID(i), Topic: "t", Body: "tick", Seq: seq, Invoke: 0, Complete: at + 20*ms, Due: at, Generation: 1, Attempts: 1, ReservedUntil: at + 10*ms + sec},
		{Kind: Finish, ID: runID(i), Topic: "t", Seq: seq, Generation: 1, Invoke: at + 40*ms, Complete: at + 50*ms},
	}
}

// alone is a history of a schedule whose second run is skipped, for the first is
// not done in time.
func alone() []Op {
	plan := Plan{Name: "tick", Every: time.Second, Missed: "skip", Alone: true}
	counted := plan
	counted.Started, counted.Skipped = 2, 1
	ops := append(runAt(0, 1), runAt(2, 2)...)
	f := find(ops, runID(0), Finish, 0)
	f.Invoke, f.Complete = 1505*ms, 1520*ms
	return append(ops,
		Op{Kind: Schedule, Topic: "t", TTR: time.Second, Plan: &plan, Invoke: 0, Complete: 5 * ms},
		Op{Kind: Unschedule, Topic: "t", Plan: &counted, Invoke: 10 * sec, Complete: 10*sec + ms})
}

func TestRunsThatAreAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   bool
		spoil func(ops []Op)
	}{
		{"kept", false, func([]Op) {}},
		{"the next comes while one is there", true, func(ops []Op) {
			f := find(ops, runID(0), Finish, 0)
			f.Invoke, f.Complete = 2530*ms, 2540*ms
		}},
		{"the one that is there may be finished", false, func(ops []Op) {
			f := find(ops, runID(0), Finish, 0)
			f.Complete = 2540 * ms
		}},
		{"skipped though the last was done", true, func(ops []Op) {
			f := find(ops, runID(0), Finish, 0)
			f.Invoke, f.Complete = 600*ms, 610*ms
		}},
		{"missed, after the last was done", false, func(ops []Op) {
			f := find(ops, runID(0), Finish, 0)
			f.Invoke, f.Complete = 600*ms, 610*ms
			p := sweepOf(ops, Unschedule, 0).Plan
			p.Skipped, p.Lost = 0, 1
		}},
		{"the last may have been dead", false, func(ops []Op) {
			f := find(ops, runID(0), Finish, 0)
			f.Kind = Bury
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := alone()
			c.spoil(ops)
			r := Check(ops, Options{ClockBound: 2 * time.Millisecond})
			require.Equal(t, c.bad, r.Found["schedule"] > 0, "%v", r)
		})
	}
}

func TestRunsOfSchedules(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(ops []Op) []Op
	}{
		{"kept", "", func(ops []Op) []Op { return ops }},
		{"one run makes two jobs", "schedule", func(ops []Op) []Op {
			more := runAt(0, 9)
			more[0].Complete, more[1].Invoke, more[1].Complete = 600*ms, 610*ms, 620*ms
			return append(ops, more...)
		}},
		{"job of a run vanishes", "schedule", func(ops []Op) []Op { return without(ops, runID(2)) }},
		{"run in the middle is left out", "schedule", func(ops []Op) []Op {
			ops[1].Plan.Started = 2
			return without(ops, runID(1))
		}},
		{"run in the middle was missed, as agreed", "", func(ops []Op) []Op {
			ops[1].Plan.Started, ops[1].Plan.Missed = 2, "skip"
			return without(ops, runID(1))
		}},
		{"run comes before its instant", "I3", func(ops []Op) []Op {
			d := find(ops, runID(0), Deliver, 0)
			d.Complete, d.Due = 450*ms, 0
			return ops
		}},
		{"run is due before its instant", "schedule", func(ops []Op) []Op {
			find(ops, runID(0), Deliver, 0).Due = 450 * ms
			return ops
		}},
		{"job of a run nobody planned", "I2", func(ops []Op) []Op {
			ops[0].Plan.Name = "tock"
			return ops
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireBroken(t, Check(c.spoil(scheduled()), Options{ClockBound: 2 * time.Millisecond}), c.rule)
		})
	}
}
