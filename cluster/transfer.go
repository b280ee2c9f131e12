package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Raft ends a transfer of leadership within an election timeout, but a transfer
// that is interrupted may leave it believing for ever that one is in progress
// (raft issue 696): elected again, the node leads, and refuses every write. Only a
// new process helps. Another node leads meanwhile.

// transferLimit is how long refusals because of a transfer are believed.
const transferLimit = 10 * time.Second

// transferGap ends a series of refusals: two that lie further apart are of two
// transfers.
const transferGap = 3 * time.Second

// transfers watches for a transfer that never ends.
type transfers struct {
	mu          sync.Mutex
	first, last time.Time // of the present series of refusals
}

// saw takes in the outcome of an entry, and is an error when refusals have gone
// on for too long.
func (t *transfers) saw(outcome error, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !errors.Is(outcome, raft.ErrLeadershipTransferInProgress) {
		t.first = time.Time{}
		return nil
	}
	if t.first.IsZero() || now.Sub(t.last) > transferGap {
		t.first = now
	}
	t.last = now
	if d := now.Sub(t.first); d > transferLimit {
		return fmt.Errorf("this node leads, and has refused all writes for %v because of a transfer of leadership that never ends: the process must start again", d.Round(time.Second))
	}
	return nil
}

// transfer hands leadership to another voter and blocks until that is done.
func (s *Shard) transfer() error {
	err := s.raft.LeadershipTransfer().Error()
	if errors.Is(err, raft.ErrNotLeader) {
		return nil
	}
	return err
}

// committed takes in the outcome of an entry of this leader.
func (s *Shard) committed(took time.Duration, ofRaft, err error) {
	if stuck := s.transfers.saw(ofRaft, time.Now()); stuck != nil {
		s.fatal(stuck)
	}
	s.metrics.commit(took, err)
}
