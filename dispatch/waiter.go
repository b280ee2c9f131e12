package dispatch

import (
	"tarry/dispatch/lending"
	"tarry/job/jobpb"
)

// Waiter is one reserve that waits for jobs.
type Waiter struct {
	// Reserve is the consumer's request. It must not change after Add.
	Reserve *jobpb.Reserve
	// Poll requests an immediate response, empty when nothing is ready.
	Poll bool
	// Stay keeps the waiter on this node: it gets jobs of the groups that this node leads.
	Stay bool
	// First are operations that are applied before it reserves, such as finishes of its
	// consumer's jobs: in one proposal with its Reserve if that may get a job, and alone
	// otherwise. They are proposed once. A waiter with First must be a Poll.
	First []*jobpb.Op
	// Advance, of a Poll, is proposed before its Reserve if it makes a job ready that is due by
	// Now (Unix ms) and not ready yet; nil: such jobs are left to others. It is not if others
	// wait for jobs that it would make ready, because they would need a Reserve of their own.
	Advance *jobpb.Op
	Now     int64
	// Results are those of First, once they are applied. They may be read after Done was
	// called without an error.
	Results []*jobpb.Result
	// Done receives the outcome, exactly once, on any goroutine; it must not block. An
	// empty list with a nil error means that nothing was ready (a poll) or that the wait
	// was canceled. ErrStopped means: register with the next leader. A *job.Error comes
	// from the state machine; retrying does not help. For a waiter with First, ErrStopped
	// means that they were not proposed, and another error is that of their proposal; it
	// never gets ErrFull.
	Done func([]*jobpb.Reserved, error)

	op     *jobpb.Op
	number uint64 // order of arrival
	state  waiterState
	places []place        // one for each of its topics
	asked  []claim        // jobs that its Reserve in flight has claimed
	gone   bool           // the consumer hung up while a Reserve was in flight
	final  bool           // the outcome of the Reserve in flight ends the wait
	guest  *lending.Guest // nil: it is this node's own
	alone  bool           // its First are proposed without a Reserve
	moves  bool           // its Advance is proposed
}

// reserveOp returns the operation of w with at most so many bytes of bodies. It names
// only the topics that have jobs, or will have by dueBy, because these names are in the
// log.
func (w *Waiter) reserveOp(s *Source, dueBy, bytes int64) *jobpb.Op {
	r := w.Reserve
	topics := w.topicsWithJobs(s, dueBy)
	if r.Max == 1 || r.MaxBytes > 0 && r.MaxBytes <= bytes {
		bytes = r.MaxBytes
	}
	if len(topics) == len(r.Topics) && bytes == r.MaxBytes {
		return w.op
	}
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{
		Topics: topics, Max: r.Max, TtrMs: r.TtrMs, MaxBytes: bytes, Consumer: r.Consumer, HoldMs: r.HoldMs, Principal: r.Principal,
	}}}
}

func (w *Waiter) topicsWithJobs(s *Source, dueBy int64) []string {
	count := 0
	for _, p := range w.places {
		if w.mayFind(p.topic.of(s), dueBy) {
			count++
		}
	}
	if count == len(w.Reserve.Topics) {
		return w.Reserve.Topics
	}
	topics := make([]string, 0, count)
	for _, p := range w.places {
		if w.mayFind(p.topic.of(s), dueBy) {
			topics = append(topics, p.topic.name)
		}
	}
	return topics
}

// mayFind reports whether the Reserve of w, applied at dueBy, may find jobs of p, which may be nil.
// What w finishes first may end reservations of its topic.
func (w *Waiter) mayFind(p *supply, dueBy int64) bool {
	return p != nil && (p.hasJobs(dueBy) || len(w.First) > 0 && p.held > 0)
}

// split returns the results of w among rs, which begin with those of its First, and the
// results of the waiters after it.
func (w *Waiter) split(rs []*jobpb.Result) (reserved *jobpb.Result, rest []*jobpb.Result) {
	w.Results, rs = rs[:len(w.First):len(w.First)], rs[len(w.First):]
	if w.alone {
		return &jobpb.Result{}, rs
	}
	if w.moves {
		rs = rs[1:]
	}
	return rs[0], rs[1:]
}

type waiterState int

const (
	waiting waiterState = iota // in the queues of its topics
	busy                       // a Reserve for it is in flight
	lent                       // another node has it
	ended                      // Done was called, or is about to be
)

// place is that of a waiter in the queue of one topic.
type place struct {
	waiter *Waiter
	topic  *topic
	index  int // in the queue; absent while the waiter is busy or lent
}

func (p *place) queue() *queue {
	if p.waiter.guest != nil {
		return &p.topic.guests
	}
	return &p.topic.queue
}

type claim struct {
	supply *supply
	jobs   uint64
}
