package fsm

import (
	"fmt"
	"slices"
)

// windowFirstRun is how many places a window reads from the store at first: few,
// so that a store of many topics opens fast. Each further read doubles it, up to half
// of the window's capacity.
const windowFirstRun = 16

// window is the head of one ordered list, in memory; doc.go explains why.
//
// Invariant: as of the running transaction, the window holds every place of the list
// that is below bound, in order, and no other.
type window struct {
	// places[start:] is the window. The space before start was left by removals at the
	// head and is reused.
	places []place
	start  int
	// complete: the window is the whole list, and bound has no meaning.
	complete bool
	bound    place
	run      int // places to read next time
	// capacity bounds the places; beyond it the later half is dropped. At least 2.
	capacity int
	// changes are those of the running transaction that a read of the list must merge,
	// because the store does not have them yet: every removal, and every place that was
	// set at or above bound. The last change to a place counts.
	changes []change
}

type change struct {
	place
	removed bool
}

func (w *window) live() []place { return w.places[w.start:] }

func (w *window) len() int { return len(w.places) - w.start }

// covers reports whether p, if the list has it, is in the window.
func (w *window) covers(p place) bool { return w.complete || p.compare(w.bound) < 0 }

// insert adds p, which the list does not have.
func (w *window) insert(p place) {
	if !w.covers(p) {
		w.changes = append(w.changes, change{place: p})
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
	if w.len() > w.capacity {
		w.trim(w.capacity / 2)
	}
}

// compact moves the window to the front of its memory instead of growing it, if at least
// half of the memory is free.
func (w *window) compact() {
	if len(w.places) < cap(w.places) || w.start < len(w.places)/2 || w.start == 0 {
		return
	}
	n := copy(w.places, w.live())
	w.places, w.start = w.places[:n], 0
}

// trim keeps the first n places and drops the rest.
func (w *window) trim(n int) {
	live := w.live()
	if len(live) <= n {
		return
	}
	// The store may not have them yet; merge drops those that it has.
	for _, p := range live[n:] {
		w.changes = append(w.changes, change{place: p})
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

// remove removes p, which the list has.
func (w *window) remove(p place) error {
	w.changes = append(w.changes, change{place: p, removed: true})
	if !w.covers(p) {
		return nil
	}
	i := w.search(p)
	at := w.start + i
	if at == len(w.places) || w.places[at].compare(p) != 0 {
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
func (w *window) search(p place) int {
	live := w.live()
	// Most new places are the last: due instants, deadlines and ranks grow.
	if len(live) == 0 || live[len(live)-1].compare(p) < 0 {
		return len(live)
	}
	i, _ := slices.BinarySearchFunc(live, p, place.compare)
	return i
}

// has reports whether the list has p, if that is known without a read of the store.
func (w *window) has(p place) (found, known bool) {
	if w.covers(p) {
		i := w.search(p)
		return i < w.len() && w.live()[i].compare(p) == 0, true
	}
	for i := len(w.changes) - 1; i >= 0; i-- {
		if w.changes[i].compare(p) == 0 {
			return !w.changes[i].removed, true
		}
	}
	return false, false
}

// emptied is called when the list is empty: then the window is complete without a read
// past the tombstones.
func (w *window) emptied() {
	w.places, w.start = w.places[:0], 0
	w.complete = true
}

// reader returns the places of a stored list, in order.
type reader interface {
	next() (p place, ok bool, err error)
}

// load fills an empty window with the next run, from bound on. list is the length of the
// whole list; from opens the stored list at a place.
func (w *window) load(list uint64, from func(place) (reader, func() error, error)) (err error) {
	run := min(max(w.run, windowFirstRun), w.capacity/2)
	w.run = 2 * run
	r, done, err := from(w.bound)
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
			w.bound = w.places[run-1].next()
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

// pending returns the net changes at or above bound: the places set, in order, and the
// places removed, as a map because each place of the store is looked up in it.
func (w *window) pending() (set []place, removed map[place]bool) {
	if len(w.changes) == 0 {
		return nil, nil
	}
	removed = make(map[place]bool)
	for _, c := range w.changes {
		if w.covers(c.place) {
			continue
		}
		key := c.place
		key.carried = 0
		removed[key] = c.removed
		if !c.removed {
			set = append(set, c.place)
		}
	}
	set = slices.DeleteFunc(set, func(p place) bool {
		p.carried = 0
		return removed[p]
	})
	slices.SortStableFunc(set, place.compare)
	return set, removed
}

// merge reads the stored and the pending places as one ordered list.
type merge struct {
	stored  reader
	set     []place // sorted; may repeat a place, the last counts
	removed map[place]bool
	head    place // the next stored place, if hasHead
	hasHead bool
	ended   bool // of the stored list
}

func (m *merge) next() (place, bool, error) {
	if err := m.advance(); err != nil {
		return place{}, false, err
	}
	switch {
	case len(m.set) == 0 && !m.hasHead:
		return place{}, false, nil
	case len(m.set) == 0 || (m.hasHead && m.head.compare(m.set[0]) < 0):
		m.hasHead = false
		return m.head, true, nil
	}
	p := m.set[0]
	for len(m.set) > 0 && m.set[0].compare(p) == 0 {
		p, m.set = m.set[0], m.set[1:]
	}
	if m.hasHead && m.head.compare(p) == 0 {
		m.hasHead = false
	}
	return p, true, nil
}

// advance reads the next stored place that was not removed into head.
func (m *merge) advance() error {
	for !m.hasHead && !m.ended {
		p, ok, err := m.stored.next()
		if err != nil {
			return err
		}
		if !ok {
			m.ended = true
			return nil
		}
		key := p
		key.carried = 0
		m.head, m.hasHead = p, !m.removed[key]
	}
	return nil
}

// changesKept bounds the memory that a window keeps after a large transaction.
const changesKept = 256

// committed is called when the store has all changes.
func (w *window) committed() {
	if cap(w.changes) > changesKept {
		w.changes = nil
	}
	w.changes = w.changes[:0]
}
