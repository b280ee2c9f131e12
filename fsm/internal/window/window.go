// Package window keeps the head of an ordered list in memory, so that a queue that deletes
// where it reads does not pass its own tombstones.
//
// In an LSM tree each deletion leaves a tombstone until a compaction removes it. A search
// for the head of a long-used queue, from its beginning, passes all of them: the cost of a
// job grows with the number of jobs done. A window has every place of its list below a
// bound, and none above. What is inserted below the bound goes to memory and to the batch,
// the rest to the batch alone. A full window drops its later half and lowers the bound. An
// empty one reads its next run from the store, from the bound and never from the beginning,
// so each tombstone is passed about once. If the list's count is zero the window is
// complete without a read. A run may be needed in the middle of a transaction, when the
// store lacks the changes so far. Therefore the window keeps those until the commit and
// merges them with what it reads.
//
// A window is a cache only: dropping it changes no result.
package window

import (
	"errors"
	"fmt"
	"slices"

	"tarry/fsm/internal/record"
)

// windowFirstRun is how many places a window reads from the store at first: few,
// so that a store of many topics opens fast. Each further read doubles it, up to half
// of the window's capacity.
const windowFirstRun = 16

// Window is the head of one ordered list, in memory; fsm/doc.go explains why.
//
// Invariant: as of the running transaction, the window holds every place of the list
// that is below bound, in order, and no other.
type Window struct {
	// places[start:] is the window. The space before start was left by removals at the
	// head and is reused.
	places []record.Place
	start  int
	// complete: the window is the whole list, and bound has no meaning.
	complete bool
	bound    record.Place
	run      int // places to read next time
	// Capacity bounds the places; beyond it the later half is dropped. At least 2.
	Capacity int
	// changes are those of the running transaction that a read of the list must merge,
	// because the store does not have them yet: every removal, and every place that was
	// set at or above bound. The last change to a place counts.
	changes []change
}

// New returns the window of a list of which nothing is read yet. whole: the list is
// empty. head is its first place.
func New(whole bool, head record.Place, capacity int) Window {
	return Window{complete: whole, bound: head, Capacity: capacity}
}

type change struct {
	record.Place
	removed bool
}

func (w *Window) Live() []record.Place { return w.places[w.start:] }

func (w *Window) Len() int { return len(w.places) - w.start }

// Covers reports whether p, if the list has it, is in the window.
func (w *Window) Covers(p record.Place) bool { return w.complete || p.Compare(w.bound) < 0 }

// Insert adds p, which the list does not have.
func (w *Window) Insert(p record.Place) {
	if !w.Covers(p) {
		w.changes = append(w.changes, change{Place: p})
		return
	}
	at := w.start + w.search(p)
	switch {
	case at == len(w.places):
		w.compact()
		w.places = append(w.places, p)
	case w.start > 0 && at-w.start < len(w.places)-at:
		copy(w.places[w.start-1:], w.places[w.start:at])
		w.start--
		w.places[at-1] = p
	default:
		w.places = slices.Insert(w.places, at, p)
	}
	if w.Len() > w.Capacity {
		w.Trim(w.Capacity / 2)
	}
}

// compact moves the window to the front of its memory instead of growing it, if at least
// half of the memory is free.
func (w *Window) compact() {
	if len(w.places) < cap(w.places) || w.start < len(w.places)/2 || w.start == 0 {
		return
	}
	n := copy(w.places, w.Live())
	w.places, w.start = w.places[:n], 0
}

// Trim keeps the first n places and drops the rest.
func (w *Window) Trim(n int) {
	live := w.Live()
	if len(live) <= n {
		return
	}
	// The store may not have them yet; merge drops those that it has.
	for _, p := range live[n:] {
		w.changes = append(w.changes, change{Place: p})
	}
	w.bound = live[n]
	w.complete = false
	w.run = n
	if cap(w.places) > 4*n {
		w.places, w.start = slices.Clone(live[:n]), 0
		return
	}
	w.places = w.places[:w.start+n]
}

// Remove removes p, which the list has.
func (w *Window) Remove(p record.Place) error {
	w.changes = append(w.changes, change{Place: p, removed: true})
	if !w.Covers(p) {
		return nil
	}
	i := w.search(p)
	at := w.start + i
	if at == len(w.places) || w.places[at].Compare(p) != 0 {
		return fmt.Errorf("place %+v is missing from its list", p)
	}
	if i < len(w.places)-at {
		copy(w.places[w.start+1:], w.places[w.start:at])
		w.start++
		return nil
	}
	w.places = slices.Delete(w.places, at, at+1)
	return nil
}

// search returns the index, within live, of the first place not below p.
func (w *Window) search(p record.Place) int {
	live := w.Live()
	// Most new places are the last: due instants, deadlines and ranks grow.
	if len(live) == 0 || live[len(live)-1].Compare(p) < 0 {
		return len(live)
	}
	i, _ := slices.BinarySearchFunc(live, p, record.Place.Compare)
	return i
}

// Has reports whether the list has p, if that is known without a read of the store.
func (w *Window) Has(p record.Place) (found, known bool) {
	if w.Covers(p) {
		i := w.search(p)
		return i < w.Len() && w.Live()[i].Compare(p) == 0, true
	}
	for i := len(w.changes) - 1; i >= 0; i-- {
		if w.changes[i].Compare(p) == 0 {
			return !w.changes[i].removed, true
		}
	}
	return false, false
}

// Emptied is called when the list is empty: then the window is complete without a read
// past the tombstones.
func (w *Window) Emptied() {
	w.places, w.start = w.places[:0], 0
	w.complete = true
}

// Reader returns the places of a stored list, in order.
type Reader interface {
	Next() (p record.Place, ok bool, err error)
}

// Source opens a stored list at a place. The function that it returns ends the read.
type Source func(from record.Place) (Reader, func() error, error)

// Load fills an empty window with the next run, from bound on. list is the length of the
// whole list.
func (w *Window) Load(list uint64, open Source) (err error) {
	run := min(max(w.run, windowFirstRun), w.Capacity/2)
	w.run = 2 * run
	r, done, err := open(w.bound)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := done(); err == nil {
			err = cerr
		}
	}()
	set, removed := w.pending()
	m := merge{stored: r, set: set, removed: removed}
	w.places, w.start = w.places[:0], 0
	for {
		if uint64(len(w.places)) == list {
			w.complete = true
			return nil
		}
		if len(w.places) == run {
			w.bound = w.places[run-1].Next()
			return nil
		}
		p, ok, err := m.next()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("list has %d places from %+v on, but its count is %d", len(w.places), w.bound, list)
		}
		w.places = append(w.places, p)
	}
}

// Walk calls f for the places of the list that are not before from, as of the running
// transaction, until f returns false.
func (w *Window) Walk(from record.Place, open Source, f func(record.Place) bool) error {
	for _, p := range w.Live()[w.search(from):] {
		if !f(p) {
			return nil
		}
	}
	if w.complete {
		return nil
	}
	if from.Compare(w.bound) < 0 {
		from = w.bound
	}
	stored, done, err := open(from)
	if err != nil {
		return err
	}
	set, removed := w.pending()
	m := merge{stored: stored, set: set, removed: removed}
	for {
		p, ok, err := m.next()
		if err != nil || !ok || p.Compare(from) >= 0 && !f(p) {
			return errors.Join(err, done())
		}
	}
}

// pending returns the net changes at or above bound: the places set, in order, and the
// places removed, as a map because each place of the store is looked up in it.
func (w *Window) pending() (set []record.Place, removed map[record.Place]bool) {
	if len(w.changes) == 0 {
		return nil, nil
	}
	removed = make(map[record.Place]bool)
	for _, c := range w.changes {
		if w.Covers(c.Place) {
			continue
		}
		key := c.Place
		key.Carried = 0
		removed[key] = c.removed
		if !c.removed {
			set = append(set, c.Place)
		}
	}
	set = slices.DeleteFunc(set, func(p record.Place) bool {
		p.Carried = 0
		return removed[p]
	})
	slices.SortStableFunc(set, record.Place.Compare)
	return set, removed
}

// merge reads the stored and the pending places as one ordered list.
type merge struct {
	stored  Reader
	set     []record.Place // sorted; may repeat a place, the last counts
	removed map[record.Place]bool
	head    record.Place // the next stored place, if hasHead
	hasHead bool
	ended   bool // of the stored list
}

func (m *merge) next() (record.Place, bool, error) {
	if err := m.advance(); err != nil {
		return record.Place{}, false, err
	}
	switch {
	case len(m.set) == 0 && !m.hasHead:
		return record.Place{}, false, nil
	case len(m.set) == 0 || (m.hasHead && m.head.Compare(m.set[0]) < 0):
		m.hasHead = false
		return m.head, true, nil
	}
	p := m.set[0]
	for len(m.set) > 0 && m.set[0].Compare(p) == 0 {
		p, m.set = m.set[0], m.set[1:]
	}
	if m.hasHead && m.head.Compare(p) == 0 {
		m.hasHead = false
	}
	return p, true, nil
}

// advance reads the next stored place that was not removed into head.
func (m *merge) advance() error {
	for !m.hasHead && !m.ended {
		p, ok, err := m.stored.Next()
		if err != nil {
			return err
		}
		if !ok {
			m.ended = true
			return nil
		}
		key := p
		key.Carried = 0
		m.head, m.hasHead = p, !m.removed[key]
	}
	return nil
}

// changesKept bounds the memory that a window keeps after a large transaction.
const changesKept = 256

// Committed is called when the store has all changes.
func (w *Window) Committed() {
	if cap(w.changes) > changesKept {
		w.changes = nil
	}
	w.changes = w.changes[:0]
}

// Settled reports whether the store has all changes.
func (w *Window) Settled() bool { return len(w.changes) == 0 }
