package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/job"
)

// The state's store has no log of its own. After a crash it has the state of its last flush, and
// Raft applies the entries after that again once a leader says that they are committed. Until
// then the state is older than what this node has shown to clients before the crash, so it is
// not shown: a client that stays with a node never sees an older state.

// replay knows whether the state of this node is at least as new as any that the node had before
// it started. Whatever it had applied was committed and in its log, so it is once all is applied
// that the log had at the start, and that no leader has truncated since: a committed entry is
// never truncated.
//
// One change of the state is not an entry: a leader lets take effect at its instant what it has
// committed ahead (see ahead). Only the leader of the entry's term does. So that term must have
// another leader, or the effect must be there.
type replay struct {
	log     func(index uint64, out *raft.Log) error
	applied func() uint64
	// effects returns the term of the entries whose effects wait for their instants; 0: none waits.
	effects func() uint64
	// started is Raft's term at the start. This node leads only in later ones from now on.
	started uint64

	over chan struct{} // closed once it is known

	mu    sync.Mutex
	until uint64 // the last entry to apply
	other bool   // the term started has another leader
}

// newReplay is called before Raft starts. last is the last entry of the log.
func newReplay(last, term uint64, log func(uint64, *raft.Log) error, applied, effects func() uint64) *replay {
	r := &replay{log: log, applied: applied, effects: effects, started: term, over: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lower(last)
	r.check()
	return r
}

// lower sets until to the last entry up to index that will be applied: those by which Raft begins
// a term never are. It is called with r.mu held.
func (r *replay) lower(index uint64) {
	for ; index > r.applied(); index-- {
		var entry raft.Log
		if r.log(index, &entry) != nil || entry.Type == raft.LogCommand || entry.Type == raft.LogConfiguration {
			break
		}
	}
	r.until = index
}

// check is called with r.mu held.
func (r *replay) check() {
	if r.isOver() || r.applied() < r.until {
		return
	}
	if term := r.effects(); term == 0 || term > r.started || term == r.started && r.other {
		close(r.over)
	}
}

func (r *replay) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// advanced is called when the state has changed.
func (r *replay) advanced() {
	if r.isOver() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check()
}

// truncated is called when the log has lost the entries from first to last.
func (r *replay) truncated(first, last uint64) {
	if r.isOver() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Its beginning is dropped only up to what is applied.
	if last >= r.until && first <= r.until {
		r.lower(first - 1)
		r.check()
	}
}

// led is called when a term has a leader.
func (r *replay) led(term uint64) {
	if r.isOver() || term != r.started {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other = true
	r.check()
}

// progress returns how far the state is, and how far it must come.
func (r *replay) progress() (applied, until uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied(), r.until
}

// why returns the reason why this node's state is not shown; empty: it is.
func (r *replay) why() string {
	if r.isOver() {
		return ""
	}
	applied, until := r.progress()
	return fmt.Sprintf("since its start the node has not applied its log again up to where it may have been before, entry %d; it is at entry %d, and a leader must tell it what is committed. Until then its own state would be older than what it has shown", until, applied)
}

// await blocks until the state may be shown, or until ctx or limit ends.
func (r *replay) await(ctx context.Context, limit time.Duration) error {
	if r.isOver() {
		return nil
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-r.over:
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	if why := r.why(); why != "" {
		return job.NotApplied("%s; use another node, or try again", why)
	}
	return nil
}

// replayLog is a log that reports to a replay what it loses.
type replayLog struct {
	raft.LogStore
	replay *replay
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l replayLog) IsMonotonic() bool {
	m, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// DeleteRange implements raft.LogStore.
func (l replayLog) DeleteRange(first, last uint64) error {
	err := l.LogStore.DeleteRange(first, last)
	if err == nil {
		l.replay.truncated(first, last)
	}
	return err
}

// shown returns nil once this node's own state may be shown to clients.
func (s *Shard) shown(ctx context.Context) error {
	return s.replay.await(ctx, s.cfg.HoldTime)
}

// isShown is shown without a wait.
func (s *Shard) isShown() bool { return s.replay.isOver() }
