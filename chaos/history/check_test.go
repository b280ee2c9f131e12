package history

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ms  = int64(1000)
	sec = 1000 * ms
)

// The good history: job "a" is delayed, delivered, given back, delivered again
// and finished; job "b" is deleted; job "c" overran its TTR; job "d" took its id
// again after an unknown add had run its course.
func goodHistory() []Op {
	return []Op{
		{Kind: Add, ID: "a", Topic: "t", Body: "A", Node: "n1", Seq: 1, Invoke: 0, Complete: 5 * ms, Delay: time.Second, TTR: 2 * time.Second, MaxAttempts: 3},
		{Kind: Deliver, ID: "a", Topic: "t", Body: "A", Node: "n2", Seq: 1, Invoke: 500 * ms, Complete: 1002 * ms, Due: 1001 * ms, Generation: 1, Attempts: 1, ReservedUntil: 3001 * ms},
		{Kind: Release, ID: "a", Topic: "t", Seq: 1, Generation: 1, Delay: time.Second, Invoke: 1100 * ms, Complete: 1105 * ms},
		{Kind: Deliver, ID: "a", Topic: "t", Body: "A", Node: "n3", Seq: 1, Invoke: 1200 * ms, Complete: 2110 * ms, Due: 2103 * ms, Generation: 2, Attempts: 2, ReservedUntil: 4104 * ms},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 2, Invoke: 2200 * ms, Complete: 2210 * ms},

		{Kind: Add, ID: "b", Topic: "t", Body: "B", Node: "n1", Seq: 2, Invoke: 10 * ms, Complete: 15 * ms, Delay: time.Second, TTR: 2 * time.Second},
		{Kind: Delete, ID: "b", Topic: "t", Invoke: 20 * ms, Complete: 25 * ms},

		{Kind: Add, ID: "c", Topic: "t", Body: "C", Node: "n1", Outcome: Unknown, Invoke: 30 * ms, Complete: 40 * ms, TTR: 2 * time.Second, MaxAttempts: 3},
		{Kind: Add, ID: "c", Topic: "t", Body: "C", Node: "n2", Seq: 3, Invoke: 50 * ms, Complete: 60 * ms, TTR: 2 * time.Second, MaxAttempts: 3},
		{Kind: Deliver, ID: "c", Topic: "t", Body: "C", Seq: 3, Invoke: 70 * ms, Complete: 80 * ms, Due: 35 * ms, Generation: 1, Attempts: 1, ReservedUntil: 2075 * ms},
		{Kind: Touch, ID: "c", Topic: "t", Seq: 3, Generation: 1, TTR: 2 * time.Second, Invoke: 100 * ms, Complete: 110 * ms, ReservedUntil: 2105 * ms},
		{Kind: Deliver, ID: "c", Topic: "t", Body: "C", Seq: 3, Invoke: 90 * ms, Complete: 2120 * ms, Due: 35 * ms, Generation: 2, Attempts: 2, ReservedUntil: 4110 * ms},
		{Kind: Finish, ID: "c", Topic: "t", Seq: 3, Generation: 1, Outcome: Fail, Invoke: 2200 * ms, Complete: 2210 * ms},
		{Kind: Finish, ID: "c", Topic: "t", Seq: 3, Generation: 2, Invoke: 2300 * ms, Complete: 2310 * ms},

		{Kind: Add, ID: "d", Topic: "t", Body: "D", Outcome: Unknown, Invoke: 100 * ms, Complete: 200 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "d", Topic: "t", Body: "D", Seq: 4, Invoke: 100 * ms, Complete: 110 * ms, Due: 105 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1105 * ms},
		{Kind: Finish, ID: "d", Topic: "t", Seq: 4, Generation: 1, Outcome: Unknown, Invoke: 120 * ms, Complete: 130 * ms},
		{Kind: Add, ID: "d", Topic: "t", Body: "D", Seq: 5, Invoke: 210 * ms, Complete: 220 * ms, TTR: time.Second},
		{Kind: Deliver, ID: "d", Topic: "t", Body: "D", Seq: 5, Invoke: 230 * ms, Complete: 240 * ms, Due: 215 * ms, Generation: 1, Attempts: 1, ReservedUntil: 1235 * ms},
		{Kind: Finish, ID: "d", Topic: "t", Seq: 5, Generation: 1, Invoke: 250 * ms, Complete: 260 * ms},
	}
}

var testOptions = Options{ClockBound: 2 * time.Millisecond, Quiet: []Window{{}}, MaxQuietGap: 3 * time.Second}

func TestGoodHistoryPasses(t *testing.T) {
	r := Check(goodHistory(), testOptions)
	require.True(t, r.OK(), "%v", r)
	require.Equal(t, 4, r.Jobs)
	require.Equal(t, 2, r.Redeliveries)
	require.Equal(t, 3, r.Unknowns())
	require.Equal(t, 1005*time.Millisecond, r.WorstWriteGap)
	require.Equal(t, 45*time.Millisecond, r.WorstLateness)
}

// find gives the nth operation of a kind on a job, to be spoiled in place.
func find(ops []Op, id string, kind Kind, nth int) *Op {
	for i := range ops {
		if ops[i].ID == id && ops[i].Kind == kind {
			if nth == 0 {
				return &ops[i]
			}
			nth--
		}
	}
	panic(fmt.Sprintf("no %v %d of job %s", kind, nth, id))
}

func remove(ops []Op, id string, kind Kind) []Op {
	var kept []Op
	for _, op := range ops {
		if op.ID != id || op.Kind != kind {
			kept = append(kept, op)
		}
	}
	return kept
}

// requireBroken requires that a history breaks a rule; "": that it breaks none.
func requireBroken(t *testing.T, r *Report, rule string) {
	t.Helper()
	if rule == "" {
		require.True(t, r.OK(), "%v", r)
		return
	}
	require.NotZero(t, r.Found[rule], "%v", r)
}

func TestEachInvariantCanFail(t *testing.T) {
	for _, c := range []struct {
		name      string
		invariant string
		spoil     func(ops []Op) []Op
	}{
		{"acknowledged job vanishes", "I1", func(ops []Op) []Op {
			return remove(remove(remove(ops, "a", Deliver), "a", Finish), "a", Release)
		}},
		{"delivered job vanishes before it is finished", "I1", func(ops []Op) []Op {
			return remove(ops, "a", Finish)
		}},
		{"failed delete does not excuse a loss", "I1", func(ops []Op) []Op {
			find(ops, "b", Delete, 0).Outcome = Fail
			return ops
		}},
		{"second life of an id vanishes", "I1", func(ops []Op) []Op {
			find(ops, "d", Finish, 1).Outcome = Fail
			return ops
		}},
		{"job that nobody added", "I2", func(ops []Op) []Op {
			return append(ops, Op{Kind: Deliver, ID: "ghost", Topic: "t", Seq: 9, Invoke: 1, Complete: 2, Generation: 1, Attempts: 1})
		}},
		{"job of a failed add", "I2", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Add, ID: "f", Topic: "t", Outcome: Fail, Invoke: 1, Complete: 2},
				Op{Kind: Deliver, ID: "f", Topic: "t", Seq: 9, Invoke: 3, Complete: 4, Generation: 1, Attempts: 1})
		}},
		{"body changed", "I2", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Body = "B"
			return ops
		}},
		{"topic changed", "I2", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Topic = "u"
			return ops
		}},
		{"delivered before the client's delay", "I3", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 0)
			d.Complete, d.Due = 997*ms, 900*ms
			return ops
		}},
		{"delivered half a millisecond before the client's delay", "I3", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 0)
			d.Complete, d.Due = 1000*ms-500, 900*ms
			return ops
		}},
		{"delivered before the server's due instant", "I3", func(ops []Op) []Op {
			find(ops, "a", Deliver, 0).Due = 1005 * ms
			return ops
		}},
		{"delivered before a release's delay", "I3", func(ops []Op) []Op {
			d := find(ops, "a", Deliver, 1)
			d.Complete, d.Due = 2000*ms, 1001*ms
			return ops
		}},
		{"two live reservations", "I4", func(ops []Op) []Op {
			find(ops, "c", Deliver, 1).Complete = 1000 * ms
			return ops
		}},
		{"touch did not extend", "I4", func(ops []Op) []Op {
			find(ops, "c", Deliver, 1).Complete = 2090 * ms
			return ops
		}},
		{"one reservation handed out twice", "I4", func(ops []Op) []Op {
			return append(ops, *find(ops, "c", Deliver, 0))
		}},
		{"stale token touches", "I4", func(ops []Op) []Op {
			return append(ops, Op{Kind: Touch, ID: "c", Topic: "t", Seq: 3, Generation: 1, Invoke: 2130 * ms, Complete: 2140 * ms})
		}},
		{"token works after its job was given away", "I4", func(ops []Op) []Op {
			return append(ops, Op{Kind: Touch, ID: "a", Topic: "t", Seq: 1, Generation: 2, Invoke: 2220 * ms, Complete: 2230 * ms})
		}},
		{"delivered after finish", "I5", func(ops []Op) []Op {
			d := *find(ops, "a", Deliver, 1)
			d.Generation, d.Attempts, d.Invoke, d.Complete = 3, 3, 2300*ms, 2310*ms
			return append(ops, d)
		}},
		{"delivered after delete", "I5", func(ops []Op) []Op {
			return append(ops, Op{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 2, Invoke: 30 * ms, Complete: 1020 * ms, Due: 1010 * ms, Generation: 1, Attempts: 1, ReservedUntil: 3015 * ms})
		}},
		{"delivered after delete to a long poll", "I5", func(ops []Op) []Op {
			return append(ops, Op{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 2, Invoke: 1 * ms, Complete: 1020 * ms, Due: 1010 * ms, Generation: 1, Attempts: 1, ReservedUntil: 3015 * ms})
		}},
		{"no write for too long", "I6", func(ops []Op) []Op {
			return append(ops, Op{Kind: Add, ID: "late", Topic: "t", Seq: 10, Invoke: 6000 * ms, Complete: 6000 * ms},
				Op{Kind: Delete, ID: "late", Topic: "t", Invoke: 6001 * ms, Complete: 6002 * ms})
		}},
		{"more attempts than the limit", "I7", func(ops []Op) []Op {
			find(ops, "a", Deliver, 1).Attempts = 4
			return ops
		}},
		{"attempts stand still", "I7", func(ops []Op) []Op {
			find(ops, "a", Deliver, 1).Attempts = 1
			return ops
		}},
		{"one add makes two jobs", "I8", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Deliver, ID: "a", Topic: "t", Body: "A", Seq: 7, Invoke: 500 * ms, Complete: 1002 * ms, Due: 1001 * ms, Generation: 1, Attempts: 1, ReservedUntil: 3001 * ms},
				Op{Kind: Finish, ID: "a", Topic: "t", Seq: 7, Generation: 1, Invoke: 1100 * ms, Complete: 1105 * ms})
		}},
		{"retried add makes a second job", "I8", func(ops []Op) []Op {
			return append(ops,
				Op{Kind: Add, ID: "a", Topic: "t", Body: "A", Seq: 7, Invoke: 6 * ms, Complete: 9 * ms, Delay: time.Second, TTR: 2 * time.Second, MaxAttempts: 3},
				Op{Kind: Finish, ID: "a", Topic: "t", Seq: 7, Generation: 1, Invoke: 1100 * ms, Complete: 1105 * ms})
		}},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			r := Check(c.spoil(goodHistory()), testOptions)
			require.NotZero(t, r.Found[c.invariant], "%v", r)
			delete(r.Found, "life") // TestLivesCanFail is about those
			require.Len(t, r.Found, 1, "only the invariant that was spoiled may fail:\n%v", r)
		})
	}
}

func TestJobsOfATimeWithSkewedClocksAreJudgedByIt(t *testing.T) {
	ops := goodHistory()
	d := find(ops, "a", Deliver, 0)
	d.Complete, d.Due = 990*ms, 985*ms // 10 ms early
	o := testOptions
	require.Equal(t, 1, Check(ops, o).Found["I3"])
	o.Skews = []Skew{{Window{1 * ms, 3 * ms}, 20 * time.Millisecond}}
	require.Zero(t, Check(ops, o).Found["I3"])
	o.Skews[0].Window = Window{5000 * ms, 6000 * ms}
	require.Equal(t, 1, Check(ops, o).Found["I3"], "another time")
}

func TestUnknownOutcomesStayOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(ops []Op) []Op
	}{
		{"unknown finish may have ended the job", func(ops []Op) []Op {
			find(ops, "a", Finish, 0).Outcome = Unknown
			return ops
		}},
		{"unknown finish may not have ended the job", func(ops []Op) []Op {
			find(ops, "a", Finish, 0).Outcome = Unknown
			d := *find(ops, "a", Deliver, 1)
			d.Generation, d.Attempts, d.Invoke, d.Complete = 3, 3, 4200*ms, 4210*ms
			return append(ops, d)
		}},
		{"unknown delete excuses a missing job", func(ops []Op) []Op {
			find(ops, "b", Delete, 0).Outcome = Unknown
			return ops
		}},
		{"unknown delete does not forbid a delivery", func(ops []Op) []Op {
			find(ops, "b", Delete, 0).Outcome = Unknown
			return append(ops, Op{Kind: Deliver, ID: "b", Topic: "t", Body: "B", Seq: 2, Invoke: 30 * ms, Complete: 1020 * ms, Due: 1010 * ms, Generation: 1, Attempts: 1, ReservedUntil: 3015 * ms})
		}},
		{"unknown add that never happened", func(ops []Op) []Op {
			return append(ops, Op{Kind: Add, ID: "e", Topic: "t", Outcome: Unknown, Invoke: 1, Complete: 2})
		}},
		{"unknown release may have ended a reservation early", func(ops []Op) []Op {
			find(ops, "a", Release, 0).Outcome = Unknown
			return ops
		}},
		{"kick makes a released job that died ready at once", func(ops []Op) []Op {
			find(ops, "a", Add, 0).MaxAttempts = 1
			d := find(ops, "a", Deliver, 1)
			d.Complete, d.Due, d.Attempts = 1300*ms, 1001*ms, 1
			find(ops, "a", Finish, 0).Invoke = 1400 * ms
			return append(ops, Op{Kind: KickTopic, Topic: "t", Invoke: 1200 * ms, Complete: 1210 * ms})
		}},
		{"kick sets the attempts back", func(ops []Op) []Op {
			find(ops, "a", Deliver, 1).Attempts = 1
			return append(ops, Op{Kind: KickTopic, Topic: "t", Invoke: 1200 * ms, Complete: 1210 * ms})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.spoil(goodHistory()), Options{ClockBound: 2 * time.Millisecond})
			require.True(t, r.OK(), "%v", r)
		})
	}
}

func TestWriteGapReachesToTheEdgesOfTheLoad(t *testing.T) {
	r := Check(goodHistory(), Options{From: 0, To: 10 * sec})
	require.Equal(t, 7690*time.Millisecond, r.WorstWriteGap)
}

func TestViolationsKeptAreBounded(t *testing.T) {
	var ops []Op
	for i := range 10 * maxKept {
		ops = append(ops, Op{Kind: Add, ID: fmt.Sprint(i), Seq: uint64(i + 1), Invoke: 1, Complete: 2})
	}
	r := Check(ops, Options{})
	require.Len(t, r.Violations, maxKept)
	require.Equal(t, 10*maxKept, r.Found["I1"])
}

func TestRecorderKeepsEveryOperationOfConcurrentClients(t *testing.T) {
	rec := NewRecorder()
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for range 100 {
				at := rec.Now()
				rec.Record(Op{Kind: Add, Client: c, Invoke: at, Complete: rec.Now()})
			}
		})
	}
	wg.Wait()
	ops := rec.Ops()
	require.Len(t, ops, 800)
	for _, op := range ops {
		require.LessOrEqual(t, op.Invoke, op.Complete)
	}
}
