package history

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each of these is wrong only when the calls on the job are seen together.
func TestLivesCanFail(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
	}{
		{"read finds a job after its delete", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Delete, ID: "a", Invoke: 20, Complete: 30},
			{Kind: Get, ID: "a", State: "ready", Seq: 1, Invoke: 40, Complete: 50},
		}},
		{"read misses a job that is there", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Get, ID: "a", State: Gone, Invoke: 20, Complete: 30},
			{Kind: Delete, ID: "a", Invoke: 40, Complete: 50},
		}},
		{"read finds a finish undone", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 30},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 1, Outcome: Unknown, Invoke: 40, Complete: 50},
			{Kind: Get, ID: "a", State: Gone, Invoke: 60, Complete: 70},
			{Kind: Get, ID: "a", State: "reserved", Seq: 1, Invoke: 80, Complete: 90},
		}},
		{"read finds a delayed job reserved", []Op{
			{Kind: Add, ID: "a", Seq: 1, Delay: time.Second, Invoke: 0, Complete: 10},
			{Kind: Get, ID: "a", State: "reserved", Seq: 1, Invoke: 20, Complete: 30},
			{Kind: Delete, ID: "a", Invoke: 40, Complete: 50},
		}},
		{"delete of a job that is there finds none", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Delete, ID: "a", Outcome: Fail, Code: notFound, Invoke: 20, Complete: 30},
			{Kind: Delete, ID: "a", Invoke: 40, Complete: 50},
		}},
		{"buried job is delivered without a kick", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 30},
			{Kind: Bury, ID: "a", Seq: 1, Generation: 1, Invoke: 40, Complete: 50},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 2, Attempts: 2, ReservedUntil: 3 * sec, Invoke: 60, Complete: 2 * sec},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 2, Invoke: 2 * sec, Complete: 2*sec + 1},
		}},
		{"two deletes both find the one job", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Delete, ID: "a", Invoke: 20, Complete: 30},
			{Kind: Delete, ID: "a", Invoke: 25, Complete: 35},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.ops, Options{})
			require.Equal(t, map[string]int{"life": 1}, r.Found, "%v", r)
			require.Equal(t, c.ops, r.Calls, "the report shows the calls")
		})
	}
}

func TestLivesWithAnExplanation(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
	}{
		{"unknown delete takes effect late", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Delete, ID: "a", Outcome: Unknown, Invoke: 20, Complete: 30},
			{Kind: Get, ID: "a", State: "ready", Seq: 1, Invoke: 40, Complete: 50},
			{Kind: Get, ID: "a", State: Gone, Invoke: 60, Complete: 70},
		}},
		{"reservations that no client saw", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Get, ID: "a", State: "reserved", Seq: 1, Invoke: 20, Complete: 30},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 4, Attempts: 4, ReservedUntil: 9 * sec, Invoke: 40, Complete: 50},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 4, Invoke: 60, Complete: 70},
		}},
		{"kick hastens a delayed job", []Op{
			{Kind: Add, ID: "a", Seq: 1, Delay: time.Second, Invoke: 0, Complete: 10},
			{Kind: Kick, ID: "a", Invoke: 20, Complete: 30},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, Due: 25, ReservedUntil: sec, Invoke: 40, Complete: 50},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 1, Invoke: 60, Complete: 70},
		}},
		{"job dies of its last attempt and is kicked with its topic", []Op{
			{Kind: Add, ID: "a", Topic: "t", Seq: 1, MaxAttempts: 1, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: 100, Invoke: 20, Complete: 30},
			{Kind: Get, ID: "a", Topic: "t", State: "dead", Seq: 1, Invoke: 200, Complete: 210},
			{Kind: KickTopic, Topic: "t", Invoke: 220, Complete: 230},
			{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 2, Attempts: 1, ReservedUntil: sec, Invoke: 240, Complete: 250},
			{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 2, Invoke: 260, Complete: 270},
		}},
		{"add is repeated after the job was finished", []Op{
			{Kind: Add, ID: "a", Seq: 1, Outcome: Unknown, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 5, Complete: 30},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 1, Invoke: 40, Complete: 50},
			{Kind: Add, ID: "a", Seq: 2, Invoke: 60, Complete: 70},
			{Kind: Delete, ID: "a", Invoke: 80, Complete: 90},
		}},
		{"the last of several unknown adds takes effect", []Op{
			{Kind: Add, ID: "a", Body: "first", Outcome: Unknown, Invoke: 0, Complete: 10},
			{Kind: Add, ID: "a", Body: "second", Outcome: Unknown, Invoke: 1, Complete: 10},
			{Kind: Add, ID: "a", Body: "third", Outcome: Unknown, Invoke: 2, Complete: 10},
			{Kind: Deliver, ID: "a", Body: "third", Seq: 3, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 30},
			{Kind: Finish, ID: "a", Seq: 3, Generation: 1, Invoke: 40, Complete: 50},
		}},
		{"the last of several unknown kicks takes effect", []Op{
			{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 20, Complete: 21},
			{Kind: Bury, ID: "a", Seq: 1, Generation: 1, Invoke: 22, Complete: 23},
			{Kind: Kick, ID: "a", Outcome: Unknown, Invoke: 24, Complete: 25},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 2, Attempts: 1, ReservedUntil: sec, Invoke: 30, Complete: 31},
			{Kind: Bury, ID: "a", Seq: 1, Generation: 2, Invoke: 32, Complete: 33},
			{Kind: Kick, ID: "a", Outcome: Unknown, Invoke: 34, Complete: 35},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 3, Attempts: 1, ReservedUntil: sec, Invoke: 40, Complete: 41},
			{Kind: Bury, ID: "a", Seq: 1, Generation: 3, Invoke: 42, Complete: 43},
			{Kind: Kick, ID: "a", Outcome: Unknown, Invoke: 44, Complete: 45},
			{Kind: Deliver, ID: "a", Seq: 1, Generation: 4, Attempts: 1, ReservedUntil: sec, Invoke: 50, Complete: 51},
			{Kind: Finish, ID: "a", Seq: 1, Generation: 4, Invoke: 60, Complete: 70},
		}},
		{"beanstalkd connection ends and gives its job back", []Op{
			{Kind: Add, ID: "a", Topic: "t", Seq: 1, TTR: time.Second, Invoke: 0, Complete: 10},
			{Kind: Deliver, ID: "a", Seq: 1, Lease: 7, ReservedUntil: sec, TTR: time.Second, Invoke: 20, Complete: 30},
			{Kind: Release, ID: "a", Seq: 1, Lease: 7, Outcome: Unknown, Invoke: 30, Complete: 40},
			{Kind: Deliver, ID: "a", Seq: 1, Lease: 8, ReservedUntil: sec + 45, TTR: time.Second, Invoke: 45, Complete: 50},
			{Kind: Delete, ID: "a", Seq: 1, Lease: 8, Invoke: 60, Complete: 70},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.ops, Options{})
			require.True(t, r.OK(), "%v", r)
			require.Equal(t, 1, r.Lives)
			require.Zero(t, r.OpenLives)
		})
	}
}

// A cluster that is away for long leaves many calls open. They must not make the
// search long, whether there is an order or not.
func TestManyUnknownCallsAreSearchedSoon(t *testing.T) {
	ops := []Op{{Kind: Add, ID: "a", Seq: 1, Invoke: 0, Complete: 1}}
	for i := range int64(40) {
		ops = append(ops,
			Op{Kind: Add, ID: "a", Outcome: Unknown, Invoke: 2 + i, Complete: 50},
			Op{Kind: Finish, ID: "a", Seq: 1, Generation: 1, Outcome: Unknown, Invoke: 10 + i, Complete: 60},
			Op{Kind: Touch, ID: "a", Seq: 1, Generation: 1, Outcome: Unknown, Invoke: 10 + i, Complete: 60},
			Op{Kind: Delete, ID: "a", Outcome: Unknown, Invoke: 20 + i, Complete: 70})
	}
	ops = append(ops,
		Op{Kind: Deliver, ID: "a", Seq: 1, Generation: 1, Attempts: 1, ReservedUntil: sec, Invoke: 5, Complete: 8},
		Op{Kind: Get, ID: "a", State: Gone, Invoke: 100, Complete: 110},
		Op{Kind: Get, ID: "a", State: "ready", Seq: 2, Invoke: 120, Complete: 130})
	r := Check(ops, Options{})
	require.Empty(t, r.Found["life"], "%v", r)
	require.Zero(t, r.OpenLives)
	r = Check(append(ops, Op{Kind: Get, ID: "a", State: "ready", Seq: 1, Invoke: 140, Complete: 150}), Options{})
	require.Equal(t, 1, r.Found["life"], "%v", r)
	require.Zero(t, r.OpenLives)
}

func TestBeanstalkdReservationsAreJudged(t *testing.T) {
	r := Check([]Op{
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, TTR: time.Second, Invoke: 0, Complete: 10},
		{Kind: Deliver, ID: "a", Seq: 1, Lease: 7, ReservedUntil: 20 + sec, TTR: time.Second, Invoke: 20, Complete: 30},
		{Kind: Deliver, ID: "a", Seq: 1, Lease: 8, ReservedUntil: 45 + sec, TTR: time.Second, Invoke: 45, Complete: 50},
		{Kind: Delete, ID: "a", Seq: 1, Invoke: 60, Complete: 70},
	}, Options{})
	require.Equal(t, 1, r.Found["I4"], "%v", r)
}

func TestReadsOfCountsCanFail(t *testing.T) {
	count := func(at int64, stale bool, conn int64, added uint64) Op {
		return Op{Kind: Count, Topic: "t", Invoke: at, Complete: at + 5, Counts: &Counts{Stale: stale, Conn: conn, Added: added}}
	}
	elsewhere := count(30, true, 1, 1)
	elsewhere.Node = "n2"
	add := Op{Kind: Add, ID: "a", Topic: "t", Seq: 1, Invoke: 0, Complete: 10}
	gone := Op{Kind: Delete, ID: "a", Topic: "t", Invoke: 900, Complete: 910}
	for _, c := range []struct {
		name string
		ops  []Op
		bad  int
	}{
		{"stale reads of one connection go back", []Op{add, count(20, true, 1, 2), count(30, true, 1, 1), gone}, 1},
		{"stale reads of two connections differ", []Op{add, count(20, true, 1, 2), count(30, true, 2, 1), gone}, 0},
		{"stale reads of two nodes differ", []Op{add, count(20, true, 1, 2), elsewhere, gone}, 0},
		{"stale read misses an acknowledged add", []Op{add, count(20, true, 1, 0), gone}, 0},
		{"consistent read misses an acknowledged add", []Op{add, count(20, false, 1, 0), gone}, 1},
		{"consistent read is behind an earlier one", []Op{add, count(20, false, 1, 2), count(30, false, 2, 1), gone}, 1},
		{"consistent read beside the add", []Op{add, count(8, false, 1, 0), gone}, 0},
		{"consistent read misses a delete", []Op{add, gone, count(950, false, 1, 1)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.ops, Options{})
			require.Equal(t, c.bad, r.Found["I10"], "%v", r)
		})
	}
}

func TestWorstGapOfQuietTimes(t *testing.T) {
	ops := []Op{
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Invoke: 0, Complete: 10 * ms},
		{Kind: Get, ID: "a", State: "ready", Seq: 1, Invoke: 100 * ms, Complete: 110 * ms}, // no write
		{Kind: Delete, ID: "a", Invoke: 500 * ms, Complete: 510 * ms},
	}
	r := Check(ops, Options{Quiet: []Window{{From: 5 * ms, To: 20 * ms}, {From: 300 * ms}}, MaxQuietGap: 200 * time.Millisecond})
	require.Equal(t, 500*time.Millisecond, r.WorstWriteGap)
	require.Equal(t, 210*time.Millisecond, r.WorstQuietGap)
	require.Equal(t, map[string]int{"I6": 1}, r.Found)
}

func TestHistoryIsKeptAndReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	ops := append(goodHistory(), Op{Kind: Count, Topic: "t", Invoke: 1, Complete: 2, Counts: &Counts{Stale: true, Added: 3}})
	require.NoError(t, WriteFile(path, ops))
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, ops, again)
}
