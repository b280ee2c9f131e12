package fsm

import (
	"container/heap"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/fsm/internal/window"
	"tarry/job/jobpb"
)

// storedList opens a list of the store.
func storedList(db *pebble.DB, id record.ListID) window.Source {
	return func(from record.Place) (window.Reader, func() error, error) {
		s, err := record.PlacesFrom(db, id, from)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
}

// advance first continues a reset of the clock (setJobsBack) and the walk over headers
// (walkHeaders). Then it
// moves jobs whose instant has come: delayed jobs become ready, reservations expire,
// and retained jobs are removed. It also ends pauses, adds jobs to the expiring list,
// and drops topics that have been empty for long enough.
//
// Every namespace gets the same share of max, and in it every topic that is due, so that one with
// a million due jobs does not delay the others. What is in no namespace is one more. If more than max topics are due, those with the
// earliest instants are processed.
func (x *tx) advance(op *jobpb.Advance, r *jobpb.Result) error {
	if err := x.setJobsBack(op.Max); err != nil {
		return err
	}
	if err := x.walkHeaders(max(1, op.Max/walkShare)); err != nil {
		return err
	}
	if err := x.refreshHeads(); err != nil {
		return err
	}
	h := &x.m.due
	var due []*topic
	for uint32(len(due)) < op.Max && h.Len() > 0 && (*h)[0].next <= x.clock() {
		due = append(due, heap.Pop(h).(*topic))
	}
	// Popped topics return to the heap (refreshHeads), changed or not.
	for _, t := range due {
		x.touch(t)
	}
	var moved uint32
	for left := op.Max; left > 0 && len(due) > 0; {
		share := max(1, left/uint32(len(due)))
		tenants := x.shareByNamespace(due, left)
		still := due[:0]
		for _, t := range due {
			if tenants != nil {
				if share = tenants.take(t); share == 0 {
					still = append(still, t)
					continue
				}
			}
			n, err := x.advanceTopic(op, t, min(share, left), &moved)
			if err != nil {
				return err
			}
			left -= n
			if n == share {
				still = append(still, t)
			}
		}
		due = still
	}
	if err := x.refreshHeads(); err != nil {
		return err
	}
	r.Count = moved
	r.More = x.m.meta.Reset.UnderWay() || x.m.meta.Walk.UnderWay() || h.Len() > 0 && (*h)[0].next <= x.clock()
	return nil
}

// advanceShares is what is left for each namespace in a round of an Advance.
type advanceShares map[*namespace]*advanceShare

type advanceShare struct{ topics, topic, left uint32 }

// shareByNamespace divides most between the namespaces that have topics among due; nil: there
// are no namespaces.
func (x *tx) shareByNamespace(due []*topic, most uint32) advanceShares {
	if len(x.m.namespaces) == 0 {
		return nil
	}
	shares := make(advanceShares)
	for _, t := range due {
		if shares[t.namespace] == nil {
			shares[t.namespace] = new(advanceShare)
		}
		shares[t.namespace].topics++
	}
	for _, s := range shares {
		s.left = max(1, most/uint32(len(shares)))
		s.topic = max(1, s.left/s.topics)
	}
	return shares
}

// take returns the share of a topic; 0: those before it had all of its namespace.
func (a advanceShares) take(t *topic) uint32 {
	s := a[t.namespace]
	share := min(s.topic, s.left)
	s.left -= share
	return share
}

// advanceTopic does up to share of what is due in a topic, in the order of the instants,
// and returns how much it did. moved counts the jobs among it, except retained ones that
// are removed. The rest of the share adds jobs to the expiring list.
func (x *tx) advanceTopic(op *jobpb.Advance, t *topic, share uint32, moved *uint32) (done uint32, err error) {
	if share > 0 && t.Paused() && t.PausedUntil <= x.clock() {
		t.resume()
		done++
	}
	if done < share && t.Jobs() == 0 && !t.dropped && t.keptUntil() <= x.clock() {
		x.dropTopic(t)
		return done + 1, nil
	}
	for ; done < share; done++ {
		p, list, err := x.firstDue(t)
		if err != nil {
			return done, err
		}
		switch list {
		case record.ListNone:
			n, err := x.indexExpiry(t, share-done)
			return done + n, err
		case record.ListEnded:
			if err := x.dropRetained(t, p.Seq); err != nil {
				return done, err
			}
			continue
		case record.ListDelayed:
			err = x.fallDue(t, p)
		case record.ListReserved:
			err = x.timeOut(t, p.Seq, op.Entropy)
		default:
			err = x.expireNext(t, list, p)
		}
		if err != nil {
			return done, err
		}
		*moved++
	}
	return done, nil
}

// firstDue returns the due place with the earliest instant, and its list; ListNone: none is
// due. At one instant a delayed job comes first, then a reserved one, then a retained one,
// then one that expires by its topic's settings, then one by its own.
func (x *tx) firstDue(t *topic) (first record.Place, list record.List, err error) {
	var at int64
	for _, l := range [...]record.List{record.ListDelayed, record.ListReserved, record.ListEnded, record.ListExpiring, record.ListDeadline} {
		var after int64
		if l == record.ListExpiring {
			if after = t.settings.GetExpireMs(); after == 0 {
				continue
			}
		}
		p, ok, err := x.head(t, l)
		if err != nil {
			return record.Place{}, record.ListNone, err
		}
		if due := p.Instant + after; ok && due <= x.clock() && (list == record.ListNone || due < at) {
			first, list, at = p, l, due
		}
	}
	return first, list, nil
}

// fallDue makes a delayed job ready. Its phase is PhaseWaiting before and after, so only
// the index changes.
func (x *tx) fallDue(t *topic, p record.Place) error {
	if err := x.removePlace(t, record.ListDelayed, p); err != nil {
		return err
	}
	x.addToLists(t, record.ListReady, record.Place{Priority: p.Carried, Instant: p.Instant, Seq: p.Seq})
	return nil
}

// dueHeap has the topics that need an Advance, by its instant and then by number: an
// order that depends on the state alone.
type dueHeap []*topic

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if h[i].next != h[j].next {
		return h[i].next < h[j].next
	}
	return h[i].Number < h[j].Number
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *dueHeap) Push(x any) {
	t := x.(*topic)
	t.position = len(*h)
	*h = append(*h, t)
}

func (h *dueHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.position = -1
	return t
}

// set sets the next instant of t; 0 removes t from the heap.
func (h *dueHeap) set(t *topic, next int64) {
	if t.position >= 0 && next == t.next {
		return
	}
	t.next = next
	switch {
	case next == 0 && t.position >= 0:
		heap.Remove(h, t.position)
	case next == 0:
	case t.position >= 0:
		heap.Fix(h, t.position)
	default:
		heap.Push(h, t)
	}
}

// earliest returns the smallest next instant of all topics; 0: none.
func (h dueHeap) earliest() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[0].next
}
