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
	limit int    // of attempts; 0: none
	body  string // what a delivery brings
	rev   uint64 // the revision; 0 unknown
	topic string
	late  bool   // it was kicked after its reservation expired, whose token may still finish it
	over  string // how the life before ended, where the topic retains such jobs
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

// steps gives the states that a call can leave. The job may have expired before.
func steps(from life, c call) []life {
	to := step(from, c)
	for _, left := range from.lapse(c) {
		to = append(to, step(left, c)...)
	}
	return to
}

func step(from life, c call) []life {
	var to []life
	switch c.Outcome {
	case Fail:
		if from.refuses(c) {
			return []life{from}
		}
		return nil
	case Unknown:
		to = append(to, from) // nothing was done
	}
	switch c.Kind {
	case Add:
		return append(to, from.add(c)...)
	case Deliver:
		return append(to, from.deliver(c)...)
	case Update:
		return append(to, from.update(c)...)
	case Get:
		from, fits := from.tried(c)
		switch {
		case !fits || !from.shows(c):
			return nil
		case from.phase == absent:
			return []life{from}
		}
		return []life{from.learn(c)}
	case Delete:
		if from.phase != absent && from.is(c.Seq) && from.meets(c) {
			to = append(to, from.end(c, "deleted"))
		}
		return to
	case Kick:
		return append(to, from.kick(c)...)
	case Move, MoveTopic:
		return append(to, from.move(c)...)
	case KickTopic:
		return append(to, from.kickAway(c)...)
	case Purge:
		return append(to, from.purge(c)...)
	}
	held := from.phase == reserved || from.late && c.Kind == Finish
	if !held || from.gen != c.Generation || !from.is(c.Seq) {
		return to
	}
	return append(to, from.settle(c)...)
}

// refuses reports whether the state explains why nothing was done.
func (l life) refuses(c call) bool {
	if c.Code == notFound {
		return l.phase == absent || (c.Seq != 0 && l.seq != c.Seq) // by token: of another life
	}
	return l.phase != absent && l.forbids(c)
}

// is reports whether the living job can have the number.
func (l life) is(seq uint64) bool {
	return seq == 0 || l.seq == seq || (l.seq == 0 && seq > l.past)
}

// end is what is left of a life.
func (l life) end(c call, how string) life {
	left := life{past: max(l.past, l.seq)}
	if c.story.retained {
		left.over, left.gen = how, l.gen
	}
	return left
}

// learn notes what the call tells.
func (l life) learn(c call) life {
	if l.seq == 0 {
		l.seq = c.Seq
	}
	if c.Revision != 0 {
		l.rev = c.Revision
	}
	return l
}

func (l life) add(c call) []life {
	if l.phase != absent {
		return l.addAgain(c)
	}
	if l.over != "" {
		return l.addRetained(c)
	}
	if c.Result != "" && c.Result != created || c.Seq != 0 && c.Seq <= l.past {
		return nil
	}
	return []life{l.fresh(c)}
}

// fresh is the life that an add begins.
func (l life) fresh(c call) life {
	return life{
		phase: waiting, past: max(l.past, l.seq), seq: c.Seq, until: c.Invoke + c.Delay.Microseconds(),
		limit: c.MaxAttempts, body: c.Body, topic: c.Topic, rev: 1,
	}
}

func (l life) deliver(c call) []life {
	fits := l.phase != absent && l.is(c.Seq) && c.Generation > l.gen && c.Body == l.body && (c.Topic == "" || c.Topic == l.topic)
	if !fits || !l.ready(c) {
		return nil
	}
	l.late = false
	l.phase, l.seq, l.gen, l.attempts, l.until, l.rev = reserved, c.Seq, c.Generation, c.Attempts, c.ReservedUntil, 0
	return []life{l}
}

// ready reports whether the job can have been ready when the call was answered.
func (l life) ready(c call) bool {
	switch l.phase {
	case waiting:
		return c.by(l.until)
	case reserved:
		if l.exhausted() {
			return c.by(l.until) && c.story.kickedSince(l.until, c)
		}
		return c.by(l.until + c.story.backoff(l.attempts))
	case dead:
		return c.story.kickedSince(l.until, c)
	}
	return false
}

// settle ends or extends the reservation whose holder calls.
func (l life) settle(c call) []life {
	next := l.wrote(c)
	next.phase, next.until = waiting, 0
	switch c.Kind {
	case Finish:
		return []life{next.end(c, "finished")}
	case Touch:
		next.phase, next.until = reserved, max(c.ReservedUntil, c.Invoke+c.TTR.Microseconds())
	case Bury:
		next.phase, next.until = dead, c.Invoke
	case Release:
		next.until = c.Invoke + c.story.releaseWait(c.Op, l.attempts)
		if l.limit > 0 && (l.attempts == 0 || l.exhausted()) {
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
	if l.phase == absent || l.held(c) {
		return nil
	}
	l = l.wrote(c)
	l.late = l.late || l.phase == reserved
	l.phase, l.attempts, l.until = waiting, 0, 0
	return []life{l}
}

// shows reports whether the state explains what a read found.
func (l life) shows(c call) bool {
	if l.phase == absent {
		return c.State == cmp.Or(l.over, Gone)
	}
	return l.is(c.Seq) && l.canBe(c.State, c) && l.hasRevision(c, 0) && (c.Body == "" || c.Body == l.body)
}

// canBe reports whether a living job can have been in a state when the call was
// answered.
func (l life) canBe(state string, c call) bool {
	over := l.phase == reserved && c.by(l.until)
	switch state {
	case "delayed":
		paced := (over || l.phase == dead) && c.story.pacedSince(l.until, c)
		return l.phase == waiting || paced || (over && c.story.backoff(l.attempts) > 0)
	case "ready":
		return l.ready(c)
	case "reserved":
		return l.phase == reserved || l.ready(c) // by a client that never knew
	case "dead":
		return l.phase == dead || (l.limit > 0 && (over || l.phase == waiting))
	}
	return false
}

// exhausted reports whether the last attempt that a client saw was the last.
func (l life) exhausted() bool { return l.limit > 0 && l.attempts >= l.limit }

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
	_, last := s.span()
	sweeps := slices.DeleteFunc(slices.Clone(s.sweeps), func(o *Op) bool { return o.Invoke > last })
	for _, ops := range [][]*Op{s.adds, sweeps, s.moves, s.updates, s.deliveries, s.fenced, s.deletes, s.jobKicks, s.gets} {
		slices.SortStableFunc(ops, func(a, b *Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
		for _, op := range ops {
			end := op.Complete
			switch {
			case op.Outcome == Fail && !op.explained():
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

// explained reports whether a refusal says something about the job.
func (o *Op) explained() bool {
	if o.Group != 0 && o.Kind == Add {
		return false // another part of the call may be the reason
	}
	switch o.Code {
	case notFound:
		return true
	case alreadyReserved, alreadyDead, conditionFailed:
		return o.Kind == Add || o.Kind == Update || o.Kind == Delete
	}
	return false
}

// effect is what a call would do, apart from when and where.
func (o *Op) effect() Op {
	e := Op{Kind: o.Kind, Delay: o.Delay, Generation: o.Generation}
	if o.Kind == Update || o.Kind == KickTopic || o.Kind >= Move || o.IfExists != "" {
		e.Invoke = o.Invoke // it can have its effect several times in a life
	}
	if o.Kind == Delete {
		e.IfRevision, e.IfState = o.IfRevision, o.IfState
	}
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
