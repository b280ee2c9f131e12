package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestTrailingLogsCoverBytesAndTime(t *testing.T) {
	var idle trailing
	require.EqualValues(t, 50_000, idle.entries(100, 50_000, 400_000), "few entries: the bytes decide")
	require.EqualValues(t, trailingFew, new(trailing).entries(1, 3, 10), "huge entries: never fewer than a few")

	var busy trailing
	var got uint64
	for look := range uint64(30) {
		got = busy.entries(10_000*look, 50_000, 400_000)
	}
	require.EqualValues(t, 120_000, got, "two minutes of entries, not more")
	require.EqualValues(t, 100_000, busy.entries(300_000, 50_000, 100_000), "the maximum applies")
	require.EqualValues(t, 50_000, busy.entries(10, 50_000, 400_000), "an index that went back")
}

// smallLogs returns a cluster of one node that keeps a MiB of log.
func smallLogs(t *testing.T) *testCluster {
	return newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.files = files{segmentBytes: 256 << 10, trailingBytes: 1 << 20, snapshotBytes: 1 << 20}
	})
}

// addLarge adds so many jobs of 64 KiB, an entry each.
func addLarge(t *testing.T, n *Node, count int) {
	for range count {
		do(t, n, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Body: make([]byte, 64<<10), TtrMs: 1}}})
	}
}

func firstIndex(t *testing.T, n *Node) uint64 {
	t.Helper()
	first, err := n.shard.stores.Log.FirstIndex()
	require.NoError(t, err)
	return first
}

func TestALogOfLargeEntriesIsTruncatedByItsBytes(t *testing.T) {
	t.Parallel()
	c := smallLogs(t)
	n := c.nodes[c.leader()]
	addLarge(t, n, 150) // far fewer than snapshotEntries
	n.shard.sizeLog(new(trailing), time.Now())
	if firstIndex(t, n) == 1 {
		// Raft has just taken a snapshot by itself, with the settings of before. It takes the next one when
		// something is new.
		addLarge(t, n, 1)
		n.shard.sizeLog(new(trailing), time.Now())
	}
	require.Greater(t, firstIndex(t, n), uint64(1))
	require.LessOrEqual(t, n.shard.raft.ReloadableConfig().SnapshotThreshold, uint64(40), "Raft does not wait for more")
}

func TestEntriesOfEarlierRunsCount(t *testing.T) {
	t.Parallel()
	c := smallLogs(t)
	c.leader()
	addLarge(t, c.nodes[0], 150)
	c.stop(0)
	n := c.start(0)
	c.leader()
	do(t, n, add("a", "t", 0)) // Raft makes no snapshot before it has applied something
	n.shard.sizeLog(new(trailing), time.Now())
	require.Greater(t, firstIndex(t, n), uint64(1))
}

// A follower that receives a large state next needs the entries that were added while it
// was sent.
func TestTheLogIsHeldWhileAStateIsSent(t *testing.T) {
	t.Parallel()
	c := smallLogs(t)
	n := c.nodes[c.leader()]
	addLarge(t, n, 10)
	began := time.Now()
	meta, stream, err := n.shard.adapter.Snapshots().Open("state")
	require.NoError(t, err)
	addLarge(t, n, 150)
	n.shard.sizeLog(new(trailing), time.Now())
	require.NoError(t, n.shard.raft.Snapshot().Error())
	require.LessOrEqual(t, firstIndex(t, n), meta.Index+1, "while it is sent")

	require.NoError(t, stream.Close())
	addLarge(t, n, 1)
	n.shard.sizeLog(new(trailing), time.Now())
	require.NoError(t, n.shard.raft.Snapshot().Error())
	require.LessOrEqual(t, firstIndex(t, n), meta.Index+1, "while the receiver catches up")

	addLarge(t, n, 1)
	n.shard.sizeLog(new(trailing), time.Now().Add(2*time.Since(began)))
	require.NoError(t, n.shard.raft.Snapshot().Error())
	require.Greater(t, firstIndex(t, n), meta.Index+1, "no longer than that")
}
