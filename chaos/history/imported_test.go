package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// imported is a job with two attempts that was imported twice, because the outcome was not known.
func imported() []Op {
	add := Op{Kind: Add, ID: "i", Topic: "t", Outcome: Unknown, Imported: true, Attempts: 2, Due: -sec, Invoke: 0, Complete: ms, TTR: time.Second}
	again := add
	again.Outcome, again.Seq, again.Invoke, again.Complete = OK, 1, 2*ms, 3*ms
	return []Op{add, again,
		{Kind: Deliver, ID: "i", Topic: "t", Seq: 1, Generation: 1, Attempts: 3, Due: -sec, Invoke: 4 * ms, Complete: 5 * ms, ReservedUntil: sec},
		{Kind: Finish, ID: "i", Topic: "t", Seq: 1, Generation: 1, Invoke: 6 * ms, Complete: 7 * ms},
	}
}

func TestImportedJobs(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  string // empty: it is kept
		spoil func(ops []Op) []Op
	}{
		{"as it was", "", func(ops []Op) []Op { return ops }},
		{"without its attempts", "import", func(ops []Op) []Op { ops[2].Attempts = 1; return ops }},
		{"due at another time", "import", func(ops []Op) []Op { ops[2].Due = ms; return ops }},
		{"kicked meanwhile", "", func(ops []Op) []Op {
			ops[2].Attempts = 1
			return append(ops, Op{Kind: Kick, ID: "i", Topic: "t", Invoke: 3 * ms, Complete: 4 * ms})
		}},
		{"in a later reservation", "", func(ops []Op) []Op {
			ops[2].Generation, ops[2].Attempts = 2, 4
			ops[3].Generation = 2
			return ops
		}},
		{"acknowledged and never there", "I1", func(ops []Op) []Op { return ops[:2] }},
		{"never acknowledged and never there", "", func(ops []Op) []Op { return ops[:1] }},
		{"never acknowledged and there", "", func(ops []Op) []Op { return append(ops[:1:1], ops[2:]...) }},
		{"there after an unknown import, in its second revision", "", func(ops []Op) []Op {
			ops[1].Result, ops[1].Revision = "existing", 2
			for i := range ops { // due after a second
				ops[i].Due, ops[i].Delay = sec, time.Second
			}
			for i := range ops[2:] {
				ops[2+i].Delay = 0
				ops[2+i].Invoke += sec
				ops[2+i].Complete += sec
			}
			ops[2].ReservedUntil = 2 * sec
			return ops
		}},
		{"refused and there", "I2", func(ops []Op) []Op {
			ops[0].Outcome = Fail
			return append(ops[:1:1], ops[2:]...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := Check(c.spoil(imported()), testOptions).Found
			if c.rule == "" {
				require.Empty(t, found)
				return
			}
			require.NotZero(t, found[c.rule], "%v", found)
		})
	}
}
