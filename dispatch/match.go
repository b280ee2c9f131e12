package dispatch

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// match is a set of waiters whose Reserves are proposed together.
type match struct {
	ops     []*jobpb.Op
	waiters []*Waiter
	bytes   int    // of ops, encoded
	tenant  string // whose topics the waiters are served for, in Dispatcher.match
}

func (m *match) full() bool { return len(m.ops) >= maxOpsPerMatch || m.bytes >= maxBytesPerMatch }

// match serves the waiters of topics in order, as long as there are ready jobs that no
// reserve in flight has claimed. It is called with d.mu held; the caller must pass the
// result to propose after unlocking.
func (d *Dispatcher) match(topics []*topic) []match {
	var out []match
	var m match
	for _, t := range topics {
		if tenant := d.tenantOf(t); tenant != m.tenant {
			if len(m.ops) > 0 {
				out = append(out, m)
			}
			m = match{tenant: tenant}
		}
		for t.servable() {
			d.take(t.queue[0].waiter, 0, &m)
			if m.full() {
				out, m = append(out, m), match{tenant: m.tenant}
			}
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
		if p.topic.servable() {
			to = append(to, p.topic)
		}
	}
	return to
}

// matchFirst returns the proposal of w's First, with its Reserve if that may get a job: one
// that nobody has claimed, one that its First make available, or one that its Advance makes
// ready. Of the last two, waiters that came before it are served first. It is called with d.mu
// held.
func (d *Dispatcher) matchFirst(w *Waiter) (m match) {
	for _, p := range w.places {
		if p.topic.free() > 0 || p.topic.held > 0 && p.topic.queue[0].waiter == w {
			d.take(w, 0, &m)
			return m
		}
	}
	if m, ok := d.matchDue(w); ok {
		return m
	}
	d.dequeue(w)
	w.state, w.alone = busy, true
	d.busy++
	return match{ops: w.First, waiters: []*Waiter{w}}
}

// matchDue returns the proposal of w, which waits, with its Advance, if that makes a job ready
// and no other waiter is first in line for any. It is called with d.mu held.
func (d *Dispatcher) matchDue(w *Waiter) (m match, ok bool) {
	if w.Advance == nil || len(d.due) == 0 || d.due[0].unclaimed > w.Now || !d.dueOnlyFor(w, 0) {
		return match{}, false
	}
	w.moves = true
	d.take(w, w.Now, &m)
	return m, true
}

// dueOnlyFor reports whether w is the first in the queue of each due topic in the part of the
// heap that begins at i. It looks at no more of the heap than at three times w's topics.
func (d *Dispatcher) dueOnlyFor(w *Waiter, i int) bool {
	if i >= len(d.due) || d.due[i].unclaimed > w.Now {
		return true
	}
	return d.due[i].queue[0].waiter == w && d.dueOnlyFor(w, 2*i+1) && d.dueOnlyFor(w, 2*i+2)
}

// take moves w from waiting to busy and claims as many free jobs as it may get, so that
// no other waiter claims the same ones. Its Reserve will be applied at dueBy (Unix ms) or
// later; 0: nothing falls due before.
func (d *Dispatcher) take(w *Waiter, dueBy int64, m *match) {
	want := uint64(w.Reserve.Max)
	for _, p := range w.places {
		n := min(want, p.topic.free())
		if n > 0 {
			p.topic.asked += n
			w.asked = append(w.asked, claim{p.topic, n})
			want -= n
		}
	}
	d.dequeue(w)
	w.state = busy
	d.busy++
	op := w.reserveOp(dueBy, int64(maxBodyBytes/d.busy))
	m.ops = append(m.ops, w.First...)
	if w.moves {
		m.ops = append(m.ops, w.Advance)
	}
	m.ops = append(m.ops, op)
	m.waiters = append(m.waiters, w)
	m.bytes += oplog.OpSize(op)
}

// propose submits matches. It must be called without d.mu held.
func (d *Dispatcher) propose(ms []match) {
	for _, m := range ms {
		d.submit(m.ops, func(rs []*jobpb.Result, err error) { d.finish(m.waiters, rs, err) })
	}
}

// finish handles the results of proposed Reserves: it delivers jobs, gives back those
// whose consumer is gone, and requeues waiters that got nothing.
func (d *Dispatcher) finish(ws []*Waiter, rs []*jobpb.Result, err error) {
	type outcome struct {
		w    *Waiter
		jobs []*jobpb.Reserved
		err  error
	}
	var outcomes []outcome
	var back []*jobpb.Op
	var touched []*topic
	d.mu.Lock()
	d.busy -= len(ws)
	for _, w := range ws {
		for _, c := range w.asked {
			c.topic.asked -= c.jobs
			if c.topic.servable() {
				touched = append(touched, c.topic)
			}
		}
		w.asked = w.asked[:0]
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
			d.end(w)
			outcomes = append(outcomes, outcome{w: w})
		case len(jobs) > 0:
			d.end(w)
			outcomes = append(outcomes, outcome{w: w, jobs: jobs})
		case len(w.First) > 0: // a refused Reserve has found nothing: the First are applied
			d.end(w)
			outcomes = append(outcomes, outcome{w: w, err: err})
		case err != nil || d.stopped:
			d.end(w)
			outcomes = append(outcomes, outcome{w: w, err: ErrStopped})
		case refused != nil: // and would be on each attempt
			d.end(w)
			outcomes = append(outcomes, outcome{w: w, err: refused})
		case w.Poll:
			d.end(w)
			outcomes = append(outcomes, outcome{w: w})
		default:
			d.enqueue(w)
			touched = servable(touched, w)
		}
	}
	ms := d.match(touched)
	d.mu.Unlock()

	for _, o := range outcomes {
		if len(o.jobs) > 0 {
			d.deliver(o.jobs)
		}
		o.w.Done(o.jobs, o.err)
	}
	for ops := range slices.Chunk(back, maxOpsPerMatch) {
		// If this fails, the jobs become ready again when their TTR expires.
		d.submit(ops, func([]*jobpb.Result, error) {})
	}
	d.propose(ms)
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
