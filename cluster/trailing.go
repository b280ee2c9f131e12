package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"tarry/internal/hook"
)

// How much log stays behind a snapshot, for followers that are behind: with less
// they need the whole state instead. It must cover the time that sending and
// installing a state takes, or a follower would need the next state as soon as
// it has one; so it is measured in time as well as in bytes.
const (
	trailingBytes    = 256 << 20       // at least this much
	trailingTime     = 2 * time.Minute // and all of this time's entries,
	trailingBytesMax = 2 << 30         // but no more than this

	trailingEvery = 10 * time.Second // between two looks

	// While the disk is low only this much stays. A follower that is further
	// behind needs the state instead, which is the lesser evil.
	trailingLow = 64 << 20
)

// sizeTrailingLogs adapts Raft's number of trailing entries to the size of an
// entry and to the rate of entries, both of which change with the load.
func (s *Shard) sizeTrailingLogs() {
	if hook.Trailing() > 0 {
		return
	}
	var seen trailing
	for pause(s.ctx, trailingEvery, s.tight) {
		entries := seen.entries(s.raft.LastIndex(),
			s.stores.EntriesFor(trailingBytes), s.stores.EntriesFor(trailingBytesMax))
		if err := s.reloadRaft(func(c *raft.ReloadableConfig) { c.TrailingLogs = entries }); err != nil {
			s.log.Warn("could not adapt the number of trailing log entries", "error", err)
		}
		if s.cfg.Disk().Low {
			s.shorten()
		}
	}
}

// makeRoom asks for room on the disk without waiting for it.
func (s *Shard) makeRoom() {
	select {
	case s.tight <- struct{}{}:
	default:
	}
}

// shorten drops as much of the log as may be dropped. A snapshot is what lets
// Raft do so; it costs one sync.
func (s *Shard) shorten() {
	err := s.reloadRaft(func(c *raft.ReloadableConfig) {
		c.TrailingLogs = max(min(c.TrailingLogs, s.stores.EntriesFor(trailingLow)), 128)
	})
	if err == nil {
		err = s.raft.Snapshot().Error()
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.log.Debug("could not shorten the log for want of disk space; trying again", "error", err)
	}
}

// trailing remembers the last index at each look within trailingTime.
type trailing struct{ indexes []uint64 }

// entries is how many entries should trail: those of trailingTime, but at least
// least and at most most.
func (t *trailing) entries(last, least, most uint64) uint64 {
	t.indexes = append(t.indexes, last)
	if over := len(t.indexes) - 1 - int(trailingTime/trailingEvery); over > 0 {
		t.indexes = t.indexes[over:]
	}
	recent := last - min(t.indexes[0], last) // an installed snapshot may move the index back
	return min(max(recent, least, 1024), max(most, 1024))
}
