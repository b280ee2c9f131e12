package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func opUpdate(u *jobpb.Update) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Update{Update: u}} }

func TestUpdateMovesAJobBetweenDelayedAndReady(t *testing.T) {
	r := newRig(t, Options{})
	added := r.one(opAdd(&jobpb.Add{Topic: "t", DelayMs: 50}))
	res := r.one(opUpdate(&jobpb.Update{Ref: bySeq(added.Seq), DelayMs: new(int64(0))}))
	require.Equal(t, jobpb.State_STATE_READY, res.State)
	require.EqualValues(t, 2, res.Revision)
	res = r.one(opUpdate(&jobpb.Update{Ref: bySeq(added.Seq), DueMs: new(int64(rigStart + 70))}))
	require.Equal(t, jobpb.State_STATE_DELAYED, res.State)
	require.EqualValues(t, rigStart+70, res.DueMs)
	j := r.job(added.Seq)
	require.EqualValues(t, 70, j.DelayMs)
	require.EqualValues(t, 3, j.Revision)
	r.now = rigStart + 69
	r.do(opAdvance(10))
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	r.now++
	require.Len(t, r.do(opAdvance(10), opReserve(1, "t"))[1].Jobs, 1)
}

func TestAJobWhoseBodyWasWrittenTwiceIsGoneWhenItIsDeleted(t *testing.T) {
	r := newRig(t, Options{})
	for range 3 {
		r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", Body: []byte("one")}))
		r.m.store.db.Flush()
		r.one(opUpdate(&jobpb.Update{Ref: byID("a"), Body: []byte("two")}))
		require.Equal(t, "two", string(r.one(opReserve(1, "t")).Jobs[0].Body))
		r.one(opFinish(byID("a")))
		r.m.store.db.Flush()
		r.reopen()
		require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opFinish(byID("a"))).Code)
	}
	r.check()
}

func TestUpdateLeavesReservedJobsAlone(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opReserve(1, "t"))
	require.Equal(t, jobpb.Code_ALREADY_RESERVED, r.one(opUpdate(&jobpb.Update{Ref: byID("a"), Priority: new(uint32(1))})).Code)
	r.one(opBury(&jobpb.Bury{Ref: byID("a")}))
	require.Equal(t, jobpb.Code_ALREADY_DEAD, r.one(opUpdate(&jobpb.Update{Ref: byID("a"), DelayMs: new(int64(1))})).Code)
	res := r.one(opUpdate(&jobpb.Update{Ref: byID("a"), Priority: new(uint32(1))}))
	require.Equal(t, jobpb.State_STATE_DEAD, res.State, "a dead job can be mended before it is kicked")
}

func TestAJobNeedsAnAttemptUnderItsNewLimit(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opReserve(1, "t"), opRelease(&jobpb.Release{Ref: byID("a")}))
	res := r.one(opUpdate(&jobpb.Update{Ref: byID("a"), MaxAttempts: new(uint32(1))}))
	require.Equal(t, jobpb.Code_INVALID, res.Code)
	require.Contains(t, res.Message, "max_attempts is 1")
	require.Equal(t, jobpb.Code_OK, r.one(opUpdate(&jobpb.Update{Ref: byID("a"), MaxAttempts: new(uint32(2))})).Code)
	r.do(opReserve(1, "t"), opRelease(&jobpb.Release{Ref: byID("a")}))
	require.Equal(t, jobpb.State_STATE_DEAD, r.job(1).State)
}

func TestReplaceMakesANewJobUnderTheSameID(t *testing.T) {
	r := newRig(t, Options{})
	first := r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", DelayMs: 50}))
	again := &jobpb.Add{Id: "a", Topic: "u", IfExists: jobpb.IfExists_IF_EXISTS_REPLACE, Condition: &jobpb.Condition{Revision: first.Revision}}
	second := r.one(opAdd(again))
	require.True(t, second.Replaced)
	require.Greater(t, second.Seq, first.Seq)
	require.EqualValues(t, 1, r.topic("t").Deleted)
	require.EqualValues(t, 1, r.topic("u").Ready)
	r.one(opReserve(1, "u"))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opAdd(again)).Code)
	again.Condition = nil
	require.Equal(t, jobpb.Code_ALREADY_RESERVED, r.one(opAdd(again)).Code)
}
