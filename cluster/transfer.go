package cluster

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/leaderrpc"
)

// Raft ends a transfer of leadership within an election timeout. But after an interrupted
// transfer its state may stay "in progress" forever (raft issue 696): if the node is
// elected again it leads and refuses every write. Only a restart of the process helps;
// another node leads until then.

// transferLimit is how long Raft may refuse writes because of a transfer.
const transferLimit = 10 * time.Second

// transferGap ends a series of refusals: two that are further apart belong to two
// transfers.
const transferGap = 3 * time.Second

var errTransferNeverEnds = errors.New("a transfer of leadership that never ends")

// transfers detects a transfer that never ends.
type transfers struct {
	mu          sync.Mutex
	first, last time.Time // of the present series of refusals
}

// record records the outcome of an entry. It returns an error once Raft has refused writes
// for too long.
func (t *transfers) record(outcome error, now time.Time) error {
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
		return fmt.Errorf("this node leads, and has refused all writes for %v because of %w: the process must be restarted", d.Round(time.Second), errTransferNeverEnds)
	}
	return nil
}

// transfer transfers leadership to another voter. It blocks until that is done.
func (s *Shard) transfer() error {
	err := s.raft.LeadershipTransfer().Error()
	if errors.Is(err, raft.ErrNotLeader) {
		return nil
	}
	return err
}

// committed handles the outcome of an entry of this leader.
func (s *Shard) committed(took time.Duration, ofRaft, err error) {
	if stuck := s.transfers.record(ofRaft, time.Now()); stuck != nil {
		s.fatal(stuck)
	}
	s.metrics.commit(took, err)
	s.stamps.end(err == nil || err == leaderrpc.ErrNotLeader)
	if l := s.leadership.Load(); l != nil {
		l.ahead.applied()
	}
}
