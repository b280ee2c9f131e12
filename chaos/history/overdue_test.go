package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heldUp is a job that is due after a second and is delivered after five, while a write is
// acknowledged every 100 ms. A consumer asks after three and a half seconds, and gets another job.
func heldUp() []Op {
	ops := []Op{
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Result: created, Delay: time.Second, TTR: 10 * time.Second, Invoke: 0, Complete: ms},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, Due: sec, Invoke: 4900 * ms, Complete: 5 * sec, ReservedUntil: 14950 * ms},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 5010 * ms, Complete: 5020 * ms},
		{Kind: Reserve, Topics: "s t", Brought: 1, Node: "n1", Invoke: 3500 * ms, Complete: 3600 * ms},
	}
	for at := int64(0); at < 20*sec; at += 100 * ms {
		ops = append(ops, Op{Kind: Limit, Topic: "other", Limits: &Limits{Retain: 1}, Invoke: at, Complete: at + 20*ms})
	}
	return ops
}

func TestOverdueJobs(t *testing.T) {
	change := func(f func(ops []Op) []Op) []Op { return f(heldUp()) }
	reserve := func(ops []Op) *Op { return &ops[3] }
	always := []Window{{From: -20 * sec}}
	for _, c := range []struct {
		name  string
		bad   int
		ops   []Op
		quiet []Window
	}{
		{"passed over", 1, heldUp(), nil},
		{"passed over by a call that began before it was overdue", 0, change(func(ops []Op) []Op {
			reserve(ops).Invoke = 2 * sec
			return ops
		}), nil},
		{"handed out before the call ended", 0, change(func(ops []Op) []Op {
			reserve(ops).Complete = 4960 * ms
			return ops
		}), nil},
		{"passed over in another topic", 0, change(func(ops []Op) []Op {
			reserve(ops).Topics = "s"
			return ops
		}), nil},
		{"passed over when the cluster had just come back", 0, change(func(ops []Op) []Op {
			var kept []Op
			for _, op := range ops {
				if op.Kind != Limit || op.Invoke < sec || op.Invoke > 3400*ms {
					kept = append(kept, op)
				}
			}
			return kept
		}), nil},
		{"passed over on a slow machine", 0, change(func(ops []Op) []Op {
			return append(ops, Op{Kind: Delete, ID: "z", Invoke: sec, Complete: 2 * sec})
		}), nil},
		{"turned away", 1, change(func(ops []Op) []Op {
			reserve(ops).Brought = 0
			return ops
		}), always},
		{"turned away during a fault", 0, change(func(ops []Op) []Op {
			reserve(ops).Brought = 0
			return ops
		}), []Window{{From: -20 * sec, To: 3 * sec}}},
		{"turned away a moment after a fault", 0, change(func(ops []Op) []Op {
			reserve(ops).Brought = 0
			return ops
		}), []Window{{From: -sec}}},
		{"kept waiting", 1, change(func(ops []Op) []Op {
			*reserve(ops) = Op{Kind: Deliver, Outcome: Unknown, Topics: "t", Invoke: 500 * ms, Complete: 4 * sec}
			return ops
		}), always},
		{"kept waiting during a fault", 0, change(func(ops []Op) []Op {
			*reserve(ops) = Op{Kind: Deliver, Outcome: Unknown, Topics: "t", Invoke: 500 * ms, Complete: 4 * sec}
			return ops
		}), nil},
		{"perhaps reserved meanwhile", 0, change(func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Generation, find(ops, "a", Finish, 0).Generation = 2, 2
			return ops
		}), nil},
		{"perhaps made to wait", 0, change(func(ops []Op) []Op {
			return append(ops, Op{Kind: Update, ID: "a", Topic: "t", Seq: 1, Moves: true, Outcome: Unknown, Invoke: 10 * ms, Complete: 20 * ms})
		}), nil},
		{"in a topic with limits", 0, change(func(ops []Op) []Op {
			return append([]Op{{Kind: Limit, Topic: "t", Limits: &Limits{Reserved: 1}}}, ops...)
		}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions
			o.Quiet = c.quiet
			r := Check(c.ops, o)
			require.Equal(t, c.bad, r.Found["overdue"], "%v", r)
		})
	}
}

func TestOverdueWhileAClockWasWrong(t *testing.T) {
	o := testOptions
	o.Skews = []Skew{{Window: Window{From: -10 * sec, To: -3 * sec}, By: time.Second}}
	require.Zero(t, Check(heldUp(), o).Found["overdue"])
	o.Skews[0].To = -5 * sec
	require.Equal(t, 1, Check(heldUp(), o).Found["overdue"])
}

// A job that is held by a reservation becomes ready again when that ends.
func TestOverdueAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end Op
		bad int
	}{
		"released":         {Op{Kind: Release, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 20 * ms, Complete: 30 * ms}, 1},
		"released to wait": {Op{Kind: Release, ID: "a", Topic: "t", Seq: 1, Generation: 1, Delay: 4 * time.Second, Invoke: 20 * ms, Complete: 30 * ms}, 0},
		"perhaps released": {Op{Kind: Release, ID: "a", Topic: "t", Seq: 1, Generation: 1, Outcome: Unknown, Invoke: 20 * ms, Complete: 30 * ms}, 0},
		"expired":          {Op{Kind: Get, ID: "a", Seq: 1, State: "reserved", Invoke: 20 * ms, Complete: 30 * ms}, 1},
		"touched": {Op{Kind: Touch, ID: "a", Topic: "t", Seq: 1, Generation: 1, TTR: 4 * time.Second, ReservedUntil: 4020 * ms,
			Invoke: 20 * ms, Complete: 30 * ms}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ops := heldUp()
			ops[0].Delay, ops[0].TTR = 0, time.Second
			ops[1].Generation, ops[1].Attempts, ops[1].Due, ops[1].ReservedUntil = 2, 2, ms, 5950*ms
			ops[2].Generation = 2
			ops = append(ops, Op{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, Due: ms, Invoke: 5 * ms, Complete: 10 * ms, ReservedUntil: 1006 * ms}, c.end)
			require.Equal(t, c.bad, Check(ops, testOptions).Found["overdue"])
		})
	}
}

func TestTheWaitAfterAReleaseWithoutADelay(t *testing.T) {
	for attempt, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 3: 4 * time.Second, 13: time.Hour, 1000: time.Hour} {
		require.Equal(t, want, longestWait(attempt), attempt)
	}
}
