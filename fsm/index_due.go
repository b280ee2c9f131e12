package fsm

import "container/heap"

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
