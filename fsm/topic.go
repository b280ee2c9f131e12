package fsm

import (
	"container/heap"

	"tarry/job/jobpb"
)

// topicKeepMS is how long, on the FSM clock, a topic without jobs is kept, with
// its totals. Then an Advance drops it.
const topicKeepMS = 60 * 60 * 1000

// topic is a topic in memory: its record, and the heads of its lists.
type topic struct {
	topicRecord
	name     string
	windows  [listCount]window    // by list
	settings *jobpb.TopicSettings // nil: none; never changed, only replaced
	limits   *limits              // those in the settings; nil: none

	// dirty: the record or a head changed since the transaction last settled.
	dirty bool
	// touched: the record changed in the transaction and must be written.
	touched bool
	dropped bool
	seen    uint64 // the last Reserve that named the topic
	held    int    // places in its windows, as memory.held counts them

	next     int64 // the instant at which the topic next needs an Advance; 0: never
	position int   // in the due heap; -1: not there
}

// keptUntil is when a topic without jobs is dropped. Its bucket is full then, as
// that of a new one.
func (t *topic) keptUntil() int64 {
	end := t.emptySince + topicKeepMS
	if t.bucket != nil {
		end = max(end, t.limits.rate.until(t.bucket, t.limits.rate.burst))
	}
	return end
}

func (t *topic) list(state jobpb.State) listID { return listID{topic: t.number, state: state} }

// soonMax bounds TopicChange.Soon: as many jobs as often fall due at once.
const soonMax = 16

// soon is TopicChange.Soon. A pause or a limit makes it nobody's guess what a
// Reserve gets at those instants.
func (t *topic) soon() []int64 {
	live := t.windows[jobpb.State_STATE_DELAYED].live()
	if len(live) == 0 || t.paused() || t.limits != nil {
		return nil
	}
	instants := make([]int64, min(len(live), soonMax))
	for i := range instants {
		instants[i] = live[i].instant
	}
	return instants
}

// dueHeap orders the topics that need an Advance some day by that instant, then
// by number: an order that depends on nothing but the state.
type dueHeap []*topic

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	if h[i].next != h[j].next {
		return h[i].next < h[j].next
	}
	return h[i].number < h[j].number
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

// set gives t its next instant and its place in the heap.
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

// earliest is the smallest next instant of all topics; 0: none.
func (h dueHeap) earliest() int64 {
	if len(h) == 0 {
		return 0
	}
	return h[0].next
}
