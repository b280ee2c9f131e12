package cluster

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tarry/cluster/alarm"
	"tarry/dispatch"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// What falls due is committed ahead by the time that this has taken lately, within
	// these bounds. A consumer for which something was committed ahead gets nothing else
	// meanwhile.
	minLead, maxLead = 500 * time.Microsecond, 5 * time.Millisecond
	// maxAhead bounds the advances that wait for their instants. It is less than the state
	// machine's bound.
	maxAhead = 32
	// aheadGrace is how long after its instant an advance that was proposed ahead may take
	// effect. Then the timer does its work.
	aheadGrace = 25 * time.Millisecond
)

// ahead commits ahead of its instant what falls due while somebody waits for it, and lets it
// take effect at the instant, so that the jobs need no round of the log then. It exists
// while this node is the established leader.
type ahead struct {
	shard      *Shard
	dispatcher *dispatch.Dispatcher
	term       uint64
	wake       chan struct{} // holds one

	alarm   atomic.Int64 // when run wakes up, Unix nanoseconds
	blocked atomic.Bool  // an effect is due, and entries of an earlier time are not applied
	first   atomic.Int64 // the earliest instant of waiting, Unix milliseconds; 0: none

	mu      sync.Mutex
	waiting map[uint64]aheadClaim // proposed and without effect yet, by number
	took    time.Duration         // that a proposal takes until it is applied
	spread  time.Duration         // by which that varies
}

// aheadClaim is an advance that was proposed for an instant.
type aheadClaim struct {
	at       int64
	reserves int
	done     func([]*jobpb.Result, error)
}

func newAhead(s *Shard, d *dispatch.Dispatcher, term uint64) *ahead {
	return &ahead{
		shard: s, dispatcher: d, term: term, wake: make(chan struct{}, 1), waiting: map[uint64]aheadClaim{},
		took: 2 * time.Millisecond, spread: time.Millisecond,
	}
}

// run works until ctx ends. Then the waiters must register with the next leader.
func (a *ahead) run(ctx context.Context) {
	ring := alarm.New()
	defer ring.Close()
	for ctx.Err() == nil {
		a.takeEffects()
		a.alarm.Store(math.MaxInt64) // what changes from now on may not be seen by propose
		next := a.propose()
		sleep := time.Second // the wall clock may be set
		if !next.IsZero() {
			sleep = min(sleep, max(0, next.Sub(a.shard.Now())))
		}
		a.alarm.Store(a.shard.Now().Add(sleep).UnixNano())
		ring.Reset(sleep)
		select {
		case <-ring.C:
		case <-a.wake:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	left := a.waiting
	a.waiting = map[uint64]aheadClaim{}
	a.mu.Unlock()
	for _, c := range left {
		c.done(nil, dispatch.ErrStopped)
	}
}

// notify wakes run if there is something to propose before it wakes up by itself. It does
// not block.
func (a *ahead) notify() {
	if at := a.dispatcher.NextDue(); at != 0 && time.UnixMilli(at).Add(-a.lead()).UnixNano() < a.alarm.Load() {
		poke(a.wake)
	}
}

// lead returns how long before an instant its advance is proposed.
func (a *ahead) lead() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(max(a.took+2*a.spread, minLead), maxLead)
}

// propose proposes what must be proposed now, and returns when to look again; zero: after a
// wake-up.
func (a *ahead) propose() time.Time {
	for range maxAhead {
		due, first := a.dispatcher.NextDue(), a.first.Load()
		now := a.shard.Now()
		var next time.Time
		if first > now.UnixMilli() {
			next = time.UnixMilli(first)
		}
		if due <= now.UnixMilli() { // none, or the timer's
			return next
		}
		if begin := time.UnixMilli(due).Add(-a.lead()); begin.After(now) {
			if next.IsZero() || begin.Before(next) {
				next = begin
			}
			return next
		}
		if a.full() {
			return next
		}
		a.proposeFor(due)
	}
	return a.shard.Now().Add(minLead)
}

func (a *ahead) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) >= maxAhead
}

// proposeFor proposes nothing if what was due then has changed meanwhile.
func (a *ahead) proposeFor(at int64) {
	reserves, done := a.dispatcher.ClaimAhead(at)
	if done == nil {
		return
	}
	number := rand.Uint64()
	a.mu.Lock()
	a.waiting[number] = aheadClaim{at, len(reserves), done}
	a.setFirst()
	a.mu.Unlock()
	op := &jobpb.AdvanceAt{AtMs: at, Number: number, Advance: &jobpb.Advance{Max: advanceSlice, Entropy: rand.Uint64()}, Reserves: reserves}
	start := time.Now()
	a.shard.submit([]*jobpb.Op{{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: op}}}, "", true, func(rs []*jobpb.Result, err error) {
		switch {
		case err != nil:
			a.complete(number, nil, err)
		case rs[0].Code != jobpb.Code_OK:
			a.shard.log.Debug("an advance was not accepted ahead of its instant", "error", job.ResultError(rs[0]))
			a.complete(number, nil, nil)
		default:
			a.measure(time.Since(start))
			poke(a.wake)
		}
	})
}

// measure records how long a proposal took, as TCP measures round trips.
func (a *ahead) measure(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spread += ((took - a.took).Abs() - a.spread) / 4
	a.took += (took - a.took) / 8
}

// takeEffects lets take effect what is due, unless entries of an earlier time are still under
// way. Then applied calls for another attempt.
func (a *ahead) takeEffects() {
	a.blocked.Store(true) // first: an entry that is applied from now on wakes run
	for {
		at := a.shard.machine.NextEffect()
		now, epoch := a.shard.now()
		if at == 0 || at > now.UnixMilli() {
			break
		}
		if !a.shard.stamps.seal(stamp{at, epoch}) {
			return
		}
		a.shard.adapter.TakeEffect(at, a.term, epoch)
		if a.shard.machine.NextEffect() == at {
			break // it is not of this term
		}
	}
	a.blocked.Store(false)
}

// applied reports that an entry of this leader was applied.
func (a *ahead) applied() {
	if a.blocked.Load() {
		poke(a.wake)
	}
}

// tookEffect passes the results on to the waiters.
func (a *ahead) tookEffect(e fsm.Effect) { a.complete(e.Number, e.Results, nil) }

func (a *ahead) complete(number uint64, rs []*jobpb.Result, err error) {
	a.mu.Lock()
	c, there := a.waiting[number]
	delete(a.waiting, number)
	a.setFirst()
	a.mu.Unlock()
	if !there {
		// Its waiters were told that it failed, or that this leadership ended, and the entry was
		// committed all the same, in this term: nobody has received the jobs.
		for _, r := range rs {
			a.shard.giveBack(r.Jobs)
		}
		return
	}
	for err == nil && len(rs) < c.reserves {
		rs = append(rs, &jobpb.Result{}) // it was dropped: they have found nothing
	}
	c.done(rs, err)
	a.notify()
	a.shard.timer.Notify()
}

// setFirst is called with a.mu held.
func (a *ahead) setFirst() {
	var first int64
	for _, c := range a.waiting {
		if first == 0 || c.at < first {
			first = c.at
		}
	}
	a.first.Store(first)
}

// covers returns when the timer shall look at a due instant: at once, or later if an advance
// that was proposed ahead does its work.
func (a *ahead) covers(due int64) int64 {
	if first := a.first.Load(); first != 0 && due >= first {
		return due + aheadGrace.Milliseconds()
	}
	return due
}
