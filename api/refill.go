package api

import (
	"sync"

	"tarry/job"
	"tarry/job/jobpb"
)

// refills lets the finish of a job reserve the next job of the stream that delivered it, in one
// entry of the log. A stream whose credit is used up lends its place to whoever finishes one
// of its jobs on this node. So a stream that always has work costs one commit a job, as a
// reserve with a finish does.
type refills struct {
	mu      sync.Mutex
	streams map[job.Token]*refill // by the jobs that they hold
}

func newRefills() *refills { return &refills{streams: map[job.Token]*refill{}} }

// refill is one stream's part of refills.
type refill struct {
	of      *refills
	reserve *jobpb.Reserve // of one job
	wake    chan struct{}  // holds one: a reserve has ended

	// Held with of.mu.
	room     int64 // finishes that may still reserve; 0 unless the stream is full
	underWay int64 // finishes that reserve now
	jobs     []*jobpb.Reserved
	ended    bool
}

func (r *refills) add(reserve *jobpb.Reserve) *refill {
	return &refill{of: r, reserve: reserve, wake: make(chan struct{}, 1)}
}

// hold records that the stream holds jobs.
func (f *refill) hold(tokens []job.Token) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for _, k := range tokens {
		f.of.streams[k] = f
	}
}

// drop is the reverse of hold.
func (f *refill) drop(token job.Token) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	delete(f.of.streams, token)
}

// take returns the jobs that finishes have reserved. If there are none it returns how many
// the stream may reserve itself, of the credit that is unused and of what is left of its
// maximum; while that is 0, finishes may reserve.
func (f *refill) take(unused, left int64) (jobs []*jobpb.Reserved, free int64) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if len(f.jobs) > 0 {
		jobs, f.jobs = f.jobs, nil
		return jobs, 0
	}
	f.room = 0
	if free = min(unused, left) - f.underWay; free <= 0 {
		free, f.room = 0, left-f.underWay
	}
	return nil, free
}

// begin returns the stream for which the finish of a job shall reserve another one; nil: none.
// The caller must call end.
func (r *refills) begin(token job.Token) *refill {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.streams[token]
	if f == nil || f.room <= 0 {
		return nil
	}
	delete(r.streams, token)
	f.room--
	f.underWay++
	return f
}

// end passes the jobs that were reserved to the stream, and returns those that it does not take
// because it has ended.
func (f *refill) end(jobs []*jobpb.Reserved) (left []*jobpb.Reserved) {
	f.of.mu.Lock()
	f.underWay--
	if f.ended {
		left = jobs
	} else {
		f.jobs = append(f.jobs, jobs...)
	}
	f.of.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return left
}

// close ends the stream's part, and returns the jobs that it has not taken. held are those
// that it holds.
func (f *refill) close(held map[job.Token]struct{}) []*jobpb.Reserved {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.ended, f.room = true, 0
	for k := range held {
		delete(f.of.streams, k)
	}
	jobs := f.jobs
	f.jobs = nil
	return jobs
}

// finishOne finishes a job, and reserves the next one of the stream that holds it, if the
// stream is full.
func (s *server) finishOne(x *call, op *jobpb.Op) (*jobpb.Result, error) {
	ref := op.GetFinish().GetRef()
	token := job.Token{Seq: ref.GetSeq(), Generation: ref.GetGeneration()}
	var f *refill
	if !s.Draining() {
		f = s.refills.begin(token)
	}
	if f == nil {
		return s.doOne(x, op)
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	results, jobs, err := s.Queue.FinishAndReserve(ctx, []*jobpb.Finish{op.GetFinish()}, f.reserve, false)
	if err == nil {
		err = job.ResultError(results[0])
	}
	if err != nil { // the stream may hold its job still
		f.end(nil)
	} else {
		jobs = f.end(jobs)
	}
	if len(jobs) > 0 {
		s.giveBack(x, jobs)
	}
	if err != nil {
		return nil, err
	}
	return results[0], nil
}
