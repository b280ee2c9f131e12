package leaderprobe

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
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
	forgot   time.Duration // when Raft forgets the leader, before it stores the new term; 0: never
	stood    time.Duration // when the first follower stands, with this one's vote; 0: it does not
	answered time.Duration // when the winner's first message arrives; 0: no one wins
	returned time.Duration // when the lost leader, restarted, leads a later term; 0: never
}

func (e seenElection) since() time.Duration { return time.Since(e.began) }

func (e seenElection) State() raft.RaftState { return raft.Follower }

func (e seenElection) CurrentTerm() uint64 {
	if e.hasReturned() {
		return 9
	}
	if e.stood != 0 && e.since() >= e.stood {
		return 8
	}
	return 7
}

func (e seenElection) hasReturned() bool { return e.returned != 0 && e.since() >= e.returned }

func (e seenElection) LeaderWithID() (raft.ServerAddress, raft.ServerID) {
	switch {
	case e.hasReturned():
		return "lost", "lost"
	case e.answered != 0 && e.since() >= e.answered:
		return "first", "first"
	case e.CurrentTerm() == 8, e.forgot != 0 && e.since() >= e.forgot:
		return "", ""
	}
	return "lost", "lost"
}

// A follower that starts an election just after another one has won deposes the winner.
func TestAFollowerWaitsForAnElectionUnderWay(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		name               string
		forgot, stood      time.Duration
		answered, returned time.Duration
		stands             bool
		after              time.Duration
	}{
		{"nobody stands", 0, 0, 0, 0, true, electionStagger},
		{"the first has won", 0, 10 * ms, 100 * ms, 0, false, electionStagger},
		{"it has won, its first message is on its way", 0, electionStagger - ms, electionStagger + 100*ms, 0, false, 2 * electionStagger},
		{"this one's vote for it takes long to store", electionStagger - ms, electionStagger + 50*ms, electionStagger + 100*ms, 0, false, 2 * electionStagger},
		{"it has lost", 0, 10 * ms, 0, 0, true, 2 * electionStagger},
		{"the lost leader restarted and leads again", 0, 0, 0, 100 * ms, false, electionStagger},
		{"it leads again after the first has won", 0, 10 * ms, 20 * ms, 100 * ms, false, electionStagger},
		{"it leads again while this one waits once more", 0, 10 * ms, 0, electionStagger + 100*ms, false, 2 * electionStagger},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := seenElection{began: time.Now(), forgot: test.forgot, stood: test.stood, answered: test.answered, returned: test.returned}
				f := &follower{raft: e}
				require.Equal(t, test.stands, f.awaitStagger(t.Context(), leadership{"lost", "lost", 7}, electionStagger))
				require.Equal(t, test.after, e.since())
			})
		})
	}
}

// pair is a group of a leader and the follower that probes it.
type pair struct {
	Raft
	raft.ConfigurationFuture
	leader raft.ServerAddress
	stood  atomic.Int64 // elections of the follower
}

func (*pair) Error() error                                        { return nil }
func (*pair) State() raft.RaftState                               { return raft.Follower }
func (*pair) CurrentTerm() uint64                                 { return 7 }
func (p *pair) LeaderWithID() (raft.ServerAddress, raft.ServerID) { return p.leader, "leader" }
func (p *pair) GetConfiguration() raft.ConfigurationFuture        { return p }
func (*pair) LocalAddr() raft.ServerAddress                       { return "follower" }

func (*pair) Configuration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: "leader"}, {ID: "follower"}}}
}

func (p *pair) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	p.stood.Add(1)
	return nil
}

func TestALostConnectionDeposesALeaderOnlyIfItsProcessHasEnded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	group := &pair{leader: raft.ServerAddress(l.Addr().String())}
	f := &follower{Config: Config{ServerID: "follower", Logger: slog.New(slog.DiscardHandler)}, raft: group, transport: group}
	lost := make(chan struct{}) // a send returns once what came before is handled
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { f.watchConnections(ctx, lost) })
	defer func() { cancel(); watching.Wait() }()
	for range 3 {
		lost <- struct{}{}
	}
	require.Zero(t, group.stood.Load(), "its port accepts connections")
	require.NoError(t, l.Close())
	for group.stood.Load() == 0 {
		lost <- struct{}{}
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
