package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"tarry/internal/hook"
	"tarry/internal/sleep"
)

// The trailing log is what stays in the log after a snapshot, for followers that are
// behind. A follower that needs older entries needs the whole state instead. The trailing
// log must cover the time in which a state is sent and installed, or a follower would need
// the next state as soon as it has one. So it is measured in time as well as in bytes.
const (
	trailingBytes    = 256 << 20       // at least this much
	trailingTime     = 2 * time.Minute // and all entries of this time,
	trailingBytesMax = 2 << 30         // but no more than this

	// trailingFew entries stay whatever their size.
	trailingFew = 64

	// While a state is being sent, and for the same time after it, all entries stay that
	// its receiver will need next. A large state takes minutes to send, and in that time
	// the log grows by more than the limits above.
	trailingSendMax = 32 << 30

	trailingEvery = 10 * time.Second // between two adjustments

	// While the disk is low only this much stays. A follower that is further behind needs
	// the whole state; a full disk would be worse.
	trailingLow = 64 << 20
)

// A snapshot is taken after so many entries or bytes. Later entries may have to be applied
// again after a crash.
const (
	snapshotEntries = 8192
	snapshotBytes   = 256 << 20
)

// sizeTrailingLogs adapts the number of entries that Raft keeps to their size and rate,
// which change with the load, until the shard stops.
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
		if s.cfg.Host.Disk().Low {
			s.shorten()
		}
	}
}

// sizeLog makes one adjustment. Raft counts the entries since the last snapshot only from
// the start of the process. The entries of earlier runs are counted here.
func (s *Shard) sizeLog(seen *trailing, now time.Time) {
	last := s.raft.LastIndex()
	keep := seen.entries(last, s.stores.EntriesFor(s.cfg.files.trailing()), s.stores.EntriesFor(trailingBytesMax))
	if sent, ok := s.adapter.OldestSent(now); ok {
		keep = max(keep, min(last-min(sent, last), s.stores.EntriesFor(trailingSendMax)))
	}
	threshold := min(snapshotEntries, s.stores.EntriesFor(s.cfg.files.snapshot()))
	err := s.reloadRaft(func(c *raft.ReloadableConfig) { c.TrailingLogs, c.SnapshotThreshold = keep, threshold })
	if err != nil {
		s.log.Warn("could not adapt the size of the log", "error", err)
		return
	}
	first, err := s.stores.Log.FirstIndex()
	if err != nil || first == 0 || last < first+keep+threshold {
		return // the log store has ended the process
	}
	if err := s.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.log.Debug("could not shorten the log; trying again", "error", err)
	}
}

// makeRoom requests that the log is shortened. It does not wait for that.
func (s *Shard) makeRoom() {
	select {
	case s.tight <- struct{}{}:
	default:
	}
}

// shorten takes a snapshot, which makes Raft drop the entries that need not stay. It costs a
// flush of the state.
func (s *Shard) shorten() {
	err := s.reloadRaft(func(c *raft.ReloadableConfig) {
		c.TrailingLogs = max(min(c.TrailingLogs, s.stores.EntriesFor(trailingLow)), trailingFew)
	})
	if err == nil {
		err = s.raft.Snapshot().Error()
	}
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		s.log.Debug("could not shorten the log because the disk is full; trying again", "error", err)
	}
}

// trailing keeps the last index at each adjustment within trailingTime.
type trailing struct{ indexes []uint64 }

// entries returns how many entries should stay: those of trailingTime, but at least least
// and at most most.
func (t *trailing) entries(last, least, most uint64) uint64 {
	t.indexes = append(t.indexes, last)
	if over := len(t.indexes) - 1 - int(trailingTime/trailingEvery); over > 0 {
		t.indexes = t.indexes[over:]
	}
	recent := last - min(t.indexes[0], last) // an installed snapshot may move the index back
	return min(max(recent, least, trailingFew), max(most, trailingFew))
}
