package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"tarry/internal/hook"
	"tarry/internal/sleep"
)

// How much log stays behind a snapshot, for followers that are behind: with less
// they need the whole state instead. It must cover the time that sending and
// installing a state takes, or a follower would need the next state as soon as
// it has one; so it is measured in time as well as in bytes.
const (
	trailingBytes    = 256 << 20       // at least this much
	trailingTime     = 2 * time.Minute // and all of this time's entries,
	trailingBytesMax = 2 << 30         // but no more than this

	// trailingFew entries stay whatever their size.
	trailingFew = 64

	// While a state is being sent, and for as long again, everything stays that its
	// receiver will need next: it takes minutes to send a large one, and the log grows
	// by more than the above meanwhile.
	trailingSendMax = 32 << 30

	trailingEvery = 10 * time.Second // between two looks

	// While the disk is low only this much stays. A follower that is further
	// behind needs the state instead, which is the lesser evil.
	trailingLow = 64 << 20
)

// A snapshot is taken after so many entries or bytes. What was not part of one is
// applied again after a power failure.
const (
	snapshotEntries = 8192
	snapshotBytes   = 256 << 20
)

// sizeTrailingLogs adapts how much log Raft keeps to the size of an entry and to the
// rate of entries, both of which change with the load, until the shard stops.
func (s *Shard) sizeTrailingLogs() {
	if hook.Trailing() > 0 {
		return
	}
	var seen trailing
	for {
		s.sizeLog(&seen, time.Now())
		if !sleep.Until(s.ctx, trailingEvery, s.tight) {
			return
		}
		if s.cfg.Disk().Low {
			s.shorten()
		}
	}
}

// sizeLog takes one look. Raft counts the entries since the last snapshot, and begins
// anew when the process does: what earlier runs have left is counted here.
func (s *Shard) sizeLog(seen *trailing, now time.Time) {
	last := s.raft.LastIndex()
	keep := seen.entries(last, s.stores.EntriesFor(s.cfg.files.trailing()), s.stores.EntriesFor(trailingBytesMax))
	if sent, ok := s.adapter.OldestSent(now); ok {
		keep = max(keep, min(last-min(sent, last), s.stores.EntriesFor(trailingSendMax)))
	}
	threshold := min(snapshotEntries, s.stores.EntriesFor(s.cfg.files.snapshot()))
	err := s.reloadRaft(func(c *raft.ReloadableConfig) { c.TrailingLogs, c.SnapshotThreshold = keep, threshold })
	if err != nil {
		s.log.Warn("could not adapt how much log is kept", "error", err)
		return
	}
	first, err := s.stores.Log.FirstIndex()
	if err != nil || first == 0 || last < first+keep+threshold {
		return // a log that cannot be read has ended the process
	}
	if err := s.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.log.Debug("could not shorten the log; trying again", "error", err)
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
		c.TrailingLogs = max(min(c.TrailingLogs, s.stores.EntriesFor(trailingLow)), trailingFew)
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
	return min(max(recent, least, trailingFew), max(most, trailingFew))
}
