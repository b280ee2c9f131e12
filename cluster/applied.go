package cluster

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// progress lets reads wait until the state holds all that is committed. The
// leader commits an entry a moment before it has applied it, and a follower may
// be faster: without the wait, who read there would see the past here.
type progress struct {
	// applied is the index of the last entry that the state holds.
	applied func() uint64
	// entry reads the log. Not every entry reaches the state: those by which
	// Raft begins a term do not.
	entry func(index uint64, out *raft.Log) error

	mu   sync.Mutex
	wake chan struct{} // nil: nobody waits
}

// came says that the state holds more than before.
func (p *progress) came() {
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

// reach blocks until the state holds every entry up to index that it will ever
// hold, or ctx ends.
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

// holds reports whether the entries after the last applied one, up to index, are
// all of the kind that never reaches the state.
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
