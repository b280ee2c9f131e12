package cluster

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/groupcommit"
)

// measuredAppends records the size of the largest message.
type measuredAppends struct {
	fullTransport
	largest *atomic.Int64
}

func (m measuredAppends) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	bytes := 0
	for _, e := range req.Entries {
		bytes += len(e.Data)
	}
	if len(req.Entries) > 0 { // heartbeats run beside it
		m.largest.Store(max(m.largest.Load(), int64(bytes)))
	}
	return m.fullTransport.AppendEntries(id, target, req, resp)
}

func (m measuredAppends) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func TestMessagesToAFollowerAreBoundedByBytes(t *testing.T) {
	const size, count = 3 << 20, 20
	start := func(id string, wrap func(raft.Transport) raft.Transport) (*raft.Raft, *raft.InmemTransport, *raft.InmemStore) {
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = raft.ServerID(id), hclog.NewNullLogger()
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		_, trans := raft.NewInmemTransportWithTimeout(raft.ServerAddress(id), 10*time.Second)
		store := raft.NewInmemStore()
		r, err := raft.NewRaft(c, &raft.MockFSM{}, store, store, raft.NewInmemSnapshotStore(), wrap(trans))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
		return r, trans, store
	}
	var largest atomic.Int64
	leader, from, _ := start("a", func(t raft.Transport) raft.Transport {
		return boundAppends(measuredAppends{t.(fullTransport), &largest})
	})
	_, to, log := start("b", func(t raft.Transport) raft.Transport { return boundAppends(t) })
	require.NoError(t, leader.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a"}}}).Error())
	<-leader.LeaderCh()
	for range count {
		require.NoError(t, leader.Apply(make([]byte, size), 0).Error())
	}
	from.Connect("b", to)
	to.Connect("a", from)
	require.NoError(t, leader.AddVoter("b", "b", 0, 0).Error())
	require.Eventually(t, func() bool {
		last, err := log.LastIndex()
		return err == nil && last == leader.LastIndex()
	}, 30*time.Second, 10*time.Millisecond, "the follower has it all")
	require.LessOrEqual(t, largest.Load(), int64(groupcommit.MaxEntryBytes))
	require.Greater(t, largest.Load(), int64(groupcommit.MaxEntryBytes/2), "several share a message")
}

func TestASingleEntryOfAnySizeIsSent(t *testing.T) {
	huge := &raft.Log{Data: make([]byte, groupcommit.MaxEntryBytes+1)}
	require.Len(t, firstEntries([]*raft.Log{huge, huge}), 1)
	require.Empty(t, firstEntries(nil))
}
