package history

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model of one job's life, for Porcupine: is there an order of the calls on
// one id, each at some instant between its beginning and its end, in which every
// answer is right? A call of unknown outcome may take effect at any time after it
// began, or never.
//
// Time moves jobs by itself: they fall due and reservations run out. The model
// takes such a step when a call needs it and the call's end allows it. Nor does a
// client see every reservation: one whose answer was lost is hidden, so a
// generation may skip numbers.

// life is a state of the model.
type life struct {
	phase    phase
	past     uint64 // the largest seq of the lives before; this one's is larger
	seq      uint64 // 0: not known, its add was not answered
	gen      uint64 // of the last reservation that a client saw
	attempts int    // at the last delivery; 0 unknown
	// until is the earliest instant of the next step that time makes: falling
	// due, or the end of the reservation. For the dead it is when they died at
	// the earliest.
	until int64
}

type phase uint8

const (
	absent phase = iota
	waiting
	reserved
	dead
)

// call is the input and the output of a step at once.
type call struct {
	*Op
	story *story
}

// by reports whether an instant can have come when the call was answered.
func (c call) by(instant int64) bool {
	return c.Outcome == Unknown || instant <= c.Complete+c.story.slack()
}

// steps gives the states that a call can leave.
func steps(from life, c call) []life {
	var to []life
	if c.Outcome != OK {
		to = append(to, from) // nothing was done
	}
	if c.Outcome == Fail {
		return to[:refusal(from, c)]
	}
	switch c.Kind {
	case Add:
		return append(to, from.add(c)...)
	case Deliver:
		return append(to, from.deliver(c)...)
	case Get:
		if from.shows(c) {
			return []life{from.learn(c)}
		}
		return nil
	case Delete:
		if from.phase != absent {
			to = append(to, from.end())
		}
		return to
	case Kick:
		return append(to, from.kick(c)...)
	}
	if from.phase != reserved || from.gen != c.Generation || !from.is(c.Seq) {
		return to
	}
	return append(to, from.settle(c)...)
}

// refusal is 1 when the state explains that the call found no job, else 0.
func refusal(from life, c call) int {
	if from.phase == absent || (c.Seq != 0 && from.seq != c.Seq) { // by token: of another life
		return 1
	}
	return 0
}

// is reports whether the living job can have the number.
func (l life) is(seq uint64) bool {
	return seq == 0 || l.seq == seq || (l.seq == 0 && seq > l.past)
}

// end is what is left of a life.
func (l life) end() life { return life{past: max(l.past, l.seq)} }

// learn notes a seq that the call tells.
func (l life) learn(c call) life {
	if l.seq == 0 {
		l.seq = c.Seq
	}
	return l
}

func (l life) add(c call) []life {
	switch {
	case l.phase != absent && c.Outcome == Unknown:
		return nil // as if nothing was done
	case l.phase != absent && l.is(c.Seq):
		return []life{l.learn(c)}
	case l.phase != absent, c.Seq != 0 && c.Seq <= l.past:
		return nil
	}
	return []life{{phase: waiting, past: l.past, seq: c.Seq, until: c.Invoke + c.Delay.Microseconds()}}
}

func (l life) deliver(c call) []life {
	fits := l.phase != absent && l.is(c.Seq) && c.Generation > l.gen
	if !fits || !l.ready(c) {
		return nil
	}
	return []life{{phase: reserved, past: l.past, seq: c.Seq, gen: c.Generation, attempts: c.Attempts, until: c.ReservedUntil}}
}

// ready reports whether the job can have been ready when the call was answered.
func (l life) ready(c call) bool {
	switch l.phase {
	case waiting:
		return c.by(l.until)
	case reserved:
		return c.by(l.until) && (!c.story.exhausted(l) || c.story.kickedSince(l.until, c))
	case dead:
		return c.story.kickedSince(l.until, c)
	}
	return false
}

// settle ends or extends the reservation whose holder calls.
func (l life) settle(c call) []life {
	next := l.learn(c)
	next.phase, next.until = waiting, 0
	switch c.Kind {
	case Finish:
		return []life{next.end()}
	case Touch:
		next.phase, next.until = reserved, max(c.ReservedUntil, c.Invoke+c.TTR.Microseconds())
	case Bury:
		next.phase, next.until = dead, c.Invoke
	case Release:
		next.until = c.Invoke + c.Delay.Microseconds()
		if c.story.maxAttempts() > 0 && (l.attempts == 0 || c.story.exhausted(l)) {
			died := next
			died.phase, died.until = dead, c.Invoke
			if l.attempts > 0 {
				return []life{died}
			}
			return []life{next, died}
		}
	}
	return []life{next}
}

// kick makes a dead or a delayed job ready.
func (l life) kick(c call) []life {
	if l.phase == absent || (l.phase == reserved && !c.by(l.until)) {
		return nil
	}
	l = l.learn(c)
	return []life{{phase: waiting, past: l.past, seq: l.seq, gen: l.gen}}
}

// shows reports whether the state explains what a read found.
func (l life) shows(c call) bool {
	if l.phase == absent || c.State == Gone {
		return l.phase == absent && c.State == Gone
	}
	if !l.is(c.Seq) {
		return false
	}
	limited := c.story.maxAttempts() > 0
	over := l.phase == reserved && c.by(l.until)
	switch c.State {
	case "delayed":
		return l.phase == waiting
	case "ready":
		return l.ready(c)
	case "reserved":
		return l.phase == reserved || l.ready(c) // by a client that never knew
	case "dead":
		return l.phase == dead || (limited && (over || l.phase == waiting))
	}
	return false
}

func (s *story) maxAttempts() int {
	if len(s.adds) == 0 {
		return 0
	}
	return s.adds[0].MaxAttempts
}

// exhausted reports whether the last attempt that a client saw was the last.
func (s *story) exhausted(l life) bool {
	limit := s.maxAttempts()
	return limit > 0 && l.attempts >= limit
}

// kickedSince reports whether a kick of the whole topic may have come between an
// instant and the end of the call. Kicks of the job are steps of their own.
func (s *story) kickedSince(instant int64, c call) bool {
	return slices.ContainsFunc(s.kicks, func(k *Op) bool {
		return k.Kind == KickTopic && k.maybe() && k.Invoke <= c.Complete && (k.Outcome == Unknown || k.Complete >= instant)
	})
}

// lifeModel is for one id at a time.
var lifeModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{life{}} },
	Step: func(state, input, _ any) []any {
		next := steps(state.(life), input.(call))
		states := make([]any, len(next))
		for i, l := range next {
			states[i] = l
		}
		return states
	},
}).ToModel()

// calls are the operations that say something about a life.
func (s *story) calls() []porcupine.Operation {
	var list []porcupine.Operation
	lives := s.lives()
	open := map[Op]int{} // unknown calls by what they would do
	for _, ops := range [][]*Op{s.adds, s.deliveries, s.fenced, s.deletes, s.jobKicks, s.gets} {
		slices.SortStableFunc(ops, func(a, b *Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
		for _, op := range ops {
			end := op.Complete
			switch {
			case op.Outcome == Fail && op.Code != notFound:
				continue
			case op.Outcome == Unknown:
				if open[op.effect()]++; op.idle() || open[op.effect()] > lives {
					continue
				}
				end = math.MaxInt64
			}
			list = append(list, porcupine.Operation{ClientId: op.Client, Input: call{op, s}, Call: op.Invoke, Return: end})
		}
	}
	return list
}

// lives is how many lives of the id clients can tell apart, and one more. Of
// calls with the same unknown effect no more than that are worth a thought, the
// earliest: each can have its effect only once in a life, and what a later one may
// have done, an earlier one may have done then too. It keeps the search short.
func (s *story) lives() int {
	seqs := map[uint64]bool{}
	for _, ops := range [][]*Op{s.adds, s.deliveries, s.gets} {
		for _, op := range ops {
			if op.Outcome == OK && op.Seq != 0 {
				seqs[op.Seq] = true
			}
		}
	}
	return len(seqs) + 1
}

// idle reports whether an unknown call makes no difference to the model: reads,
// and touches, which only put an end off.
func (o *Op) idle() bool { return o.Kind.reads() || o.Kind == Touch }

// effect is what a call would do, apart from when and where.
func (o *Op) effect() Op {
	e := Op{Kind: o.Kind, Delay: o.Delay, Generation: o.Generation}
	if o.Generation != 0 {
		e.Seq = o.Seq
	}
	return e
}

// lifeLimit bounds the search for one id. Almost all take microseconds.
const lifeLimit = 5 * time.Second

// checkLives searches an explanation for every id, on all processors.
func checkLives(jobs []*story, r *Report) {
	verdicts := make([]porcupine.CheckResult, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				verdicts[i] = porcupine.CheckOperationsTimeout(lifeModel, jobs[i].calls(), lifeLimit)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()
	r.Lives = len(jobs)
	for i, v := range verdicts {
		switch v {
		case porcupine.Unknown:
			r.OpenLives++
		case porcupine.Illegal:
			r.Violate("life", jobs[i].id, "no order of the calls on it explains all answers")
		}
	}
}
