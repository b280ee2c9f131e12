package dispatch

import (
	"slices"

	"tarry/job/jobpb"
)

// Waiter is one reserve that waits for jobs.
type Waiter struct {
	// Reserve is the consumer's request. It must not change after Add.
	Reserve *jobpb.Reserve
	// Poll requests an immediate response, empty when nothing is ready.
	Poll bool
	// Done receives the outcome, exactly once, on any goroutine; it must not block. An
	// empty list with a nil error means that nothing was ready (a poll) or that the wait
	// was canceled. ErrStopped means: register with the next leader. A *job.Error comes
	// from the state machine; retrying does not help.
	Done func([]*jobpb.Reserved, error)

	op     *jobpb.Op
	number uint64 // order of arrival
	state  waiterState
	places []place // one for each of its topics
	asked  []claim // jobs that its Reserve in flight has claimed
	gone   bool    // the consumer hung up while a Reserve was in flight
}

// reserveOp returns the operation of w with at most so many bytes of bodies. It names
// only the topics that have jobs, or will have by dueBy, because these names are in the
// log.
func (w *Waiter) reserveOp(dueBy, bytes int64) *jobpb.Op {
	r := w.Reserve
	topics := w.topicsWithJobs(dueBy)
	if r.Max == 1 || r.MaxBytes > 0 && r.MaxBytes <= bytes {
		bytes = r.MaxBytes
	}
	if len(topics) == len(r.Topics) && bytes == r.MaxBytes {
		return w.op
	}
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{
		Topics: topics, Max: r.Max, TtrMs: r.TtrMs, MaxBytes: bytes, Consumer: r.Consumer,
	}}}
}

func (w *Waiter) topicsWithJobs(dueBy int64) []string {
	count := 0
	for _, p := range w.places {
		if p.topic.hasJobs(dueBy) {
			count++
		}
	}
	if count == len(w.Reserve.Topics) {
		return w.Reserve.Topics
	}
	topics := make([]string, 0, count)
	for _, p := range w.places {
		if p.topic.hasJobs(dueBy) {
			topics = append(topics, p.topic.name)
		}
	}
	return topics
}

type waiterState int

const (
	waiting waiterState = iota // in the queues of its topics
	busy                       // a Reserve for it is in flight
	ended                      // Done was called, or is about to be
)

// place is that of a waiter in the queue of one topic.
type place struct {
	waiter *Waiter
	topic  *topic
	index  int // in the queue; absent while the waiter is busy
}

type claim struct {
	topic *topic
	jobs  uint64
}

// topic is the dispatcher's state of one topic.
type topic struct {
	name    string
	ready   uint64  // as of the last applied batch
	asked   uint64  // of these, claimed by reserves in flight
	nextDue int64   // earliest time at which something is due, in Unix ms; 0 none
	soon    []int64 // first due times of delayed jobs, ascending, in Unix ms
	queue   queue

	names    int    // waiters that name it
	namedBy  uint64 // the last of them, in the order of Dispatcher.named
	dueIndex int    // in Dispatcher.due; absent when it does not belong there
}

func (t *topic) free() uint64 {
	if t.asked >= t.ready {
		return 0
	}
	return t.ready - t.asked
}

// servable reports whether a waiter can get jobs that nobody has claimed.
func (t *topic) servable() bool { return len(t.queue) > 0 && t.free() > 0 }

// dueBy returns how many jobs are known to become ready by an Advance at now.
func (t *topic) dueBy(now int64) int {
	if t.nextDue == 0 || t.nextDue > now {
		return 0
	}
	n, _ := slices.BinarySearch(t.soon, now+1)
	return max(n, 1)
}

// hasJobs reports whether a Reserve that is applied at now may find jobs.
func (t *topic) hasJobs(now int64) bool { return t.ready > 0 || t.dueBy(now) > 0 }

// idle topics are forgotten.
func (t *topic) idle() bool { return t.ready == 0 && t.nextDue == 0 && t.names == 0 }
