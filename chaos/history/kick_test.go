package history

import (
	"testing"
	"time"
)

// kicked is a history of jobs that die for a reason: "a" is kicked at a rate, with
// those that have its reason; "b" has another, and is kicked into another topic.
func kicked() []Op {
	var ops []Op
	for i, id := range []string{"a", "b"} {
		seq := uint64(i + 1)
		ops = append(ops,
			Op{Kind: Add, ID: id, Topic: "t", Seq: seq, Result: created, Revision: 1, Invoke: 0, Complete: 10, TTR: time.Second},
			Op{Kind: Deliver, ID: id, Topic: "t", Seq: seq, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 30},
			Op{Kind: Bury, ID: id, Topic: "t", Seq: seq, Generation: 1, Reason: "because of " + id, Invoke: 40, Complete: 50})
	}
	return append(ops,
		Op{Kind: KickTopic, Topic: "t", Reason: "because of a", Rate: 5, Invoke: 60, Complete: 70},
		Op{Kind: Get, ID: "a", Topic: "t", Seq: 1, State: "delayed", Invoke: 80, Complete: 90},
		Op{Kind: Get, ID: "b", Topic: "t", Seq: 2, State: "dead", Invoke: 80, Complete: 90},
		Op{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 2, Attempts: 1, ReservedUntil: sec, Invoke: 100, Complete: 110},
		Op{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 2, Invoke: 120, Complete: 130},
		Op{Kind: KickTopic, Topic: "t", To: "u", Invoke: 140, Complete: 150},
		Op{Kind: Deliver, ID: "b", Topic: "u", Seq: 2, Generation: 2, Attempts: 1, ReservedUntil: sec, Invoke: 160, Complete: 170},
		Op{Kind: Finish, ID: "b", Topic: "u", Seq: 2, Generation: 2, Invoke: 180, Complete: 190})
}

func TestKicksOfSomeJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string
		spoil func(ops []Op)
	}{
		{"kept", "", func([]Op) {}},
		{"job with another reason is kicked", "life", func(ops []Op) { find(ops, "b", Get, 0).State = "ready" }},
		{"job with another reason has its attempts back", "I7", func(ops []Op) {
			sweepOf(ops, KickTopic, 0).Reason = "because of b"
		}},
		{"job waits after a kick without a rate", "life", func(ops []Op) { sweepOf(ops, KickTopic, 0).Rate = 0 }},
		{"job is left behind by a kick into another topic", "life", func(ops []Op) {
			find(ops, "b", Deliver, 1).Topic = "t"
		}},
		{"job with another reason is kicked into another topic", "I2", func(ops []Op) {
			sweepOf(ops, KickTopic, 1).Reason = "because of a"
		}},
		{"job is kicked into another topic than asked", "I2", func(ops []Op) { find(ops, "b", Deliver, 1).Topic = "v" }},
		{"kick into another topic of unknown outcome", "", func(ops []Op) { sweepOf(ops, KickTopic, 1).Outcome = Unknown }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := kicked()
			c.spoil(ops)
			requireBroken(t, Check(ops, Options{}), c.rule)
		})
	}
}
