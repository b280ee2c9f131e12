package tracing

import (
	"container/list"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// maxReservations bounds the reservations that a node remembers. Of others it reads the job.
const maxReservations = 16_384

// origin is what is known of a job when a call on it begins.
type origin struct {
	parent    trace.SpanContext // invalid: the job has no trace
	id, topic string
	delivered time.Time // of a reservation that this node made
}

// reservations remembers the jobs that were delivered by this node and have not ended, the
// latest of them: the spans of their ends are children of that of the reserve.
type reservations struct {
	most int

	mu    sync.Mutex
	bySeq map[uint64]*list.Element
	order list.List // of reservation, the oldest first
}

type reservation struct {
	seq        uint64
	generation uint32
	origin
}

func newReservations(most int) *reservations {
	return &reservations{most: most, bySeq: map[uint64]*list.Element{}}
}

func (r *reservations) put(new reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.bySeq[new.seq]; old != nil {
		r.order.Remove(old)
	} else if len(r.bySeq) >= r.most {
		oldest := r.order.Remove(r.order.Front()).(reservation)
		delete(r.bySeq, oldest.seq)
	}
	r.bySeq[new.seq] = r.order.PushBack(new)
}

// get returns a reservation of a job; generation 0: the latest.
func (r *reservations) get(seq uint64, generation uint32) (origin, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.bySeq[seq]; e != nil {
		if known := e.Value.(reservation); generation == 0 || generation == known.generation {
			return known.origin, true
		}
	}
	return origin{}, false
}

// drop forgets the reservation of a job that has ended.
func (r *reservations) drop(seq uint64, generation uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.bySeq[seq]; e != nil && (generation == 0 || generation == e.Value.(reservation).generation) {
		r.order.Remove(e)
		delete(r.bySeq, seq)
	}
}
