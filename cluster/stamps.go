package cluster

import (
	"sync"
	"time"
)

// stamps are the times of the entries that this leader has proposed and that are not known
// to be applied. From them it knows when no entry with an earlier time can follow.
type stamps struct {
	mu   sync.Mutex
	open []stamp // in the order of the log
	// sealed is the earliest time that a new entry may have.
	sealed stamp
	// unsure: an entry may be committed although Raft reported an error. Then nothing is
	// known until the next leadership.
	unsure bool
}

type stamp struct {
	ms    int64
	epoch uint64 // of the clock
}

// begin forgets what is not known any more, for a new leadership.
func (s *stamps) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsure, s.sealed = false, stamp{}
}

// next returns the time for a new entry. The caller must call end with the entry's outcome,
// in the order of these calls.
func (s *stamps) next(read func() (time.Time, uint64)) (time.Time, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, epoch := read()
	if epoch == s.sealed.epoch && now.UnixMilli() < s.sealed.ms {
		now = time.UnixMilli(s.sealed.ms) // never: the clock does not go back
	}
	s.open = append(s.open, stamp{now.UnixMilli(), epoch})
	return now, epoch
}

// end records the outcome of the oldest entry: whether it is applied, or certainly will not
// be.
func (s *stamps) end(certain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsure = s.unsure || !certain
	s.open = s.open[1:]
	if len(s.open) == 0 {
		s.open = nil
	}
}

// seal reports whether every entry of an earlier time is applied. If so, no later one will
// have such a time. The caller's clock has reached it.
func (s *stamps) seal(at stamp) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsure {
		return false
	}
	for _, o := range s.open {
		// One of another epoch does not move the state machine's clock.
		if o.epoch != at.epoch || o.ms < at.ms {
			return false
		}
	}
	if at.epoch != s.sealed.epoch || at.ms > s.sealed.ms {
		s.sealed = at
	}
	return true
}
