package cluster

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/logstore"
	"tarry/internal/hook"
)

// startRaft starts Raft over t.
func (s *Shard) startRaft(t raft.Transport) (err error) {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(s.cfg.ServerID)
	c.HeartbeatTimeout = s.cfg.Heartbeat
	c.ElectionTimeout = s.cfg.Election
	c.LeaderLeaseTimeout = s.cfg.Lease
	// Followers learn the last commit index after one to two of this time if nothing else is
	// sent. No request waits for that, because reads go to the leader. A shorter time costs CPU
	// on an idle node.
	c.CommitTimeout = 100 * time.Millisecond
	// It exceeds the entries that can be in flight, so that one message carries all of
	// them. It is also how many entries, of any size, Raft reads for a follower that is
	// behind, and how many it applies at once.
	c.MaxAppendEntries = 16
	c.BatchApplyCh = true
	c.SnapshotInterval = 20 * time.Second
	c.SnapshotThreshold = 8192
	c.TrailingLogs = 10240
	if n := hook.Trailing(); n > 0 { // the fault harness makes followers need the whole state
		c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = time.Second, n, n
	}
	c.NoSnapshotRestoreOnStart = true // the state machine is its own newest snapshot
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false
	c.Logger = newRaftLogger(s.log)
	cache := logstore.NewCache(s.stores.Log, s.cfg.logCacheBytes, logCacheEntries)
	s.raft, err = raft.NewRaft(c, s.adapter, replayLog{cache, s.replay}, s.stores.Stable, s.adapter.Snapshots(), t)
	if err != nil {
		return fmt.Errorf("start Raft: %w", err)
	}
	return nil
}

// reloadRaft changes settings of the running Raft.
func (s *Shard) reloadRaft(change func(*raft.ReloadableConfig)) error {
	s.raftSettings.Lock()
	defer s.raftSettings.Unlock()
	c := s.raft.ReloadableConfig()
	change(&c)
	return s.raft.ReloadConfig(c)
}
