package beanstalk

import (
	"context"
	"time"

	"tarry/job/jobpb"
)

// hold is one reservation of this connection.
type hold struct {
	generation uint32
	ttr        time.Duration
	// until is when the time to run ends by this node's clock; the cluster
	// decides by its own.
	until time.Time
}

// holds are the reservations of a connection by job. One whose time ran out stays
// until the cluster refuses it or it is swept: only the cluster knows.
type holds struct {
	jobs map[uint64]hold
	// earliest is when the first of them ends that has not ended yet; zero: none
	// does. It is to be found anew when stale.
	earliest time.Time
	stale    bool
}

const (
	// margin is the last part of a reservation, in which clients are warned.
	margin = time.Second
	// sweepAfter is how long a reservation is kept behind its end.
	sweepAfter = 10 * time.Second
)

func (h *holds) add(seq uint64, generation uint32, ttr time.Duration) {
	if h.jobs == nil {
		h.jobs = map[uint64]hold{}
	}
	h.drop(seq)
	until := time.Now().Add(ttr)
	h.jobs[seq] = hold{generation, ttr, until}
	if h.earliest.IsZero() || until.Before(h.earliest) {
		h.earliest = until
	}
}

func (h *holds) drop(seq uint64) {
	if j, held := h.jobs[seq]; held {
		h.stale = h.stale || j.until.Equal(h.earliest)
		delete(h.jobs, seq)
	}
}

// ref names a reservation; a job that is not held is named without a fence.
func (h *holds) ref(seq uint64) (ref *jobpb.Ref, held bool) {
	j, held := h.jobs[seq]
	return &jobpb.Ref{Seq: seq, Generation: j.generation}, held
}

// soon is how long it takes until a reservation enters its last second; 0 or less
// when one is in it, forever when there is none.
func (h *holds) soon(now time.Time) time.Duration {
	if h.stale || !h.earliest.After(now) {
		h.sweep(now)
	}
	if h.earliest.IsZero() {
		return forever
	}
	return h.earliest.Sub(now) - margin
}

// sweep finds earliest anew.
func (h *holds) sweep(now time.Time) {
	h.earliest, h.stale = time.Time{}, false
	for seq, j := range h.jobs {
		switch left := j.until.Sub(now); {
		case left < -sweepAfter:
			delete(h.jobs, seq)
		case left > 0 && (h.earliest.IsZero() || j.until.Before(h.earliest)):
			h.earliest = j.until
		}
	}
}

// returnTime bounds giving jobs back; what fails comes back by its TTR.
const returnTime = 10 * time.Second

// returnJobs gives back what a connection held when it ended.
func (c *conn) returnJobs() {
	var ops []*jobpb.Op
	for seq, j := range c.held.jobs {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
			Ref: &jobpb.Ref{Seq: seq, Generation: j.generation}, Returned: true,
		}}})
	}
	if len(ops) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, returnTime)
	defer cancel()
	if _, err := c.server.Queue.Do(ctx, ops); err != nil {
		c.server.Logger.Warn("jobs of a closed connection were not given back and wait for the end of their time to run",
			"client", c.net.RemoteAddr().String(), "jobs", len(ops), "error", err)
	}
}
