package access

import (
	"math"
	"sync"
	"time"

	"tarry/internal/tokenbucket"
	"tarry/job"
	"tarry/job/jobpb"
)

// usage is what one token uses on this node.
//
// What ends or prolongs a reservation is allowed by the limits as any other call, or else by a
// reserve, which is larger than a second's worth and for nothing else. This node does not look
// whether the caller holds the job: it may have been reserved on another node a moment ago. So the
// reserve also bounds calls that end nothing. What was reserved here needs none of it (leases), so
// that a consumer can finish all that it holds, however much that is.
type usage struct {
	mu          sync.Mutex
	rate, bytes tokenbucket.Bucket
	keeping     tokenbucket.Bucket // the reserve of operations
	keepBytes   tokenbucket.Bucket // the reserve of bytes
	leases      leases             // of jobs that were reserved here
	connections uint32
	crowded     uint32 // connections beyond the limit
	waiters     uint32
}

const (
	// keepSeconds is how many seconds' worth of a limit the reserve is, but it is enough to end or
	// prolong minKeeps reservations.
	keepSeconds = 10
	minKeeps    = 64
	// keepRequest is what a request needs at most to end or prolong one reservation, in bytes.
	keepRequest = 4 << 10
)

// cost is what a call uses.
type cost struct {
	ops   int64
	ends  int64 // of ops: they end reservations
	keeps int64 // of ops: they prolong reservations
	bytes int64
	must  bool // it is done already
	// of or finishes has the operations of which some end or prolong reservations.
	of       []*jobpb.Op
	finishes []*jobpb.Finish
	// sure are those of keeps that are covered (leases), as the caller knows.
	sure int64
}

// keepsOnly reports whether the call only ends and prolongs reservations.
func (c cost) keepsOnly() bool { return c.ends+c.keeps > 0 && c.ends+c.keeps == c.ops }

// kept returns what the call needs of the reserve, if covered of what it ends and prolongs are jobs
// that were reserved here. The bytes of other operations are not in it.
func (c cost) kept(covered int64) (ops, bytes float64) {
	if c.keepsOnly() {
		bytes = float64(max(0, c.bytes-covered*keepRequest))
	}
	return float64(c.ends + c.keeps - covered), bytes
}

// fill is called with mu held.
func (u *usage) fill(of *jobpb.TokenLimits, at time.Time) {
	rate, bytes := float64(of.GetRateMilli())/1000, float64(of.GetBytes())
	u.rate.FillAt(rate, max(rate, 1), at)
	u.bytes.FillAt(bytes, max(bytes, 1), at)
	u.keeping.FillAt(rate, max(keepSeconds*rate, minKeeps), at)
	u.keepBytes.FillAt(bytes, max(keepSeconds*bytes, minKeeps*keepRequest), at)
}

// lacks returns what is exceeded by a call, and in how long it is not; kept is set if the call needs
// the reserve. The buckets must be filled.
func (u *usage) lacks(c cost, covered int64) (limit string, wait time.Duration, kept bool) {
	limit, wait = longer(u.rate.Wait(float64(c.ops)), u.bytes.Wait(float64(c.bytes)))
	if wait == 0 || c.ends+c.keeps == 0 {
		return limit, wait, false
	}
	ops, bytes := c.kept(covered)
	limit, wait = longer(u.keeping.Wait(ops), u.keepBytes.Wait(bytes))
	if !c.keepsOnly() {
		l, w := longer(u.rate.Wait(float64(c.ops-c.ends-c.keeps)), u.bytes.Wait(float64(c.bytes)))
		if w > wait {
			limit, wait = l, w
		}
	}
	return limit, wait, true
}

func longer(rate, bytes time.Duration) (limit string, wait time.Duration) {
	if bytes > rate {
		return limitBytes, bytes
	}
	return limitRate, rate
}

// take counts a call, for which credit was counted before. It takes nothing, and gives the credit
// back, unless all is allowed or it is done already: then it returns what is exceeded.
func (u *usage) take(of *jobpb.TokenLimits, at time.Time, credit int64, c cost) (limit string, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fill(of, at)
	u.rate.Left += float64(credit)
	covered := c.sure + u.leases.cover(&c, at, false)
	limit, wait, kept := u.lacks(c, covered)
	if wait > 0 && !c.must {
		return limit, wait
	}
	u.rate.Left -= float64(c.ops)
	u.bytes.Left -= float64(c.bytes)
	if kept {
		u.leases.cover(&c, at, true)
		ops, bytes := c.kept(covered)
		u.keeping.Left -= ops
		u.keepBytes.Left -= bytes
	}
	return "", 0
}

// blocked returns what is exceeded by a call of which only its bytes are known, if that is so
// whatever it does.
func (u *usage) blocked(of *jobpb.TokenLimits, at time.Time, bytes int64) (limit string, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fill(of, at)
	if limit, wait, _ = u.lacks(cost{ops: 1, bytes: bytes}, 0); wait == 0 {
		return "", 0
	}
	covered := min(int64(len(u.leases.of)), job.MaxBatch)
	n := max(covered, 1)
	if l, w, _ := u.lacks(cost{ops: n, ends: n, bytes: bytes}, covered); w < wait {
		limit, wait = l, w
	}
	return limit, wait
}

// reserved records jobs that the token has got.
func (u *usage) reserved(jobs []*jobpb.Reserved, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.leases.add(jobs, at)
}

// done takes note of what was replied to operations.
func (u *usage) done(ops []*jobpb.Op, results []*jobpb.Result, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range results {
		u.leases.done(ops[i], r.GetCode(), at)
	}
}

// finished is done for finishes.
func (u *usage) finished(finishes []*jobpb.Finish, results []*jobpb.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range results {
		u.leases.ended(finishes[i].Ref, r.GetCode())
	}
}

// readInVain counts the body of a call that was read and refused then. A small one costs nothing.
func (u *usage) readInVain(bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keepBytes.Left -= float64(max(0, bytes-keepRequest))
}

// giveBack takes back bytes that were counted.
func (u *usage) giveBack(bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes.Return(float64(bytes))
}

// more returns how many more whole operations are allowed now, at most most.
func (u *usage) more(of *jobpb.TokenLimits, at time.Time, most uint32) uint32 {
	if of.GetRateMilli() == 0 {
		return most
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fill(of, at)
	return uint32(min(float64(most), max(0, math.Floor(u.rate.Left+tokenbucket.Rounding))))
}
