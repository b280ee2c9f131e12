package dispatch

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// match is a set of waiters whose Reserves are proposed together.
type match struct {
	source  *Source // to whose log they go
	ops     []*jobpb.Op
	waiters []*Waiter
	bytes   int    // of ops, encoded
	tenant  string // whose topics the waiters are served for, in Waiters.match
}

func (m *match) full() bool { return len(m.ops) >= maxOpsPerMatch || m.bytes >= maxBytesPerMatch }

// match serves the waiters of topics in order, as long as there are ready jobs that no
// reserve in flight has claimed. It is called with ws.mu held; the caller must pass the
// result to propose after unlocking.
func (ws *Waiters) match(topics []*topic) []match {
	var out []match
	var m match
	for _, t := range topics {
		tenant := ws.tenantOf(t)
		for p := t.offer(); p != nil; p = t.offer() {
			if tenant != m.tenant || p.source != m.source || m.full() {
				if len(m.ops) > 0 {
					out = append(out, m)
				}
				m = match{source: p.source, tenant: tenant}
			}
			p.source.take(t.first(), 0, &m)
		}
	}
	if len(m.ops) > 0 {
		out = append(out, m)
	}
	return out
}

// servable appends the topics of w that it can get jobs of.
func servable(to []*topic, w *Waiter) []*topic {
	for _, p := range w.places {
		if p.topic.offer() != nil {
			to = append(to, p.topic)
		}
	}
	return to
}

// matchFirst returns the proposal of w's First, with its Reserve if that may get a job: one
// that nobody has claimed, one that its First make available, or one that its Advance makes
// ready. Of the last two, waiters that came before it are served first. It is called with ws.mu
// held.
func (s *Source) matchFirst(w *Waiter) match {
	for _, p := range w.places {
		has := p.topic.of(s)
		if has != nil && (has.free() > 0 || has.held > 0 && p.topic.first() == w) {
			m := match{source: s}
			s.take(w, 0, &m)
			return m
		}
	}
	if m, ok := s.matchDue(w); ok {
		return m
	}
	s.waiters.dequeue(w)
	w.state, w.alone = busy, true
	s.waiters.busy++
	return match{source: s, ops: w.First, waiters: []*Waiter{w}}
}

// matchDue returns the proposal of w, which waits, with its Advance, if that makes a job ready
// and no other waiter is first in line for any. It is called with ws.mu held.
func (s *Source) matchDue(w *Waiter) (m match, ok bool) {
	if w.Advance == nil || len(s.due) == 0 || s.due[0].unclaimed > w.Now || !s.dueOnlyFor(w, 0) {
		return match{}, false
	}
	w.moves = true
	m.source = s
	s.take(w, w.Now, &m)
	return m, true
}

// dueOnlyFor reports whether w is the first in the queue of each due topic in the part of the
// heap that begins at i. It looks at no more of the heap than at three times w's topics.
func (s *Source) dueOnlyFor(w *Waiter, i int) bool {
	if i >= len(s.due) || s.due[i].unclaimed > w.Now {
		return true
	}
	return s.due[i].topic.first() == w && s.dueOnlyFor(w, 2*i+1) && s.dueOnlyFor(w, 2*i+2)
}

// take moves w from waiting to busy and claims as many free jobs of s as it may get, so that
// no other waiter claims the same ones. Its Reserve will be applied at dueBy (Unix ms) or
// later; 0: nothing falls due before.
func (s *Source) take(w *Waiter, dueBy int64, m *match) {
	want := uint64(w.Reserve.Max)
	for _, p := range w.places {
		has := p.topic.of(s)
		if has == nil {
			continue
		}
		if n := min(want, has.free()); n > 0 {
			has.asked += n
			w.asked = append(w.asked, claim{has, n})
			want -= n
		}
	}
	s.waiters.dequeue(w)
	w.state = busy
	s.waiters.busy++
	op := w.reserveOp(s, dueBy, int64(maxBodyBytes/s.waiters.busy))
	m.ops = append(m.ops, w.First...)
	if w.moves {
		m.ops = append(m.ops, w.Advance)
	}
	m.ops = append(m.ops, op)
	m.waiters = append(m.waiters, w)
	m.bytes += oplog.OpSize(op)
}

// propose submits matches. It must be called without the lock.
func propose(ms []match) {
	for _, m := range ms {
		s, served := m.source, m.waiters
		s.submit(m.ops, func(rs []*jobpb.Result, err error) { s.finish(served, rs, err) })
	}
}

// finish handles the results of proposed Reserves: it delivers jobs, gives back those
// whose consumer is gone, and requeues waiters that got nothing.
func (s *Source) finish(served []*Waiter, rs []*jobpb.Result, err error) {
	type outcome struct {
		w    *Waiter
		jobs []*jobpb.Reserved
		err  error
	}
	var outcomes []outcome
	var back []*jobpb.Op
	var touched []*topic
	var ms []match
	ws := s.waiters
	ws.mu.Lock()
	ws.busy -= len(served)
	for _, w := range served {
		touched = s.unclaim(touched, w)
		var jobs []*jobpb.Reserved
		var refused error
		if err == nil {
			var r *jobpb.Result
			r, rs = w.split(rs)
			jobs, refused = r.Jobs, job.ResultError(r)
		}
		switch {
		case w.gone:
			back = append(back, GiveBack(jobs, w.Reserve.HoldMs)...)
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w})
		case len(jobs) > 0:
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w, jobs: jobs})
		case len(w.First) > 0: // a refused Reserve has found nothing: the First are applied
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w, err: err})
		case err != nil || ws.stopped:
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w, err: ErrStopped})
		case refused != nil: // and would be on each attempt
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w, err: refused})
		case w.final || w.Poll && !ws.lending.polls(w):
			ws.end(w)
			outcomes = append(outcomes, outcome{w: w})
		case w.Poll:
			ws.enqueue(w)
			ms = append(ms, ws.lending.came(w)...)
		default:
			ws.enqueue(w)
			touched = ws.changed(touched, w)
		}
	}
	ms = append(ms, ws.settle(touched)...)
	ws.unlock(nil)

	for _, o := range outcomes {
		if len(o.jobs) > 0 {
			s.deliver(o.jobs)
		}
		o.w.Done(o.jobs, o.err)
	}
	for ops := range slices.Chunk(back, maxOpsPerMatch) {
		// If this fails, the jobs become ready again when their TTR expires.
		s.submit(ops, func([]*jobpb.Result, error) {})
	}
	propose(ms)
}

// unclaim gives back what w has claimed, and appends the topics that must be settled for it.
func (s *Source) unclaim(touched []*topic, w *Waiter) []*topic {
	for _, c := range w.asked {
		if s.closed {
			break // its supplies are gone
		}
		c.supply.asked -= c.jobs
		if t := c.supply.topic; s.waiters.lending != nil || t.offer() != nil {
			touched = append(touched, t)
		}
	}
	w.asked = w.asked[:0]
	return touched
}

// changed appends the topics that must be settled because w has come to their queues.
func (ws *Waiters) changed(touched []*topic, w *Waiter) []*topic {
	if ws.lending == nil {
		return servable(touched, w)
	}
	for i := range w.places {
		touched = append(touched, w.places[i].topic)
	}
	return touched
}

// GiveBack returns the operations that undo reservations which no consumer received, and that
// lasted holdMs longer than their TTR.
func GiveBack(jobs []*jobpb.Reserved, holdMs int64) []*jobpb.Op {
	ops := make([]*jobpb.Op, len(jobs))
	for i, j := range jobs {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Release{Release: oplog.GiveBack(j, holdMs)}, Principal: job.SystemPrincipal}
	}
	return ops
}
