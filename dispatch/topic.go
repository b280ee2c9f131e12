package dispatch

import (
	"container/heap"
	"slices"
)

// topic has who waits for the jobs of one topic, and what each source has of it.
type topic struct {
	name    string
	queue   queue
	guests  queue  // waiters of other nodes, which are served first
	names   int    // waiters that name it
	namedBy uint64 // the last of them, in the order of Waiters.named

	supply // the first of a list; it belongs to no source until an Update names the topic
}

// supply is what one source has of one topic.
type supply struct {
	topic   *topic
	source  *Source
	ready   uint64  // as of the last applied batch
	held    uint64  // as of then, ready but for the limit on reserved jobs
	asked   uint64  // of these, claimed by reserves in flight
	nextDue int64   // earliest time at which something is due, in Unix ms; 0 none
	soon    []int64 // first due times of delayed jobs, ascending, in Unix ms
	// What is due up to claimedTo has waiters already: an advance that was proposed ahead
	// reserves for them. 0: there is none. unclaimed is the first due time after it, for the
	// order of Source.due.
	claimedTo, unclaimed int64

	dueIndex int // in Source.due; absent when it does not belong there
	next     *supply
}

func newTopic(name string) *topic {
	t := &topic{name: name}
	t.supply = supply{topic: t, dueIndex: absent}
	return t
}

func (t *topic) waiting() int { return len(t.queue) + len(t.guests) }

// first returns the waiter that is served next, of those in the queues.
func (t *topic) first() *Waiter {
	if len(t.guests) > 0 {
		return t.guests[0].waiter
	}
	return t.queue[0].waiter
}

// of returns the supply of a source; nil if no Update of it has named the topic.
func (t *topic) of(s *Source) *supply {
	for p := &t.supply; p != nil; p = p.next {
		if p.source == s {
			return p
		}
	}
	return nil
}

// bind returns the supply of a source, which may be new.
func (t *topic) bind(s *Source) *supply {
	p := t.of(s)
	if p == nil {
		p = t.of(nil)
	}
	if p == nil {
		p = &supply{topic: t, dueIndex: absent, next: t.next}
		t.next = p
	}
	p.source = s
	return p
}

// offer returns a supply with jobs that nobody has claimed, if a waiter can get them.
func (t *topic) offer() *supply {
	if t.waiting() == 0 {
		return nil
	}
	for p := &t.supply; p != nil; p = p.next {
		if p.free() > 0 {
			return p
		}
	}
	return nil
}

// idle topics are forgotten.
func (t *topic) idle() bool {
	for p := &t.supply; p != nil; p = p.next {
		if p.ready != 0 || p.held != 0 || p.nextDue != 0 {
			return false
		}
	}
	return t.names == 0
}

func (s *supply) free() uint64 {
	if s.asked >= s.ready {
		return 0
	}
	return s.ready - s.asked
}

// reindex updates the position of s in the heap of its source.
func (s *supply) reindex() {
	if s.source == nil {
		return
	}
	s.unclaimed = s.firstUnclaimed()
	belongs := s.unclaimed != 0 && s.topic.waiting() > 0
	due := &s.source.due
	switch {
	case belongs && s.dueIndex == absent:
		heap.Push(due, s)
	case belongs:
		heap.Fix(due, s.dueIndex)
	case s.dueIndex != absent:
		heap.Remove(due, s.dueIndex)
	}
}

// reindex is called when the first waiter has come to the queue of t, or the last has left.
func (t *topic) reindex() {
	for p := &t.supply; p != nil; p = p.next {
		p.reindex()
	}
}

// dueBy returns how many jobs are known to become ready by an Advance at now, except those
// that are claimed.
func (s *supply) dueBy(now int64) int {
	if first := s.firstUnclaimed(); first == 0 || first > now {
		return 0
	}
	claimed, _ := slices.BinarySearch(s.soon, s.claimedTo+1)
	n, _ := slices.BinarySearch(s.soon, now+1)
	return max(n-claimed, 1)
}

// firstUnclaimed returns the first due time, as far as it is known, for which nothing is
// claimed; 0: there is none.
func (s *supply) firstUnclaimed() int64 {
	if s.nextDue > s.claimedTo {
		return s.nextDue
	}
	if n, _ := slices.BinarySearch(s.soon, s.claimedTo+1); n < len(s.soon) {
		return s.soon[n]
	}
	return 0
}

// hasJobs reports whether a Reserve that is applied at now may find jobs.
func (s *supply) hasJobs(now int64) bool { return s.ready > 0 || s.dueBy(now) > 0 }
