package history

import (
	"testing"
	"time"
)

// swept is a history of "m", which is moved; "n", which is moved with its topic;
// and "q", which is purged.
func swept() []Op {
	return []Op{
		{Kind: Add, ID: "m", Topic: "t", Seq: 1, Result: created, Revision: 1, Invoke: 0, Complete: 10},
		{Kind: Move, ID: "m", Topic: "t", To: "u", Seq: 1, Revision: 2, Invoke: 20, Complete: 30},
		{Kind: Deliver, ID: "m", Topic: "u", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 40, Complete: 50},
		{Kind: Finish, ID: "m", Topic: "u", Seq: 1, Generation: 1, Invoke: 60, Complete: 70},

		{Kind: Add, ID: "n", Topic: "t", Seq: 2, Result: created, Revision: 1, Invoke: 100, Complete: 110},
		{Kind: Add, ID: "q", Topic: "t", Seq: 3, Result: created, Revision: 1, Delay: time.Second, Invoke: 100, Complete: 110},
		{Kind: Purge, Topic: "t", State: "dead", Invoke: 120, Complete: 130},
		{Kind: Kick, ID: "q", Topic: "t", Outcome: Fail, Code: "not_kickable", Invoke: 140, Complete: 150},
		{Kind: MoveTopic, Topic: "t", To: "u", Invoke: 160, Complete: 170},
		{Kind: Deliver, ID: "n", Topic: "u", Seq: 2, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 180, Complete: 190},
		{Kind: Purge, Topic: "u", State: "delayed", Invoke: 200, Complete: 210},
		{Kind: Get, ID: "q", Topic: "t", State: Gone, Invoke: 220, Complete: 230},
		{Kind: Finish, ID: "n", Topic: "u", Seq: 2, Generation: 1, Invoke: 240, Complete: 250},
	}
}

func sweepOf(ops []Op, kind Kind, nth int) *Op { return find(ops, "", kind, nth) }

func TestSweepsOfTopics(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(ops []Op) []Op
	}{
		{"kept", "", func(ops []Op) []Op { return ops }},
		{"moved job is in the topic it left", "life", func(ops []Op) []Op {
			find(ops, "m", Deliver, 0).Topic = "t"
			return ops
		}},
		{"job is left behind by its topic", "life", func(ops []Op) []Op {
			find(ops, "n", Deliver, 0).Topic = "t"
			return ops
		}},
		{"move of unknown outcome", "", func(ops []Op) []Op {
			sweepOf(ops, MoveTopic, 0).Outcome = Unknown
			find(ops, "n", Deliver, 0).Topic = "t"
			return ops
		}},
		{"topic that nobody moved it to", "I2", func(ops []Op) []Op {
			find(ops, "m", Deliver, 0).Topic = "v"
			return ops
		}},
		{"purged job is there", "life", func(ops []Op) []Op {
			g := find(ops, "q", Get, 0)
			g.State, g.Seq = "delayed", 3
			return ops
		}},
		{"job in another state is purged", "life", func(ops []Op) []Op {
			g := find(ops, "q", Get, 0)
			g.Invoke, g.Complete = 152, 158
			return ops
		}},
		{"purge that was refused takes a job", "I1", func(ops []Op) []Op {
			sweepOf(ops, Purge, 1).Outcome, sweepOf(ops, Purge, 0).Outcome = Fail, Fail
			return ops
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireBroken(t, Check(c.spoil(swept()), Options{}), c.rule)
		})
	}
}
