package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The changed history: "p" is postponed, edited and delivered; "r" is replaced;
// "b" waits as its backoff says; "c" is deleted on a condition; "x" is finished
// and adds "y" and "z" in the same call, of which nobody knows the outcome.
func changedHistory() []Op {
	return []Op{
		{Kind: Add, ID: "p", Topic: "t", Body: "P", Seq: 1, Result: created, Revision: 1, Invoke: 0, Complete: 5 * ms, Delay: time.Second, TTR: time.Second},
		{Kind: Add, ID: "p", Topic: "t", Body: "ignored", Seq: 1, IfExists: postpone, Result: postponed, IfRevision: 1, Revision: 2, Invoke: 500 * ms, Complete: 505 * ms, Delay: time.Second, TTR: time.Second},
		{Kind: Update, ID: "p", Topic: "t", Body: "Q", Seq: 1, IfRevision: 2, Revision: 3, MaxAttempts: 3, Invoke: 600 * ms, Complete: 610 * ms},
		{Kind: Update, ID: "p", Topic: "t", Outcome: Fail, Code: conditionFailed, IfRevision: 2, Moves: true, Invoke: 620 * ms, Complete: 630 * ms},
		{Kind: Get, ID: "p", Topic: "t", Body: "Q", Seq: 1, Revision: 3, State: "delayed", Invoke: 640 * ms, Complete: 650 * ms},
		{Kind: Deliver, ID: "p", Topic: "t", Body: "Q", Seq: 1, Invoke: 700 * ms, Complete: 1510 * ms, Due: 1505 * ms, Generation: 1, Attempts: 1, ReservedUntil: 2506 * ms},
		{Kind: Update, ID: "p", Topic: "t", Outcome: Fail, Code: alreadyReserved, Moves: true, Invoke: 1520 * ms, Complete: 1530 * ms},
		{Kind: Finish, ID: "p", Topic: "t", Seq: 1, Generation: 1, Invoke: 1600 * ms, Complete: 1610 * ms},

		{Kind: Add, ID: "r", Topic: "t", Body: "R", Seq: 2, Result: created, Revision: 1, Invoke: 0, Complete: 5 * ms, TTR: time.Second},
		{Kind: Add, ID: "r", Topic: "t", Body: "S", Seq: 3, IfExists: replace, Result: replaced, Revision: 1, Invoke: 10 * ms, Complete: 15 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "r", Topic: "t", Body: "S", Seq: 3, Invoke: 20 * ms, Complete: 30 * ms, Due: 12 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1025 * ms},
		{Kind: Finish, ID: "r", Topic: "t", Seq: 3, Generation: 1, Invoke: 40 * ms, Complete: 45 * ms},

		{Kind: Add, ID: "b", Topic: "t", Body: "B", Seq: 4, Result: created, Invoke: 0, Complete: 5 * ms, TTR: time.Second, Backoff: [3]time.Duration{time.Second, 2 * time.Second, 2 * time.Second}},
		{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 4, Invoke: 10 * ms, Complete: 15 * ms, Due: 2 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1012 * ms},
		{Kind: Release, ID: "b", Topic: "t", Seq: 4, Generation: 1, Revision: 3, Invoke: 20 * ms, Complete: 25 * ms},
		{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 4, Invoke: 30 * ms, Complete: 1025 * ms, Due: 1022 * ms, Generation: 2, Attempts: 2, ReservedUntil: 2024 * ms},
		{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 4, Invoke: 1030 * ms, Complete: 4030 * ms, Due: 4024 * ms, Generation: 3, Attempts: 3, ReservedUntil: 5024 * ms},
		{Kind: Finish, ID: "b", Topic: "t", Seq: 4, Generation: 3, Invoke: 4040 * ms, Complete: 4050 * ms},

		{Kind: Add, ID: "c", Topic: "t", Body: "C", Seq: 5, Result: created, Revision: 1, Invoke: 0, Complete: 5 * ms, Delay: time.Second, TTR: time.Second},
		{Kind: Delete, ID: "c", Topic: "t", Outcome: Fail, Code: conditionFailed, IfState: "dead", Invoke: 10 * ms, Complete: 15 * ms},
		{Kind: Delete, ID: "c", Topic: "t", Seq: 5, IfState: "delayed", Invoke: 20 * ms, Complete: 25 * ms},

		{Kind: Add, ID: "x", Topic: "t", Body: "X", Seq: 6, Result: created, Invoke: 0, Complete: 5 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "x", Topic: "t", Body: "X", Seq: 6, Invoke: 10 * ms, Complete: 15 * ms, Due: 2 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1012 * ms},
		{Kind: Finish, ID: "x", Topic: "t", Seq: 6, Generation: 1, Group: 7, Outcome: Unknown, Invoke: 20 * ms, Complete: 30 * ms},
		{Kind: Add, ID: "y", Topic: "t", Body: "Y", Group: 7, Outcome: Unknown, Invoke: 20 * ms, Complete: 30 * ms, TTR: time.Second},
		{Kind: Add, ID: "z", Topic: "t", Body: "Z", Group: 7, Outcome: Unknown, Invoke: 20 * ms, Complete: 30 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "y", Topic: "t", Body: "Y", Seq: 7, Invoke: 25 * ms, Complete: 35 * ms, Due: 22 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1025 * ms},
		{Kind: Deliver, ID: "z", Topic: "t", Body: "Z", Seq: 8, Invoke: 25 * ms, Complete: 35 * ms, Due: 22 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1025 * ms},
		{Kind: Finish, ID: "y", Topic: "t", Seq: 7, Generation: 1, Invoke: 40 * ms, Complete: 50 * ms},
		{Kind: Finish, ID: "z", Topic: "t", Seq: 8, Generation: 1, Invoke: 40 * ms, Complete: 50 * ms},
	}
}

func TestChangedHistoryPasses(t *testing.T) {
	r := Check(changedHistory(), testOptions)
	require.True(t, r.OK(), "%v", r)
	require.Zero(t, r.OpenLives)
	require.Equal(t, 5, r.Jobs)
	require.Equal(t, 2, r.Recovered)
}

// deliverX hands x out once more, after the call that finished it.
func deliverX(ops []Op) []Op {
	return append(ops,
		Op{Kind: Deliver, ID: "x", Topic: "t", Body: "X", Seq: 6, Invoke: 1020 * ms, Complete: 1030 * ms, Due: 2 * ms, Generation: 2, Attempts: 2, ReservedUntil: 2025 * ms},
		Op{Kind: Finish, ID: "x", Topic: "t", Seq: 6, Generation: 2, Invoke: 1040 * ms, Complete: 1050 * ms})
}

// without removes all that is known of the jobs but how they were added.
func without(ops []Op, ids ...string) []Op {
	for _, id := range ids {
		ops = remove(remove(ops, id, Deliver), id, Finish)
	}
	return ops
}

func TestEachRuleOfChangesCanFail(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(ops []Op) []Op
	}{
		{"postponed job comes when it was due before", "I3", func(ops []Op) []Op {
			d := find(ops, "p", Deliver, 0)
			d.Complete, d.Due = 1010*ms, 1003*ms
			return ops
		}},
		{"backoff after a release is left out", "I3", func(ops []Op) []Op {
			d := find(ops, "b", Deliver, 1)
			d.Complete, d.Due = 100*ms, 2*ms
			return ops
		}},
		{"backoff after an overrun is left out", "I3", func(ops []Op) []Op {
			d := find(ops, "b", Deliver, 2)
			d.Complete, d.Due = 2040*ms, 1022*ms
			return ops
		}},
		{"job that was replaced is delivered", "I5", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Deliver, ID: "r", Topic: "t", Body: "R", Seq: 2, Invoke: 50 * ms, Complete: 55 * ms, Due: 2 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1055 * ms},
				Op{Kind: Finish, ID: "r", Topic: "t", Seq: 2, Generation: 1, Invoke: 60 * ms, Complete: 65 * ms})
		}},
		{"job that replaced another vanishes", "I1", func(ops []Op) []Op {
			return without(ops, "r")
		}},
		{"body that nobody asked for", "I2", func(ops []Op) []Op {
			find(ops, "p", Deliver, 0).Body = "ignored, too"
			return ops
		}},
		{"more attempts than an update allows", "I7", func(ops []Op) []Op {
			find(ops, "p", Add, 0).MaxAttempts, find(ops, "p", Add, 1).MaxAttempts = 1, 1
			find(ops, "p", Deliver, 0).Attempts = 4
			return ops
		}},
		{"two updates pass on one revision", "revision", func(ops []Op) []Op {
			u := find(ops, "p", Update, 1)
			u.Outcome, u.Code, u.Seq, u.Moves = OK, "", 1, false
			find(ops, "p", Get, 0).Revision = 0
			return ops
		}},
		{"condition on a revision that was over", "revision", func(ops []Op) []Op {
			find(ops, "p", Update, 0).IfRevision = 1
			return ops
		}},
		{"read shows an old revision", "revision", func(ops []Op) []Op {
			find(ops, "p", Get, 0).Revision = 2
			return ops
		}},
		{"half of a batch", "batch", func(ops []Op) []Op { return without(ops, "z") }},
		{"jobs of a finish that was not done", "batch", deliverX},
		{"finish without its jobs", "I1", func(ops []Op) []Op { return without(ops, "y", "z") }},
		{"half of an acknowledged batch", "batch", func(ops []Op) []Op {
			find(ops, "y", Add, 0).Outcome, find(ops, "z", Add, 0).Outcome = OK, OK
			return without(ops, "z")
		}},
		{"acknowledged batch does nothing", "I1", func(ops []Op) []Op {
			find(ops, "y", Add, 0).Outcome, find(ops, "z", Add, 0).Outcome = OK, OK
			return without(ops, "y", "z")
		}},
	} {
		t.Run(c.rule+" "+c.name, func(t *testing.T) {
			r := Check(c.spoil(changedHistory()), testOptions)
			require.NotZero(t, r.Found[c.rule], "%v", r)
		})
	}
}

// Each of these is wrong only when the calls on the job are seen together.
func TestLivesWithChangesCanFail(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(ops []Op) []Op
	}{
		{"update is forgotten", func(ops []Op) []Op {
			find(ops, "p", Get, 0).Body = "P"
			return ops
		}},
		{"body of before the update is delivered", func(ops []Op) []Op {
			find(ops, "p", Deliver, 0).Body = "P"
			return ops
		}},
		{"postponing add brings its body", func(ops []Op) []Op {
			find(ops, "p", Deliver, 0).Body = "ignored"
			return ops
		}},
		{"update of a job in a consumer's hands", func(ops []Op) []Op {
			u := find(ops, "p", Update, 2)
			u.Outcome, u.Code, u.Seq, u.Moves = OK, "", 1, false
			return ops
		}},
		{"delayed job is said to be reserved", func(ops []Op) []Op {
			find(ops, "p", Update, 1).Code = alreadyReserved
			return ops
		}},
		{"delayed job without a limit is said to be dead", func(ops []Op) []Op {
			u := find(ops, "p", Update, 1)
			u.Code, u.Invoke, u.Complete = alreadyDead, 510*ms, 520*ms
			return ops
		}},
		{"condition is met and refused", func(ops []Op) []Op {
			find(ops, "p", Update, 1).IfRevision = 3
			return ops
		}},
		{"delete on a condition that is not met", func(ops []Op) []Op {
			d := find(ops, "c", Delete, 0)
			d.Outcome, d.Code, d.Seq = OK, "", 5
			later := find(ops, "c", Delete, 1)
			later.Outcome, later.Code, later.Seq = Fail, notFound, 0
			return ops
		}},
		{"add finds no job where one is", func(ops []Op) []Op {
			a := find(ops, "r", Add, 1)
			a.Result = created
			return ops
		}},
		{"job that waits is replaced by an add that replaces ended ones", func(ops []Op) []Op {
			find(ops, "r", Add, 1).IfExists = replaceEnded
			return ops
		}},
		{"add finds a job where none is", func(ops []Op) []Op {
			find(ops, "c", Add, 0).Result = "existing"
			return ops
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.spoil(changedHistory()), testOptions)
			require.NotZero(t, r.Found["life"], "%v", r)
		})
	}
}

func TestUnknownChangesStayOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(ops []Op) []Op
	}{
		{"batch that was not done", func(ops []Op) []Op {
			return deliverX(without(append(remove(ops, "x", Finish), *find(ops, "x", Finish, 0)), "y", "z"))
		}},
		{"job postponed by an unknown call", func(ops []Op) []Op {
			return append(remove(ops, "p", Get), Op{Kind: Update, ID: "p", Topic: "t", Outcome: Unknown, Moves: true, Delay: 300 * time.Millisecond, Invoke: 660 * ms, Complete: 670 * ms})
		}},
		{"unknown call makes a postponed job due", func(ops []Op) []Op {
			d := find(ops, "p", Deliver, 0)
			d.Complete, d.Due, d.ReservedUntil = 1010*ms, 1005*ms, 2006*ms
			return append(ops, Op{Kind: Update, ID: "p", Topic: "t", Outcome: Unknown, Moves: true, Delay: 300 * time.Millisecond, Invoke: 660 * ms, Complete: 670 * ms})
		}},
		{"unknown call replaced the job that vanished", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Add, ID: "v", Topic: "t", Body: "V", Seq: 20, Result: created, Invoke: 0, Complete: 5 * ms, TTR: time.Second},
				Op{Kind: Add, ID: "v", Topic: "t", Body: "W", IfExists: replace, Outcome: Unknown, Invoke: 10 * ms, Complete: 15 * ms, TTR: time.Second},
				Op{Kind: Deliver, ID: "v", Topic: "t", Body: "W", Seq: 21, Invoke: 20 * ms, Complete: 30 * ms, Due: 12 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1025 * ms},
				Op{Kind: Finish, ID: "v", Topic: "t", Seq: 21, Generation: 1, Invoke: 40 * ms, Complete: 45 * ms})
		}},
		{"unknown add asked for no backoff", func(ops []Op) []Op {
			d := find(ops, "b", Deliver, 1)
			d.Complete, d.Due, d.ReservedUntil = 100*ms, 2*ms, 1100*ms
			return append(ops, Op{Kind: Add, ID: "b", Topic: "t", Body: "B", Outcome: Unknown, Invoke: 0, Complete: 5 * ms, TTR: time.Second})
		}},
		{"kick ends a backoff", func(ops []Op) []Op {
			d := find(ops, "b", Deliver, 1)
			d.Complete, d.Due = 100*ms, 2*ms
			d.ReservedUntil = 1100 * ms
			return append(ops, Op{Kind: Kick, ID: "b", Topic: "t", Seq: 4, Invoke: 50 * ms, Complete: 60 * ms})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.spoil(changedHistory()), testOptions)
			require.True(t, r.OK(), "%v", r)
			require.Zero(t, r.OpenLives)
		})
	}
}
