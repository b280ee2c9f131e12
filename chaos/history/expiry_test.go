package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// expiring is a history of topics whose jobs expire after 500 ms: "a" is handed
// out in time, "b" nobody took; "c", in a topic that keeps them, dies of it and is
// handed out after a kick.
func expiring() []Op {
	return []Op{
		{Kind: Limit, Topic: "drop", Limits: &Limits{Expire: 500 * time.Millisecond, Expiry: "drop"}, Invoke: -10, Complete: -5},
		{Kind: Limit, Topic: "keep", Limits: &Limits{Expire: 500 * time.Millisecond, Expiry: "dead"}, Invoke: -10, Complete: -5},

		{Kind: Add, ID: "a", Topic: "drop", Seq: 1, Result: created, Invoke: 0, Complete: 2 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "a", Topic: "drop", Seq: 1, Invoke: 0, Complete: 410 * ms, Due: ms, Generation: 1, Attempts: 1, ReservedUntil: 1400 * ms},
		{Kind: Finish, ID: "a", Topic: "drop", Seq: 1, Generation: 1, Invoke: 450 * ms, Complete: 460 * ms},

		{Kind: Add, ID: "b", Topic: "drop", Seq: 2, Result: created, Invoke: 0, Complete: 2 * ms, TTR: time.Second},
		{Kind: Get, ID: "b", Topic: "drop", State: Gone, Invoke: 600 * ms, Complete: 610 * ms},

		{Kind: Add, ID: "c", Topic: "keep", Seq: 3, Result: created, Revision: 1, Invoke: 0, Complete: 2 * ms, TTR: time.Second},
		{Kind: Get, ID: "c", Topic: "keep", Seq: 3, State: "dead", Revision: 2, Invoke: 600 * ms, Complete: 610 * ms},
		{Kind: KickTopic, Topic: "keep", Invoke: 700 * ms, Complete: 710 * ms},
		{Kind: Deliver, ID: "c", Topic: "keep", Seq: 3, Invoke: 720 * ms, Complete: 730 * ms, Due: 705 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1725 * ms},
		{Kind: Finish, ID: "c", Topic: "keep", Seq: 3, Generation: 1, Invoke: 740 * ms, Complete: 750 * ms},
	}
}

func TestExpiryOfJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string // empty: it is kept
		spoil func(ops []Op) []Op
	}{
		{"kept", "", func(ops []Op) []Op { return ops }},
		{"handed out after its expiry", "expiry", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 0)
			d.ReservedUntil = 1510 * ms
			return ops
		}},
		{"given back without a wait and handed out after its expiry", "expiry", func(ops []Op) []Op {
			f := find(ops, "a", Finish, 0)
			f.Kind = Release
			return append(ops,
				Op{Kind: Deliver, ID: "a", Topic: "drop", Seq: 1, Invoke: 480 * ms, Complete: 520 * ms, Due: ms, Generation: 2, Attempts: 2, ReservedUntil: 1515 * ms},
				Op{Kind: Finish, ID: "a", Topic: "drop", Seq: 1, Generation: 2, Invoke: 530 * ms, Complete: 540 * ms})
		}},
		{"given back without a wait, and gone", "", func(ops []Op) []Op {
			find(ops, "a", Finish, 0).Kind = Release
			return append(ops, Op{Kind: Get, ID: "a", Topic: "drop", State: Gone, Invoke: 520 * ms, Complete: 530 * ms})
		}},
		{"gone before its expiry", "life", func(ops []Op) []Op {
			g := find(ops, "b", Get, 0)
			g.Invoke, g.Complete = 400*ms, 410*ms
			return ops
		}},
		{"kicked, so it expires earlier", "", func(ops []Op) []Op {
			find(ops, "b", Add, 0).Delay = time.Second
			return append(ops, Op{Kind: Kick, ID: "b", Topic: "drop", Seq: 2, Invoke: 50 * ms, Complete: 60 * ms})
		}},
		{"delayed and gone before it was due", "life", func(ops []Op) []Op {
			find(ops, "b", Add, 0).Delay = time.Second
			return ops
		}},
		{"added again after it had expired", "", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Add, ID: "b", Topic: "drop", Seq: 7, Result: created, Invoke: 620 * ms, Complete: 630 * ms, TTR: time.Second},
				Op{Kind: Deliver, ID: "b", Topic: "drop", Seq: 7, Invoke: 640 * ms, Complete: 650 * ms, Due: 625 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1645 * ms},
				Op{Kind: Finish, ID: "b", Topic: "drop", Seq: 7, Generation: 1, Invoke: 660 * ms, Complete: 670 * ms})
		}},
		{"added again before it had expired", "I8", func(ops []Op) []Op {
			return append(remove(ops, "b", Get), Op{Kind: Add, ID: "b", Topic: "drop", Seq: 7, Result: created, Invoke: 420 * ms, Complete: 430 * ms, TTR: time.Second})
		}},
		{"dead before its expiry", "life", func(ops []Op) []Op {
			g := find(ops, "c", Get, 0)
			g.Invoke, g.Complete = 400*ms, 410*ms
			return ops
		}},
		{"dropped where it was to be dead", "I1", func(ops []Op) []Op { return remove(without(ops, "c"), "c", Get) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireBroken(t, Check(c.spoil(expiring()), Options{ClockBound: 2 * time.Millisecond}), c.rule)
		})
	}
}

// spread is a history of a job that was to be due within a second after 100 ms.
func spread() []Op {
	return []Op{
		{Kind: Limit, Topic: "t", Limits: &Limits{Spread: time.Second}, Invoke: -10, Complete: -5},
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Result: created, Delay: 100 * time.Millisecond, Due: 700 * ms, Invoke: 0, Complete: 10 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Invoke: 20 * ms, Complete: 710 * ms, Due: 700 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1705 * ms},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 720 * ms, Complete: 730 * ms},
	}
}

func TestSpreadOfJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   bool
		spoil func(ops []Op)
	}{
		{"kept", false, func([]Op) {}},
		{"due before it was asked for", true, func(ops []Op) { find(ops, "a", Add, 0).Due = 90 * ms }},
		{"due after the window", true, func(ops []Op) { find(ops, "a", Add, 0).Due = 1120 * ms }},
		{"comes at the instant that was asked for", true, func(ops []Op) {
			d := find(ops, "a", Deliver, 0)
			d.Complete, d.Due = 120*ms, 105*ms
		}},
		{"kicked", false, func(ops []Op) {
			d := find(ops, "a", Deliver, 0)
			d.Complete, d.Due = 120*ms, 105*ms
			f := find(ops, "a", Finish, 0)
			*f = Op{Kind: Kick, ID: "a", Topic: "t", Seq: 1, Invoke: 100 * ms, Complete: 110 * ms}
		}},
		{"found by an add that was repeated", false, func(ops []Op) {
			a := find(ops, "a", Add, 0)
			a.Result, a.Due = "existing", 90*ms
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := spread()
			c.spoil(ops)
			r := Check(ops, Options{ClockBound: 2 * time.Millisecond})
			require.Equal(t, c.bad, r.Found["spread"] > 0, "%v", r)
		})
	}
}
