package cluster

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"tarry/cluster/logstore"
	"tarry/fsm"
)

// A leader that is lost before a majority has the state by which a backup replaced its own comes
// back with that state, and the next leader knows nothing of it. Raft sees the conflict as long
// as an entry comes before those that the leader sends. But it does not compare what the leader
// sends from its first entry on: it would append the leader's log to a state that it does not
// lead to. So this node refuses such entries, and the leader drops its log then, and has only
// its state to send.

// confirmedLog is a log to which nothing is appended that comes before a state that is not
// confirmed.
type confirmedLog struct {
	*logstore.Cache
	machine *fsm.Machine
	// dropped is the first entry that was left when the log was dropped; 0: it was not. The log
	// store may go on to find earlier ones, in the segment that it writes.
	dropped *atomic.Uint64
}

// GetLog implements raft.LogStore.
func (l confirmedLog) GetLog(index uint64, entry *raft.Log) error {
	if index < l.dropped.Load() {
		return raft.ErrLogNotFound
	}
	return l.Cache.GetLog(index, entry)
}

// StoreLog implements raft.LogStore.
func (l confirmedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l confirmedLog) StoreLogs(entries []*raft.Log) error {
	if at := l.machine.ReplacedAt(); at != 0 && len(entries) > 0 && entries[0].Index <= at && l.machine.Unconfirmed() {
		return fmt.Errorf("entry %d comes before entry %d, at which a backup replaced this node's state: the cluster does not have that, and must send its own state", entries[0].Index, at)
	}
	return l.Cache.StoreLogs(entries)
}

// dropLog makes this node drop its log, of which it needs nothing, so that Raft sends followers
// the state. It does not block.
func (s *Shard) dropLog() { poke(s.toDropLog) }

// dropLogs drops the log when asked, until the shard stops.
func (s *Shard) dropLogs() {
	for {
		select {
		case <-s.toDropLog:
		case <-s.ctx.Done():
			return
		}
		err := s.reloadRaft(func(c *raft.ReloadableConfig) { c.TrailingLogs = 1 })
		if err == nil {
			// Without an entry since the last snapshot Raft takes none.
			err = errors.Join(s.proposeAdvance(s.ctx), s.raft.Snapshot().Error())
		}
		if err == nil {
			var first uint64
			first, err = s.stores.Log.FirstIndex()
			s.dropped.Store(first)
		}
		if err != nil {
			s.log.Debug("could not drop the log for a follower that needs the state; trying again", "error", err)
		}
	}
}
