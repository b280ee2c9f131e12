package client

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLeaderIsAskedFirst(t *testing.T) {
	n := newNodes([]string{"http://a:1", "http://b:1"})
	n.replied("http://a:1", "b:1")
	require.Equal(t, []string{"http://b:1", "http://a:1"}, n.order())
	n.replied("http://b:1", "c:1")
	require.Equal(t, []string{"http://c:1", "http://a:1", "http://b:1"}, n.order(), "it may be new")
	n.replied("http://a:1", "")
	require.Equal(t, "http://a:1", n.order()[0], "without a leader: who replied")
	n.replied("http://a:1", "no address")
	require.Equal(t, []string{"http://a:1", "http://b:1", "http://c:1"}, n.order())
}

func TestALeaderThatFailedIsNotPreferredForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes([]string{"http://a:1", "http://b:1"})
		n.failed("http://a:1", true)
		n.replied("http://b:1", "a:1")
		require.Equal(t, "http://b:1", n.order()[0])
		time.Sleep(avoidFailed)
		n.replied("http://b:1", "a:1")
		require.Equal(t, "http://a:1", n.order()[0])
	})
}

func TestAnAddressThatNobodyCanReachIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes([]string{"http://a:1"})
		n.meet([]Member{{HTTPAddress: "a:1"}, {HTTPAddress: "b:1"}, {HTTPAddress: ""}})
		require.Equal(t, []string{"http://a:1", "http://b:1"}, n.order())
		n.failed("http://b:1", true)
		require.Len(t, n.order(), 2, "it was reached")
		n.failed("http://b:1", false)
		n.failed("http://a:1", false)
		require.Equal(t, []string{"http://a:1"}, n.order(), "given addresses stay")
		n.meet([]Member{{HTTPAddress: "b:1"}})
		require.Len(t, n.order(), 1)
		time.Sleep(avoidUnreachable)
		n.meet([]Member{{HTTPAddress: "b:1"}})
		require.Len(t, n.order(), 2)
		n.failed("http://b:1", false)
		time.Sleep(avoidUnreachable)
		n.meet([]Member{{HTTPAddress: "b:1"}})
		require.Len(t, n.order(), 1, "the second pause is longer")
	})
}

func TestTheMembersAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes([]string{"http://a:1"})
		require.False(t, n.wantsMembers(), "before the first reply")
		n.replied("http://a:1", "")
		require.False(t, n.wantsMembers(), "not of a server that names no leader")
		n.replied("http://a:1", "a:1")
		require.True(t, n.wantsMembers())
		require.False(t, n.wantsMembers(), "while it is tried")
		time.Sleep(membersEvery)
		require.True(t, n.wantsMembers(), "it failed")
		n.meet(nil)
		time.Sleep(membersEvery)
		require.False(t, n.wantsMembers())
	})
}

func TestAClientLearnsABoundedNumberOfNodes(t *testing.T) {
	n := newNodes([]string{"http://a:1"})
	for i := range 2 * maxNodes {
		n.replied("http://a:1", fmt.Sprintf("b:%d", i+1))
	}
	require.Len(t, n.order(), maxNodes)
}
