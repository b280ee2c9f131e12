package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// The time of an entry is rounded down to a millisecond, so what lasts from it on ends a
// millisecond later. An instant that was named stays, and so does what is due already.
func TestNothingIsShorterThanAskedFor(t *testing.T) {
	reserved := func(r *rig) *jobpb.Ref {
		seq := r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 700})).Seq
		r.one(opReserve(1, "t"))
		return bySeq(seq)
	}
	delayed := func(r *rig, id string) *jobpb.Ref {
		return bySeq(r.one(opAdd(&jobpb.Add{Id: id, Topic: "t", TtrMs: 700, DelayMs: 9000})).Seq)
	}
	cases := map[string]struct {
		op   func(r *rig) *jobpb.Op
		ends func(r *jobpb.Result) int64
		asks int64 // milliseconds
		late int64 // when the time was rounded down
	}{
		"add": {
			func(*rig) *jobpb.Op { return opAdd(&jobpb.Add{Topic: "t", TtrMs: 1, DelayMs: 30}) },
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"add for an instant": {
			func(r *rig) *jobpb.Op { return opAdd(&jobpb.Add{Topic: "t", TtrMs: 1, DueMs: r.now + 30}) },
			(*jobpb.Result).GetDueMs, 30, 0,
		},
		"add without a delay": {
			func(*rig) *jobpb.Op { return opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}) },
			(*jobpb.Result).GetDueMs, 0, 0,
		},
		"postpone": {
			func(r *rig) *jobpb.Op {
				delayed(r, "x")
				return opAdd(&jobpb.Add{Id: "x", Topic: "t", TtrMs: 1, DelayMs: 30, IfExists: jobpb.IfExists_IF_EXISTS_POSTPONE})
			},
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"update": {
			func(r *rig) *jobpb.Op {
				ms := int64(30)
				return opUpdate(&jobpb.Update{Ref: delayed(r, ""), DelayMs: &ms})
			},
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"release": {
			func(r *rig) *jobpb.Op { return opRelease(&jobpb.Release{Ref: reserved(r), DelayMs: 30}) },
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"release with backoff": {
			func(r *rig) *jobpb.Op {
				ref := reserved(r)
				r.one(opLimits("t", &jobpb.TopicSettings{Backoff: &jobpb.Backoff{DelaysMs: []int64{30}}}))
				return opRelease(&jobpb.Release{Ref: ref, Backoff: true})
			},
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"touch": {
			func(r *rig) *jobpb.Op { return opTouch(reserved(r), 30) },
			(*jobpb.Result).GetReservedUntilMs, 30, 1,
		},
		"reserve": {
			func(r *rig) *jobpb.Op {
				r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 700}))
				return opReserve(1, "t")
			},
			func(r *jobpb.Result) int64 { return r.Jobs[0].ReservedUntilMs }, 700, 1,
		},
		"reserve by id": {
			func(r *rig) *jobpb.Op {
				return opReserveJob(bySeq(r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 700})).Seq), 30)
			},
			(*jobpb.Result).GetReservedUntilMs, 30, 1,
		},
		"pause": {
			func(*rig) *jobpb.Op { return opPause("t", 30, true) },
			(*jobpb.Result).GetDueMs, 30, 1,
		},
		"pause until an instant": {
			func(r *rig) *jobpb.Op {
				op := opPause("t", 0, true)
				op.GetPauseTopic().UntilMs = r.now + 30
				return op
			},
			(*jobpb.Result).GetDueMs, 30, 0,
		},
	}
	for name, c := range cases {
		for _, rounded := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, Options{})
				op := c.op(r)
				r.index++
				results, _, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntryOf(t, r.now, rounded, 0, op)}}, true)
				require.NoError(t, err)
				require.Equal(t, jobpb.Code_OK, results[0][0].Code, results[0][0].Message)
				want := r.now + c.asks
				if rounded {
					want += c.late
				}
				require.Equal(t, want, c.ends(results[0][0]), "rounded: %v", rounded)
			})
		}
	}
}

// The time of an entry does not count while the clock is ahead of it, nor at an effect's instant.
func TestOnlyTheTimeThatCountsIsRounded(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}))
	apply := func(now int64, ops ...*jobpb.Op) []*jobpb.Result {
		r.index++
		results, _, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntryOf(t, now, true, 0, ops...)}}, true)
		require.NoError(t, err)
		return results[0]
	}
	require.Equal(t, r.now+30, apply(r.now-5, opAdd(&jobpb.Add{Topic: "u", TtrMs: 1, DelayMs: 30}))[0].DueMs)
	at := r.now + 10
	ahead := &jobpb.AdvanceAt{AtMs: at, Number: 1, Advance: &jobpb.Advance{Max: 1}, Reserves: []*jobpb.Reserve{{Topics: []string{"t"}, Max: 1, TtrMs: 700}}}
	apply(r.now, &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: ahead}})
	changes, err := r.m.TakeEffect(at, 1, 0)
	require.NoError(t, err)
	require.Equal(t, at+700, changes.Effects[0].Results[0].Jobs[0].ReservedUntilMs)
}
