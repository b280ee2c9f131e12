package leaderprobe

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// seenElection is an election as the second follower sees it, on a fake clock.
type seenElection struct {
	Raft
	began    time.Time
	stood    time.Duration // when the first follower stands, with this one's vote; 0: it does not
	answered time.Duration // when the winner's first message arrives; 0: no one wins
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

// A follower that starts an election just after another one has won deposes the winner.
func TestAFollowerWaitsForAnElectionUnderWay(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		name            string
		stood, answered time.Duration
		stands          bool
		after           time.Duration
	}{
		{"nobody stands", 0, 0, true, electionStagger},
		{"the first has won", 10 * ms, 100 * ms, false, electionStagger},
		{"it has won, its first message is on its way", electionStagger - ms, electionStagger + 100*ms, false, 2 * electionStagger},
		{"it has lost", 10 * ms, 0, true, 2 * electionStagger},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := seenElection{began: time.Now(), stood: test.stood, answered: test.answered}
				f := &follower{raft: e}
				require.Equal(t, test.stands, f.awaitStagger(t.Context(), "lost", 7, electionStagger))
				require.Equal(t, test.after, e.since())
			})
		})
	}
}

func TestOnlyARefusalEndsALeader(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	require.False(t, hasEnded(t.Context(), silent.Addr().String()))
	require.NoError(t, silent.Close())
	require.True(t, hasEnded(t.Context(), silent.Addr().String()))
}
