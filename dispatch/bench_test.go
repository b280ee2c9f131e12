package dispatch

import (
	"strconv"
	"testing"

	"tarry/job/jobpb"
)

// Every benchmark reports the cost of one call with the lock held, for which the goroutine
// that applies the log waits.

const (
	manyWaiters = 100_000          // the bound on waiters of one leader
	manyTopics  = 10 * manyWaiters // and on the topics that they name
)

// pen keeps what was submitted until answer.
type pen struct {
	d       *Dispatcher
	pending []pendingSubmit
}

func newPen() *pen {
	p := &pen{}
	p.d = New(func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
		p.pending = append(p.pending, pendingSubmit{ops, done})
	}, manyWaiters, nil)
	return p
}

func (p *pen) add(topics ...string) {
	p.d.Add(&Waiter{Reserve: &jobpb.Reserve{Topics: topics, Max: 1}, Done: func([]*jobpb.Reserved, error) {}})
}

// answer completes every Reserve in flight with the same result.
func (p *pen) answer(jobs ...*jobpb.Reserved) {
	pending := p.pending
	p.pending = nil
	for _, s := range pending {
		rs := make([]*jobpb.Result, len(s.ops))
		for i := range rs {
			rs[i] = &jobpb.Result{Jobs: jobs}
		}
		s.done(rs, nil)
	}
}

// nameTopics adds waiters of ten topics each.
func (p *pen) nameTopics() {
	for n := 0; n < manyTopics; n += 10 {
		topics := make([]string, 10)
		for i := range topics {
			topics[i] = "t" + strconv.Itoa(n+i)
		}
		p.add(topics...)
		for _, name := range topics {
			p.d.Update([]Update{{Topic: name, NextDue: 1 << 40}})
		}
	}
}

// deliver measures a job for the waiter that comes first, and the next waiter.
func (p *pen) deliver(b *testing.B) {
	got := &jobpb.Reserved{}
	b.ReportAllocs()
	for b.Loop() {
		p.add("t")
		p.d.Update([]Update{{Topic: "t", Ready: 1}})
		p.d.Update([]Update{{Topic: "t"}})
		p.answer(got)
	}
}

func BenchmarkAJobForTheOneWhoWaits(b *testing.B) {
	newPen().deliver(b)
}

func BenchmarkAJobForTheFirstOfManyWaiters(b *testing.B) {
	p := newPen()
	for range manyWaiters - 1 {
		p.add("t")
	}
	p.deliver(b)
}

func BenchmarkClaimAmongManyTopics(b *testing.B) {
	p := newPen()
	p.nameTopics()
	b.ReportAllocs()
	for b.Loop() {
		p.d.Claim(1)
	}
}

func BenchmarkEmptyReservesReturnAmongManyWaiters(b *testing.B) {
	p := newPen()
	for range manyWaiters {
		p.add("t")
	}
	b.ReportAllocs()
	for b.Loop() {
		p.d.Update([]Update{{Topic: "t", Ready: maxOpsPerMatch}})
		p.d.Update([]Update{{Topic: "t"}})
		p.answer()
	}
}

func BenchmarkEmptyReservesReturnToManyTopics(b *testing.B) {
	p := newPen()
	topics := make([]string, 1000)
	for i := range topics {
		topics[i] = "t" + strconv.Itoa(i)
	}
	for range maxOpsPerMatch {
		p.add(topics...)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.d.Update([]Update{{Topic: "t500", Ready: maxOpsPerMatch}})
		p.d.Update([]Update{{Topic: "t500"}})
		p.answer()
	}
}
