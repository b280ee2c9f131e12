package membership

import (
	"context"
	"fmt"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stranger announces a later run of each node at addresses of its own, and replies to pings there.
func TestForgedGossipNamesNoAddressForClients(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.noProbes = true // the stranger's nodes are alive
	nodes := w.startTrio()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer udp.Close()
	const evil = "127.0.0.1:6666"
	eventually(t, "gossip believes the stranger", func() bool {
		for _, to := range nodes {
			for _, of := range nodes {
				record := of.cfg.meta()
				record.HTTPAddr, record.ClusterAddr, record.Epoch = evil, evil, math.MaxUint64
				record.ClusterID, record.NonVoter, record.Version = of.ClusterID(), true, "forged"
				forgeRun(t, to.gossipAddr(), record, udp.LocalAddr().(*net.UDPAddr), of.serverID()+"@9", 1)
			}
		}
		for _, to := range nodes {
			for _, of := range nodes {
				if m, _ := to.pool.Load().Find(of.serverID()); m.HTTPAddr != evil {
					return false
				}
			}
		}
		return true
	})
	leader := w.leader()
	for _, n := range nodes {
		eventually(t, "each node knows the leader's address", func() bool { return n.HTTPAddr(leader.serverID()) == "localhost:7300" })
		members, err := n.Members(context.Background())
		require.NoError(t, err)
		require.Len(t, members, 3)
		for _, m := range members {
			require.Equal(t, "localhost:7300", m.HttpAddress)
			require.NotEqual(t, evil, m.Address)
			require.Equal(t, "test", m.Version)
			require.False(t, m.NonVoter)
		}
		l, ok := n.Leader()
		require.True(t, ok)
		require.Equal(t, leader.clusterAddr, l.ClusterAddr, "calls to the leader go to the address that Raft has")
	}
	// A leader that follows knows only what members have said since.
	next := other(nodes, leader)
	require.NoError(t, leader.Transfer(context.Background(), next.id))
	eventually(t, "each node knows the next leader's address", func() bool {
		l, ok := leader.Leader()
		return ok && l.ServerID == next.serverID() && leader.HTTPAddr(next.serverID()) == "localhost:7300"
	})
}

// A record that a node cannot object to, because no incarnation is higher, or because the next one
// would be refused.
func TestANodeThatIsOverruledInGossipGetsItsRecordBack(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.noProbes = true // a record is only replaced by an objection, or a later run
	nodes := w.startTrio()
	victim := other(nodes, w.leader())
	at, err := net.ResolveUDPAddr("udp", victim.gossipAddr())
	require.NoError(t, err)
	for _, incarnation := range []uint32{math.MaxUint32, 1 << 30} {
		epoch := victim.epoch.Load()
		record := victim.meta()
		record.Version = "forged"
		for range 20 {
			for _, to := range nodes {
				forgeRun(t, to.gossipAddr(), record, at, fmt.Sprint(victim.serverID(), "@", epoch), incarnation)
			}
		}
		eventually(t, "the node has taken a new name", func() bool { return victim.epoch.Load() > epoch })
		for _, n := range nodes {
			eventually(t, "all have its record", func() bool {
				m, ok := n.pool.Load().Find(victim.serverID())
				return ok && m.Version == "test" && m.Epoch == victim.epoch.Load()
			})
		}
	}
}
