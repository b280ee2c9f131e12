package cluster

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// progress lets reads wait until all committed entries are applied. The leader commits an
// entry before it applies it, and a follower may apply it earlier. Without the wait a
// client could read a newer state on a follower and then an older one on the leader.
type progress struct {
	// applied returns the index of the last applied entry.
	applied func() uint64
	// entry reads the log. The entries by which Raft begins a term are never applied to
	// the state.
	entry func(index uint64, out *raft.Log) error

	mu   sync.Mutex
	wake chan struct{} // closed when the state advances; nil: no reader waits
}

// advanced is called after entries were applied.
func (p *progress) advanced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	return p.wake
}

// reach blocks until the entries up to index are applied, except those that never are, or
// ctx ends.
func (p *progress) reach(ctx context.Context, index uint64) error {
	for {
		more := p.next()
		there, err := p.holds(index)
		if there || err != nil {
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// holds reports whether index is applied, or the entries after the last applied one, up to
// index, are all of the kind that is never applied.
func (p *progress) holds(index uint64) (bool, error) {
	for ; index > p.applied(); index-- {
		var entry raft.Log
		if err := p.entry(index, &entry); err != nil {
			return false, err
		}
		if entry.Type == raft.LogCommand || entry.Type == raft.LogConfiguration {
			return false, nil
		}
	}
	return true, nil
}
