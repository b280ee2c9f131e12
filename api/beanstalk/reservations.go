package beanstalk

import (
	"context"
	"time"

	"tarry/api/access"
	"tarry/job"
	"tarry/job/jobpb"
)

// reservation is one job that this connection has reserved.
type reservation struct {
	generation uint32
	ttr        time.Duration
	// until is when the reservation expires by this node's clock; the cluster
	// decides by its own clock.
	until time.Time
	// touches is when a touch above the limits of the token is allowed again.
	touches time.Time
}

// reservations are those of a connection, by job. An expired one stays until the
// cluster rejects it or it is swept: only the cluster decides about expiry.
type reservations struct {
	jobs map[uint64]reservation
	// earliest is the next expiry; zero when there is none. It must be computed
	// again when stale is set.
	earliest time.Time
	stale    bool
}

const (
	// margin is the time before the expiry in which clients get DEADLINE_SOON.
	margin = time.Second
	// sweepAfter is how long a reservation is kept after its expiry.
	sweepAfter = 10 * time.Second
)

func (h *reservations) add(seq uint64, generation uint32, ttr time.Duration) {
	if h.jobs == nil {
		h.jobs = map[uint64]reservation{}
	}
	var touches time.Time
	if before := h.jobs[seq]; before.generation == generation { // it is prolonged
		touches = before.touches
	}
	h.drop(seq)
	until := time.Now().Add(ttr)
	h.jobs[seq] = reservation{generation, ttr, until, touches}
	if h.earliest.IsZero() || until.Before(h.earliest) {
		h.earliest = until
	}
}

func (h *reservations) drop(seq uint64) {
	if j, held := h.jobs[seq]; held {
		h.stale = h.stale || j.until.Equal(h.earliest)
		delete(h.jobs, seq)
	}
}

// ref returns the reference to a job and whether this connection has reserved it.
// The reference has a generation only if it has.
func (h *reservations) ref(seq uint64) (ref *jobpb.Ref, held bool) {
	j, held := h.jobs[seq]
	return &jobpb.Ref{Seq: seq, Generation: j.generation}, held
}

// coversTouch reports whether a touch of a job that the connection has reserved is allowed above
// the limits of its token, and counts it.
func (h *reservations) coversTouch(seq uint64) bool {
	j, now := h.jobs[seq], time.Now()
	if now.Before(j.touches) {
		return false
	}
	j.touches = now.Add(access.TouchEvery(j.ttr))
	h.jobs[seq] = j
	return true
}

// soon returns the time until a reservation enters its last second: 0 or less when
// one is in it, forever when there is none.
func (h *reservations) soon(now time.Time) time.Duration {
	if h.stale || !h.earliest.After(now) {
		h.sweep(now)
	}
	if h.earliest.IsZero() {
		return forever
	}
	return h.earliest.Sub(now) - margin
}

// sweep computes earliest again and drops reservations that expired long ago.
func (h *reservations) sweep(now time.Time) {
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

// returnTime bounds releasing jobs; those that fail are ready again after their TTR.
const returnTime = 10 * time.Second

// returnJobs releases what a connection had reserved when it ended.
func (c *conn) returnJobs() {
	var ops []*jobpb.Op
	for seq, j := range c.held.jobs {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
			Ref: &jobpb.Ref{Seq: seq, Generation: j.generation}, Returned: true,
		}}, Principal: job.SystemPrincipal}) // the client may not be allowed to any more
	}
	if ops = c.aheadBack(ops); len(ops) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, returnTime)
	defer cancel()
	results, err := c.server.Queue.Do(ctx, ops)
	if err == nil {
		err = notReturned(results)
	}
	if err != nil {
		c.server.Logger.Warn("could not release the jobs of a closed connection; they are ready again when their reservations expire",
			"client", c.net.RemoteAddr().String(), "jobs", len(ops), "error", err)
	}
}
