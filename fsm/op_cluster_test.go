package fsm

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// checkRemoved compares the removed nodes in memory, and those that are public, with the
// store.
func checkRemoved(m *Machine) error {
	stored, err := record.ReadRemoved(m.store.db)
	if err != nil {
		return err
	}
	if !maps.Equal(m.removed, stored) || !maps.Equal(m.RemovedNodes(), stored) {
		return errors.New("the removed nodes in memory are not those in the store")
	}
	return nil
}

func TestANodeIsRemovedUntilItIsAdmitted(t *testing.T) {
	r := newRig(t, Options{})
	before := r.m.RemovedNodes()
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n1.a", "n1")).Code)
	at := r.now
	require.Empty(t, before, "what readers have does not change")
	require.True(t, r.m.Forgotten("n1.a"))
	r.now += 5
	r.one(opRemove("n1.b", "n1")) // the other server of the same node
	for range 2 {
		require.Equal(t, map[string]int64{"n1": at}, r.m.RemovedNodes())
		r.reopen()
	}
	require.Equal(t, jobpb.Code_OK, r.one(opAdmit("n1")).Code)
	require.Empty(t, r.m.RemovedNodes())
	require.True(t, r.m.Forgotten("n1.a"), "its earlier servers do not return")
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opAdmit("n1")).Code)
	r.check()
}

// Dropping the oldest would let a node in; so there are no more removals.
func TestTheRemovedNodesAreBounded(t *testing.T) {
	r := newRig(t, Options{maxRemoved: 3})
	for i := range 3 {
		require.Equal(t, jobpb.Code_OK, r.one(opRemove(fmt.Sprint("n", i, ".a"), fmt.Sprint("n", i))).Code)
	}
	res := r.one(opRemove("n3.a", "n3"))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
	require.Contains(t, res.Message, "3 nodes were removed and not admitted again, which is the limit")
	require.False(t, r.m.Forgotten("n3.a"), "a refused removal changes nothing")
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n2.b", "n2")).Code, "another server of a node that is removed")
	require.Equal(t, jobpb.Code_OK, r.one(opForget("n3.a")).Code, "a server whose node stays")
	require.Equal(t, jobpb.Code_OK, r.one(opAdmit("n0")).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opRemove("n4.a", "n4")).Code)
	r.check()
}

// A cluster can begin with a node that was removed from the one before; the others stay out.
func TestANewClusterBeginsWithANodeThatWasRemoved(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opSetCluster("old"), opRemove("n1.a", "n1"), opRemove("n2.a", "n2"))
	c := restored(r, 0)
	c.NodeID = "n2"
	require.NoError(t, r.m.EnterCluster(c))
	r.check()
	r.reopen()
	require.Contains(t, r.m.RemovedNodes(), "n1")
	require.NotContains(t, r.m.RemovedNodes(), "n2")
}
