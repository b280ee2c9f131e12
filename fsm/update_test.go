package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestDeleteOfARewrittenJobLeavesNothing(t *testing.T) {
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
