package fsm

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job"
)

// Watch follows reservations until they end, in any way. It is not part of the state:
// it observes what this node commits. On a node that lags it reports an end late, but
// never wrongly. Its methods may be called from any goroutine.
type Watch struct {
	m    *Machine
	wake chan struct{} // holds one

	// Guarded by m.watches.mu.
	open  map[job.Token]struct{}
	ended []job.Token
}

// watches are the reservations that are followed, by the seq of their job.
//
// No end is missed: Add first registers a reservation and then reads the state, while a
// commit first changes the state and then reads the registrations.
type watches struct {
	count atomic.Int64 // of all reservations; at 0 a commit needs no lock

	mu    sync.Mutex
	bySeq map[uint64][]watched
}

// watched is one reservation of a job that one Watch follows.
type watched struct {
	generation uint32
	by         *Watch
}

// Watch returns an empty watch. Close it.
func (m *Machine) Watch() *Watch { return m.WatchWith(make(chan struct{}, 1)) }

// WatchWith is Watch for one that wakes by a channel that others share. It holds one.
func (m *Machine) WatchWith(wake chan struct{}) *Watch {
	return &Watch{m: m, wake: wake, open: map[job.Token]struct{}{}}
}

// Watching returns the number of reservations that all watches follow.
func (m *Machine) Watching() int { return int(m.watches.count.Load()) }

// Add follows more reservations of this shard. Those that are over already are
// reported like others. One that this node has yet to apply is followed from its start.
func (w *Watch) Add(reservations []job.Token) error {
	all := &w.m.watches
	seqs := make([]uint64, 0, len(reservations))
	all.mu.Lock()
	for _, t := range reservations {
		t.Shard = w.m.options.Shard
		if _, there := w.open[t]; !there {
			w.open[t] = struct{}{}
			all.add(t, w)
			seqs = append(seqs, t.Seq)
		}
	}
	all.mu.Unlock()
	v := w.m.View()
	err := w.m.endWatched(v, seqs)
	if errors.Is(err, view.ErrEnded) {
		err = nil // Install rechecks all that is registered
	}
	return errors.Join(err, v.Close())
}

// Wake receives after reservations have ended, once for any number of them.
func (w *Watch) Wake() <-chan struct{} { return w.wake }

// Take returns the reservations that have ended since the last call, each once.
func (w *Watch) Take() []job.Token {
	w.m.watches.mu.Lock()
	defer w.m.watches.mu.Unlock()
	ended := w.ended
	w.ended = nil
	return ended
}

// Close ends the watch.
func (w *Watch) Close() {
	all := &w.m.watches
	all.mu.Lock()
	defer all.mu.Unlock()
	for t := range w.open {
		all.remove(t, w)
	}
	w.open, w.ended = nil, nil
}

// endWatched notifies the watches of the reservations of these jobs that have ended as of
// the view.
func (m *Machine) endWatched(v *view.View, seqs []uint64) error {
	for _, seq := range seqs {
		var rec *record.Job
		var next uint64
		err := v.With(func(r pebble.Reader) (err error) {
			if rec, err = record.ReadJob(r, seq, false); err != nil || rec != nil {
				return err
			}
			meta, err := record.ReadMeta(r)
			next = meta.State.NextSeq
			return err
		})
		if err != nil {
			return err
		}
		if rec == nil && seq >= next {
			continue // this node has yet to apply its add
		}
		m.watches.mu.Lock()
		m.watches.endPast(seq, rec)
		m.watches.mu.Unlock()
	}
	return nil
}

// notifyWatches notifies the watches of what the transaction has ended. It is called
// after the commit and does not block.
func (x *tx) notifyWatches() {
	all := &x.m.watches
	if all.count.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for seq, rec := range x.jobs {
		if rec.Gone {
			rec = nil
		}
		all.endPast(seq, rec)
	}
}

// recheckWatches checks every watched reservation, after the state was replaced.
func (m *Machine) recheckWatches() error {
	m.watches.mu.Lock()
	seqs := make([]uint64, 0, len(m.watches.bySeq))
	for seq := range m.watches.bySeq {
		seqs = append(seqs, seq)
	}
	m.watches.mu.Unlock()
	if len(seqs) == 0 {
		return nil
	}
	v := m.View()
	return errors.Join(m.endWatched(v, seqs), v.Close())
}

// The methods below are called with the lock held.

// endPast ends the watched reservations of a job that are over; rec is nil when the job is
// gone.
func (all *watches) endPast(seq uint64, rec *record.Job) {
	list := all.bySeq[seq]
	if list == nil {
		return
	}
	all.keep(seq, slices.DeleteFunc(list, func(e watched) bool {
		if rec != nil && !rec.IsPast(e.generation) {
			return false
		}
		t := job.Token{Shard: e.by.m.options.Shard, Seq: seq, Generation: e.generation}
		delete(e.by.open, t)
		e.by.ended = append(e.by.ended, t)
		select {
		case e.by.wake <- struct{}{}:
		default: // a wake-up is pending already
		}
		return true
	}))
}

func (all *watches) add(t job.Token, w *Watch) {
	if all.bySeq == nil {
		all.bySeq = map[uint64][]watched{}
	}
	all.count.Add(1)
	all.bySeq[t.Seq] = append(all.bySeq[t.Seq], watched{t.Generation, w})
}

func (all *watches) remove(t job.Token, w *Watch) {
	all.keep(t.Seq, slices.DeleteFunc(all.bySeq[t.Seq], func(e watched) bool { return e == watched{t.Generation, w} }))
}

// keep replaces a job's list by a shorter one, made from it.
func (all *watches) keep(seq uint64, left []watched) {
	all.count.Add(int64(len(left) - len(all.bySeq[seq])))
	if len(left) == 0 {
		delete(all.bySeq, seq)
		return
	}
	all.bySeq[seq] = left
}
