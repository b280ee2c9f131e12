package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// overran is a job whose consumer finishes it after its time ran out, where the
// topic refuses that; the next consumer finishes it.
func overran() []Op {
	return []Op{
		{Kind: Limit, Topic: "t", Limits: &Limits{RefuseLate: true}},
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Invoke: 0, Complete: ms, TTR: time.Second},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, Invoke: 2 * ms, Complete: 3 * ms, ReservedUntil: sec},
		{Kind: Get, ID: "a", Topic: "t", Seq: 1, State: "ready", Attempts: 1, Invoke: 1100 * ms, Complete: 1101 * ms},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Outcome: Fail, Code: staleToken, Invoke: 1200 * ms, Complete: 1201 * ms},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 2, Attempts: 2, Invoke: 1300 * ms, Complete: 1301 * ms, ReservedUntil: 3 * sec},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 2, Invoke: 1400 * ms, Complete: 1401 * ms},
	}
}

func TestLateFinishes(t *testing.T) {
	accepts := func(ops []Op) []Op {
		ops[0].Limits = &Limits{Retain: 0}
		return ops
	}
	accepted := func(ops []Op) []Op {
		f := find(ops, "a", Finish, 0)
		f.Outcome, f.Code = OK, ""
		return ops[:5]
	}
	for _, c := range []struct {
		name string
		bad  int
		ops  []Op
	}{
		{"refused where the topic refuses it", 0, overran()},
		{"accepted where the topic refuses it", 1, accepted(overran())},
		{"accepted where the topic accepts it", 0, accepted(accepts(overran()))},
		{"refused though nobody else had the job", 1, accepts(overran())},
		{"refused, and somebody else may have had the job", 0, func() []Op {
			ops := accepts(overran())
			find(ops, "a", Deliver, 1).Generation, find(ops, "a", Finish, 1).Generation = 3, 3
			return ops
		}()},
		{"refused, and the next reservation was under way", 0, func() []Op {
			ops := accepts(overran())
			find(ops, "a", Deliver, 1).Invoke = 1150 * ms
			return ops
		}()},
		{"refused, and the job was updated", 0, append(accepts(overran()),
			Op{Kind: Update, ID: "a", Topic: "t", Seq: 1, Outcome: Unknown, Invoke: 1110 * ms, Complete: 1120 * ms})},
		{"refused, and the consumer may have released it", 0, append(accepts(overran()),
			Op{Kind: Release, ID: "a", Topic: "t", Seq: 1, Generation: 1, Outcome: Unknown, Invoke: 1110 * ms, Complete: 1120 * ms})},
		{"refused, and the attempt was taken back", 0, func() []Op {
			ops := accepts(overran())
			find(ops, "a", Deliver, 1).Attempts = 1
			return ops
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.ops, testOptions)
			require.Equal(t, c.bad, r.Found["late"], "%v", r)
		})
	}
}

// Whatever time and a kick do to a job whose reservation expired, its token may
// still finish it.
func TestALateFinishHasAnExplanation(t *testing.T) {
	job := func(since ...Op) []Op {
		return append(append([]Op{
			{Kind: Add, ID: "a", Topic: "t", Seq: 1, Invoke: 0, Complete: ms, TTR: time.Second, MaxAttempts: 1},
			{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, Invoke: 2 * ms, Complete: 3 * ms, ReservedUntil: sec},
		}, since...), Op{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 1200 * ms, Complete: 1201 * ms})
	}
	for name, c := range map[string]struct {
		ops   []Op
		found map[string]int
	}{
		"dead":   {job(Op{Kind: Get, ID: "a", Seq: 1, State: "dead", Attempts: 1, Invoke: 1100 * ms, Complete: 1101 * ms}), map[string]int{}},
		"kicked": {job(Op{Kind: Kick, ID: "a", Seq: 1, Invoke: 1100 * ms, Complete: 1101 * ms}), map[string]int{}},
		"postponed": {job(
			Op{Kind: Kick, ID: "a", Seq: 1, Invoke: 1100 * ms, Complete: 1101 * ms},
			Op{Kind: Add, ID: "a", Topic: "t", Seq: 1, IfExists: postpone, Result: postponed, Delay: time.Second, TTR: time.Second, MaxAttempts: 1, Invoke: 1110 * ms, Complete: 1111 * ms},
		), map[string]int{"life": 1}},
		"buried": {job(
			Op{Kind: Bury, ID: "a", Seq: 1, Generation: 1, Invoke: 100 * ms, Complete: 101 * ms},
			Op{Kind: Kick, ID: "a", Seq: 1, Invoke: 110 * ms, Complete: 111 * ms},
		), map[string]int{"life": 1, "I4": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(c.ops, testOptions)
			require.Equal(t, c.found, r.Found, "%v", r)
		})
	}
}

func TestAFinishWithoutATokenIsRefusedWhereOneIsRequired(t *testing.T) {
	ops := []Op{
		{Kind: Limit, Topic: "t", Limits: &Limits{Tokens: true}},
		{Kind: Add, ID: "a", Topic: "t", Seq: 1, Invoke: 0, Complete: ms, TTR: time.Second},
		{Kind: Deliver, ID: "a", Topic: "t", Seq: 1, Generation: 1, Attempts: 1, Invoke: 2 * ms, Complete: 3 * ms, ReservedUntil: sec},
		{Kind: Finish, ID: "a", Topic: "t", Outcome: Fail, Code: "token_required", Invoke: 4 * ms, Complete: 5 * ms},
		{Kind: Finish, ID: "a", Topic: "t", Seq: 1, Generation: 1, Invoke: 6 * ms, Complete: 7 * ms},
	}
	r := Check(ops, testOptions)
	require.True(t, r.OK(), "%v", r)
	find(ops, "a", Finish, 0).Outcome = OK
	require.Equal(t, 1, Check(ops, testOptions).Found["token"])
}
