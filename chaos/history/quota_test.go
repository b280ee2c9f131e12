package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tenanted is a history of a namespace of two jobs at most: the third is refused until the first is
// finished.
func tenanted() []Op {
	add := func(id string, seq uint64, at int64) Op {
		return Op{Kind: Add, ID: id, Topic: "t.a", Node: "n1", Seq: seq, Result: created, Invoke: at, Complete: at + ms, TTR: time.Second}
	}
	ops := []Op{
		{Kind: Quota, Topic: "t.", Invoke: -10, Complete: -5, Limits: &Limits{Jobs: 2}},
		add("a", 1, 0), add("b", 2, 2*ms), add("c", 3, 50*ms),
		{Kind: Add, ID: "d", Topic: "t.b", Outcome: Fail, Code: overQuota, Invoke: 10 * ms, Complete: 11 * ms},
	}
	for i, id := range []string{"a", "b", "c"} {
		at, seq := int64(20+20*i)*ms, uint64(i+1)
		ops = append(ops,
			Op{Kind: Deliver, ID: id, Topic: "t.a", Seq: seq, Invoke: at, Complete: at + ms, Due: 0, Generation: 1, Attempts: 1, ReservedUntil: at + sec},
			Op{Kind: Finish, ID: id, Topic: "t.a", Seq: seq, Generation: 1, Invoke: at + 2*ms, Complete: at + 4*ms})
	}
	return ops
}

func TestRoomOfNamespaces(t *testing.T) {
	refusal := func(ops []Op) *Op { return find(ops, "d", Add, 0) }
	for _, c := range []struct {
		name  string
		bad   int
		spoil func(ops []Op)
	}{
		{"kept", 0, func([]Op) {}},
		{"one job too many", 1, func(ops []Op) { find(ops, "c", Add, 0).Complete = 15 * ms }},
		{"one too many in another topic of the namespace", 1, func(ops []Op) {
			for i := range ops {
				if ops[i].ID == "c" {
					ops[i].Topic = "t.c"
				}
			}
			find(ops, "c", Add, 0).Complete = 15 * ms
		}},
		{"a job that may be finished", 0, func(ops []Op) {
			find(ops, "c", Add, 0).Complete = 23 * ms
		}},
		{"refused while there was room", 1, func(ops []Op) { refusal(ops).Invoke, refusal(ops).Complete = 90*ms, 91*ms }},
		{"refused before there were jobs", 1, func(ops []Op) { refusal(ops).Invoke, refusal(ops).Complete = -3, -1 }},
		{"refused for another reason", 0, func(ops []Op) {
			refusal(ops).Invoke, refusal(ops).Complete, refusal(ops).Code = 90*ms, 91*ms, "not_applied"
		}},
		{"refused while a job may have been there", 0, func(ops []Op) {
			refusal(ops).Invoke, refusal(ops).Complete = 43*ms, 61*ms
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := tenanted()
			c.spoil(ops)
			require.Equal(t, c.bad, Check(ops, testOptions).Found["quota"])
		})
	}
}

// What a namespace refused was not added, so it is a phantom.
func TestARefusedAddThatIsHandedOutIsFound(t *testing.T) {
	ops := append(tenanted(), Op{Kind: Deliver, ID: "d", Topic: "t.b", Seq: 4, Invoke: 100 * ms, Complete: 101 * ms, Generation: 1, Attempts: 1, ReservedUntil: 2 * sec})
	require.NotZero(t, Check(ops, testOptions).Found["I2"])
}

// A job that was added twice, because the outcome of the first add was unknown, has two lives.
func TestALifeThatBeganUnnoticedTakesRoom(t *testing.T) {
	ops := append(tenanted(),
		Op{Kind: Add, ID: "a", Topic: "t.a", Node: "n1", Outcome: Unknown, Invoke: ms, Complete: 2 * ms, TTR: time.Second},
		Op{Kind: Deliver, ID: "a", Topic: "t.a", Seq: 7, Invoke: 26 * ms, Complete: 120 * ms, Generation: 1, Attempts: 1, ReservedUntil: 2 * sec},
		Op{Kind: Finish, ID: "a", Topic: "t.a", Seq: 7, Generation: 1, Invoke: 130 * ms, Complete: 140 * ms})
	refusal := find(ops, "d", Add, 0)
	refusal.Invoke, refusal.Complete = 52*ms, 53*ms
	require.Zero(t, Check(ops, testOptions).Found["quota"])
}

func TestRateOfNamespaces(t *testing.T) {
	const rate, begin = 10, 10 * sec
	settled := Window{From: begin - settling.Microseconds()}
	for _, c := range []struct {
		name  string
		bad   int
		adds  int
		every int64
		quiet []Window
		nodes int
	}{
		{"a second of it at once", 0, rate, ms, []Window{settled}, 1},
		{"more at once", 1, rate + 3, ms, []Window{settled}, 1},
		{"through two nodes", 0, 2 * rate, ms, []Window{settled}, 2},
		{"while there is a fault", 0, 3 * rate, ms, []Window{{From: begin}}, 1},
		{"as many as it may be", 0, 5 * rate, 100 * ms, []Window{settled}, 1},
		{"a little faster", 1, 5 * rate, 60 * ms, []Window{settled}, 1},
		{"a restart between two times", 0, 2 * rate, 2 * ms, []Window{{From: settled.From, To: begin + 20*ms - 1}, {From: settled.From + 20*ms}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := []Op{{Kind: Quota, Topic: "t.", Invoke: -10, Complete: -5, Limits: &Limits{AddRate: rate}}}
			for i := range c.adds {
				at := begin + int64(i)*c.every
				ops = append(ops, Op{Kind: Add, ID: fmt.Sprint("r", i), Topic: "t.a", Node: fmt.Sprint("n", i%c.nodes), Seq: uint64(i + 1), Result: created, Invoke: at, Complete: at + ms - 1, TTR: time.Second})
			}
			o := testOptions
			o.Quiet = c.quiet
			require.Equal(t, c.bad, Check(ops, o).Found["rate"])
		})
	}
}
