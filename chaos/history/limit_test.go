package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// streamed is a history of three jobs over one stream with a credit of two: the
// third comes after the first was finished.
func streamed() []Op {
	var ops []Op
	for i := range 3 {
		id, seq, came := fmt.Sprint("s", i), uint64(i+1), int64(10+10*i)*ms
		ops = append(ops,
			Op{Kind: Add, ID: id, Topic: "t", Seq: seq, Invoke: 0, Complete: ms, TTR: time.Second},
			Op{Kind: Deliver, ID: id, Topic: "t", Seq: seq, Stream: 5, Credit: 2, Invoke: 0, Complete: came, Due: ms, Generation: 1, Attempts: 1, ReservedUntil: came + sec},
			Op{Kind: Finish, ID: id, Topic: "t", Seq: seq, Generation: 1, Invoke: came + 9*ms, Complete: came + 12*ms})
	}
	find(ops, "s1", Finish, 0).Invoke = 100 * ms
	find(ops, "s1", Finish, 0).Complete = 110 * ms
	return ops
}

func TestCreditOfStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   int
		spoil func(ops []Op)
	}{
		{"kept", 0, func([]Op) {}},
		{"exceeded", 1, func(ops []Op) {
			f := find(ops, "s0", Finish, 0)
			f.Invoke, f.Complete = 40*ms, 50*ms
		}},
		{"finish under way", 0, func(ops []Op) { find(ops, "s0", Finish, 0).Complete = 50 * ms }},
		{"finish that was refused", 1, func(ops []Op) {
			f := find(ops, "s0", Finish, 0)
			f.Outcome, f.Code = Fail, "not_applied"
		}},
		{"finish of unknown outcome", 0, func(ops []Op) { find(ops, "s0", Finish, 0).Outcome = Unknown }},
		{"time to run was over", 0, func(ops []Op) {
			f := find(ops, "s0", Finish, 0)
			f.Invoke, f.Complete = 40*ms, 50*ms
			find(ops, "s0", Deliver, 0).ReservedUntil = 15 * ms
		}},
		{"another stream", 0, func(ops []Op) {
			f := find(ops, "s0", Finish, 0)
			f.Invoke, f.Complete = 40*ms, 50*ms
			find(ops, "s2", Deliver, 0).Stream = 6
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := streamed()
			c.spoil(ops)
			require.Equal(t, c.bad, Check(ops, testOptions).Found["credit"])
		})
	}
}

// limited is a history of three delayed jobs in a topic with limits, which are
// handed out one after the other.
func limited() []Op {
	ops := []Op{{Kind: Limit, Topic: "t", Invoke: -10, Complete: -5, Limits: &Limits{Pending: 3, Reserved: 1, Rate: 10, Burst: 2}}}
	for i := range 3 {
		id, seq, came := fmt.Sprint("l", i), uint64(i+1), sec+int64(50*i)*ms
		ops = append(ops,
			Op{Kind: Add, ID: id, Topic: "t", Seq: seq, Result: created, Invoke: int64(i) * ms, Complete: int64(i+1) * ms, Delay: 900 * time.Millisecond, TTR: time.Second},
			Op{Kind: Deliver, ID: id, Topic: "t", Seq: seq, Invoke: 0, Complete: came + 5*ms, Due: 905 * ms, Generation: 1, Attempts: 1, ReservedUntil: came + sec},
			Op{Kind: Finish, ID: id, Topic: "t", Seq: seq, Generation: 1, Invoke: came + 10*ms, Complete: came + 40*ms})
	}
	return append(ops, Op{Kind: Pause, Topic: "t", Delay: 500 * time.Millisecond, Invoke: 100 * ms, Complete: 110 * ms})
}

func TestLimitsOfTopics(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string // empty: it is kept
		spoil func(ops []Op)
	}{
		{"kept", "", func([]Op) {}},
		{"too many wait", "limit", func(ops []Op) { ops[0].Limits.Pending = 2 }},
		{"one may have been kicked", "", func(ops []Op) {
			ops[0].Limits.Pending = 2
			k := find(ops, "l2", Finish, 0)
			*k = Op{Kind: Kick, ID: "l0", Topic: "t", Outcome: Unknown, Invoke: 500, Complete: 600}
		}},
		{"too many are reserved", "limit", func(ops []Op) { find(ops, "l0", Finish, 0).Invoke = sec + 60*ms }},
		{"too many in a second", "limit", func(ops []Op) { find(ops, "l2", Deliver, 0).ReservedUntil = 2*sec + 60*ms }},
		{"paused while they are due", "pause", func(ops []Op) { ops[len(ops)-1].Delay = 2 * time.Second }},
		{"paused and resumed", "", func(ops []Op) {
			ops[len(ops)-1].Delay = 2 * time.Second
			f := find(ops, "l2", Finish, 0)
			*f = Op{Kind: Resume, Topic: "t", Invoke: 700 * ms, Complete: 710 * ms}
		}},
		{"paused after they were reserved", "", func(ops []Op) {
			p := &ops[len(ops)-1]
			p.Invoke, p.Complete = sec+101*ms, sec+102*ms
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := limited()
			c.spoil(ops)
			found := Check(ops, testOptions).Found
			require.Equal(t, c.rule == "limit", found["limit"] > 0, "%v", found)
			require.Equal(t, c.rule == "pause", found["pause"] > 0, "%v", found)
		})
	}
}

// retained is a history of a job that was finished and added once more.
func retained() []Op {
	return []Op{
		{Kind: Limit, Topic: "t", Limits: &Limits{Retain: 3600}, Invoke: -10, Complete: -5},
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Result: created, Invoke: 0, Complete: 10, TTR: time.Second},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 30},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 40, Complete: 50},
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Result: "existing", Revision: 3, Invoke: 60, Complete: 70, TTR: time.Second},
		{Kind: Get, ID: "a", Topic: "t", Seq: 1, State: "finished", Invoke: 80, Complete: 90},
		{Kind: Kick, ID: "a", Topic: "t", Outcome: Fail, Code: notFound, Invoke: 100, Complete: 110},
	}
}

func TestRetainedJobs(t *testing.T) {
	require.True(t, Check(retained(), Options{}).OK(), "%v", Check(retained(), Options{}))
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(ops []Op) []Op
	}{
		{"add of a retained job makes a second one", "retain", func(ops []Op) []Op {
			a := find(ops, "a", Add, 1)
			a.Seq, a.Result, a.Revision = 2, created, 1
			return append(remove(ops, "a", Get),
				Op{Kind: Deliver, ID: "a", Topic: "t", Seq: 2, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 80, Complete: 90},
				Op{Kind: Finish, ID: "a", Topic: "t", Seq: 2, Generation: 1, Invoke: 95, Complete: 99})
		}},
		{"read does not know a retained job", "life", func(ops []Op) []Op {
			find(ops, "a", Get, 0).State = Gone
			return ops
		}},
		{"read shows a finished job as deleted", "life", func(ops []Op) []Op {
			find(ops, "a", Get, 0).State = "deleted"
			return ops
		}},
		{"read shows a job as finished that is not", "life", func(ops []Op) []Op {
			g := find(ops, "a", Get, 0)
			g.Invoke, g.Complete = 32, 38
			return ops
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.spoil(retained()), Options{})
			require.NotZero(t, r.Found[c.rule], "%v", r)
		})
	}
}
