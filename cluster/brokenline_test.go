package cluster

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestAFollowerThatStandsForElectionLeads(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	c.deafFollowers(l)
	next := (l + 1) % 3
	// It is refused as long as it misses an entry.
	require.Eventually(t, func() bool {
		n := c.nodes[next]
		if n.dispatcher() == nil && n.raft.State() != raft.Leader {
			require.NoError(t, n.standForElection(n.members.Witness(n.trans)))
		}
		return n.dispatcher() != nil
	}, 30*time.Second, 300*time.Millisecond, "it leads")
	do(t, c.nodes[l], add("a", "t", 0))
}

// seenElection is an election as the second follower sees it, told on a fake clock.
type seenElection struct {
	began    time.Time
	stood    time.Duration // when the first follower stands, with this one's vote; 0: it does not
	answered time.Duration // when the winner's first message comes; 0: nobody wins
}

func (e seenElection) since() time.Duration { return time.Since(e.began) }

func (e seenElection) State() raft.RaftState { return raft.Follower }

func (e seenElection) CurrentTerm() uint64 {
	if e.stood != 0 && e.since() >= e.stood {
		return 8
	}
	return 7
}

func (e seenElection) LeaderWithID() (raft.ServerAddress, raft.ServerID) {
	switch {
	case e.answered != 0 && e.since() >= e.answered:
		return "first", "first"
	case e.CurrentTerm() == 8:
		return "", ""
	}
	return "lost", "lost"
}

// A follower that stands against one which has just won deposes it.
func TestAFollowerLeavesTimeToOneThatHasStood(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		name            string
		stood, answered time.Duration
		stands          bool
		after           time.Duration
	}{
		{"nobody stands", 0, 0, true, turn},
		{"the first has won", 10 * ms, 100 * ms, false, turn},
		{"it has won, its first message is on its way", turn - ms, turn + 100*ms, false, 2 * turn},
		{"it has lost", 10 * ms, 0, true, 2 * turn},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := seenElection{time.Now(), test.stood, test.answered}
				require.Equal(t, test.stands, awaitTurn(t.Context(), e, "lost", 7, turn))
				require.Equal(t, test.after, e.since())
			})
		})
	}
}

func TestOnlyARefusalEndsALeader(t *testing.T) {
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	require.False(t, n.ended(silent.Addr().String()))
	require.NoError(t, silent.Close())
	require.True(t, n.ended(silent.Addr().String()))
}

func TestABrokenLineDoesNotDeposeALeaderThatListens(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	c.deafFollowers(l)
	term := c.nodes[l].raft.CurrentTerm()
	for _, n := range c.nodes {
		n.trans.CloseStreams() // every line breaks
	}
	c.eventually(func() bool {
		_, err := c.nodes[l].Do(t.Context(), nil)
		return err == nil
	}, "the leader goes on")
	require.Equal(t, l, c.leader())
	require.Equal(t, term, c.nodes[l].raft.CurrentTerm())
}
