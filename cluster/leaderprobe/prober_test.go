package leaderprobe

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The servers wait for a heartbeat long enough to start no election by themselves, unless a vote
// is split. The lease is longer than a busy machine does not run them.
const (
	electionTimeout = 10 * time.Second
	lease           = 5 * time.Second
)

// threeServers is a Raft group in memory.
func threeServers(t *testing.T) []*follower {
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for _, id := range []raft.ServerID{"n1.1", "n2.1", "n3.1"} {
		addr, transport := raft.NewInmemTransport(raft.ServerAddress(id))
		servers = append(servers, raft.Server{ID: id, Address: addr})
		transports = append(transports, transport)
	}
	var group []*follower
	for i, s := range servers {
		for _, to := range transports {
			transports[i].Connect(to.LocalAddr(), to)
		}
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = s.ID, hclog.NewNullLogger()
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = electionTimeout, electionTimeout, lease
		log := raft.NewInmemStore()
		require.NoError(t, raft.BootstrapCluster(c, log, log, raft.NewInmemSnapshotStore(), transports[i], raft.Configuration{Servers: servers}))
		r, err := raft.NewRaft(c, new(raft.MockFSM), log, log, raft.NewInmemSnapshotStore(), transports[i])
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
		group = append(group, &follower{raft: r, transport: transports[i], Config: Config{
			ServerID: s.ID, Heartbeat: electionTimeout, Election: electionTimeout, Lease: lease,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Reload: func(change func(*raft.ReloadableConfig)) error {
				settings := r.ReloadableConfig()
				change(&settings)
				return r.ReloadConfig(settings)
			},
		}})
	}
	return group
}

// elect makes a server start elections until it leads and all others know it.
func elect(t *testing.T, group []*follower, f *follower) {
	require.Eventually(t, func() bool {
		if f.raft.State() == raft.Follower {
			require.NoError(t, f.standForElection())
		}
		for _, other := range group {
			if _, id := other.raft.LeaderWithID(); id != f.ServerID {
				return false
			}
		}
		return f.raft.State() == raft.Leader
	}, 2*time.Minute, 50*time.Millisecond)
}

func TestAFollowerThatStandsForElectionLeads(t *testing.T) {
	group := threeServers(t)
	elect(t, group, group[0])
	elect(t, group, group[1]) // although the leader is alive
}

func TestACheckOfALiveLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	group := threeServers(t)
	leader := group[0]
	elect(t, group, leader)
	term := leader.raft.CurrentTerm()
	for _, f := range group[1:] {
		f.checkHeartbeat(t.Context(), leader.ServerID)
		settings := f.raft.(*raft.Raft).ReloadableConfig()
		require.Equal(t, electionTimeout, settings.HeartbeatTimeout, "the timeouts are restored")
		require.Equal(t, electionTimeout, settings.ElectionTimeout)
	}
	require.Equal(t, raft.Leader, leader.raft.State())
	require.Equal(t, term, leader.raft.CurrentTerm())
}

func TestFollowersStandOneAfterTheOther(t *testing.T) {
	group := threeServers(t)
	leader := group[1].ServerID
	var waits []time.Duration
	for _, f := range group {
		if wait, votes := f.staggered(leader); votes {
			waits = append(waits, wait)
		}
	}
	require.Equal(t, []time.Duration{0, electionStagger}, waits, "the leader does not replace itself")
}

// Otherwise one node would lead all groups of a node that is lost.
func TestTheGroupsOfALostLeaderBeginWithDifferentVoters(t *testing.T) {
	group := threeServers(t)
	next := make(map[raft.ServerID]int)
	for number := range uint32(6) {
		for _, f := range group[1:] {
			f.Group = number
			if wait, votes := f.staggered("n1.1"); votes && wait == 0 {
				next[f.ServerID]++
			}
		}
	}
	require.Equal(t, map[raft.ServerID]int{"n2.1": 3, "n3.1": 3}, next)
	group[1].Group, group[2].Group = 0, 0
	wait, votes := group[2].staggered("n1.1")
	require.True(t, votes)
	require.Equal(t, electionStagger, wait)
}
