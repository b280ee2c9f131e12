package dispatch

import (
	"container/list"
	"slices"

	"tarry/job/jobpb"
)

// Waiter is one reserve that waits for jobs.
type Waiter struct {
	// Reserve is what the consumer asked for. It must not change any more.
	Reserve *jobpb.Reserve
	// Poll asks for an answer at once, empty when nothing is ready.
	Poll bool
	// Done receives the outcome, exactly once, on any goroutine; it must not
	// block. An empty list with a nil error means: nothing in time (a poll) or
	// withdrawn. ErrStopped means: register with the next leader. A *job.Error
	// is the state machine's refusal; to ask again is no use.
	Done func([]*jobpb.Reserved, error)

	op     *jobpb.Op
	number uint64 // order of arrival
	state  waiterState
	places []place // one in the queue of each of its topics while waiting
	asked  []claim // jobs it counts on while a Reserve of it is under way
	gone   bool    // the consumer hung up while a Reserve was under way
}

// within is the operation of w with at most so many bytes of bodies.
func (w *Waiter) within(bytes int64) *jobpb.Op {
	r := w.Reserve
	if r.Max == 1 || r.MaxBytes > 0 && r.MaxBytes <= bytes {
		return w.op
	}
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{
		Topics: r.Topics, Max: r.Max, TtrMs: r.TtrMs, MaxBytes: bytes, Consumer: r.Consumer,
	}}}
}

type waiterState int

const (
	waiting waiterState = iota // in the queues of its topics
	busy                       // a Reserve for it is under way
	ended                      // Done was called, or is about to be
)

type place struct {
	topic *topic
	elem  *list.Element
}

type claim struct {
	topic *topic
	jobs  uint64
}

// topic is what the dispatcher knows of one topic.
type topic struct {
	name    string
	ready   uint64     // as of the last applied batch
	asked   uint64     // of these, counted on by reserves under way
	nextDue int64      // earliest instant at which something moves; 0 none
	soon    []int64    // first due instants of delayed jobs, ascending
	queue   *list.List // waiters, longest waiting first
}

func (t *topic) free() uint64 {
	if t.asked >= t.ready {
		return 0
	}
	return t.ready - t.asked
}

// due is how many jobs are known to become ready by an Advance at now.
func (t *topic) due(now int64) int {
	if t.nextDue == 0 || t.nextDue > now {
		return 0
	}
	n, _ := slices.BinarySearch(t.soon, now+1)
	return max(n, 1)
}

// idle topics are forgotten, so that memory follows what is live.
func (t *topic) idle() bool {
	return t.ready == 0 && t.asked == 0 && t.nextDue == 0 && t.queue.Len() == 0
}

// enqueue puts w into the queue of t at its place by arrival. A new waiter goes
// to the back; one whose Reserve found nothing keeps its turn.
func (t *topic) enqueue(w *Waiter) {
	for e := t.queue.Back(); e != nil; e = e.Prev() {
		if e.Value.(*Waiter).number < w.number {
			w.places = append(w.places, place{t, t.queue.InsertAfter(w, e)})
			return
		}
	}
	w.places = append(w.places, place{t, t.queue.PushFront(w)})
}
