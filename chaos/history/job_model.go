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
// Jobs also change without a call: they fall due and reservations expire. The model
// makes such a step when a call needs it and the call's end allows it. Clients do not
// see every reservation either: one whose answer was lost is hidden, so a generation
// may skip numbers.

// jobModel is a state of the model.
type jobModel struct {
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
	job *jobHistory
}

// by reports whether an instant can have come when the call was answered.
func (c call) by(instant int64) bool {
	return c.Outcome == Unknown || instant <= c.Complete+c.job.slack()
}

// steps gives the states that a call can leave. The job may have expired before.
func steps(from jobModel, c call) []jobModel {
	to := step(from, c)
	for _, left := range from.lapse(c) {
		to = append(to, step(left, c)...)
	}
	return to
}

func step(from jobModel, c call) []jobModel {
	var to []jobModel
	switch c.Outcome {
	case Fail:
		if from.refuses(c) {
			return []jobModel{from}
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
			return []jobModel{from}
		}
		return []jobModel{from.learn(c)}
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
	return append(to, from.endReservation(c)...)
}

// refuses reports whether the state explains why nothing was done.
func (m jobModel) refuses(c call) bool {
	if c.Code == notFound {
		return m.phase == absent || (c.Seq != 0 && m.seq != c.Seq) // by token: of another life
	}
	return m.phase != absent && m.forbids(c)
}

// is reports whether the present job can have the number.
func (m jobModel) is(seq uint64) bool {
	return seq == 0 || m.seq == seq || (m.seq == 0 && seq > m.past)
}

// end is what is left of a life.
func (m jobModel) end(c call, how string) jobModel {
	left := jobModel{past: max(m.past, m.seq)}
	if c.job.retained {
		left.over, left.gen = how, m.gen
	}
	return left
}

// firstRevision is the revision of a job that the call makes; 0: not known. What an import brings beside
// the job itself, such as attempts, is written as a revision of its own.
func firstRevision(c call) uint64 {
	if c.Imported {
		return 0
	}
	return 1
}

// learn records what the call shows about the job.
func (m jobModel) learn(c call) jobModel {
	if m.seq == 0 {
		m.seq = c.Seq
	}
	if c.Revision != 0 {
		m.rev = c.Revision
	}
	return m
}

func (m jobModel) add(c call) []jobModel {
	if m.phase != absent {
		return m.addAgain(c)
	}
	if m.over != "" {
		return m.addRetained(c)
	}
	if c.Result != "" && c.Result != created || c.Seq != 0 && c.Seq <= m.past {
		return nil
	}
	return []jobModel{m.fresh(c)}
}

// fresh is the life that an add begins.
func (m jobModel) fresh(c call) jobModel {
	return jobModel{
		phase: waiting, past: max(m.past, m.seq), seq: c.Seq, until: c.Invoke + c.Delay.Microseconds(),
		attempts: c.Attempts, limit: c.MaxAttempts, body: c.Body, topic: c.Topic, rev: firstRevision(c),
	}
}

func (m jobModel) deliver(c call) []jobModel {
	fits := m.phase != absent && m.is(c.Seq) && c.Generation > m.gen && c.Body == m.body && (c.Topic == "" || c.Topic == m.topic)
	if !fits || !m.ready(c) {
		return nil
	}
	m.late = false
	m.phase, m.seq, m.gen, m.attempts, m.until, m.rev = reserved, c.Seq, c.Generation, c.Attempts, c.ReservedUntil, 0
	return []jobModel{m}
}

// ready reports whether the job can have been ready when the call was answered.
func (m jobModel) ready(c call) bool {
	switch m.phase {
	case waiting:
		return c.by(m.until)
	case reserved:
		if m.exhausted() {
			return c.by(m.until) && c.job.kickedSince(m.until, c)
		}
		return c.by(m.until + c.job.backoff(m.attempts))
	case dead:
		return c.job.kickedSince(m.until, c)
	}
	return false
}

// endReservation ends or extends the reservation whose holder calls.
func (m jobModel) endReservation(c call) []jobModel {
	next := m.wrote(c)
	next.phase, next.until = waiting, 0
	switch c.Kind {
	case Finish:
		return []jobModel{next.end(c, "finished")}
	case Touch:
		next.phase, next.until = reserved, max(c.ReservedUntil, c.Invoke+c.TTR.Microseconds())
	case Bury:
		next.phase, next.until = dead, c.Invoke
	case Release:
		next.until = c.Invoke + c.job.releaseWait(c.Op, m.attempts)
		if m.limit > 0 && (m.attempts == 0 || m.exhausted()) {
			died := next
			died.phase, died.until = dead, c.Invoke
			if m.attempts > 0 {
				return []jobModel{died}
			}
			return []jobModel{next, died}
		}
	}
	return []jobModel{next}
}

// kick makes a dead or a delayed job ready.
func (m jobModel) kick(c call) []jobModel {
	if m.phase == absent || m.held(c) {
		return nil
	}
	m = m.wrote(c)
	m.late = m.late || m.phase == reserved
	m.phase, m.attempts, m.until = waiting, 0, 0
	return []jobModel{m}
}

// shows reports whether the state explains what a read found.
func (m jobModel) shows(c call) bool {
	if m.phase == absent {
		return c.State == cmp.Or(m.over, Gone)
	}
	return m.is(c.Seq) && m.canBe(c.State, c) && m.hasRevision(c, 0) && (c.Body == "" || c.Body == m.body)
}

// canBe reports whether an existing job can have been in a state when the call was
// answered.
func (m jobModel) canBe(state string, c call) bool {
	over := m.phase == reserved && c.by(m.until)
	switch state {
	case "delayed":
		paced := (over || m.phase == dead) && c.job.pacedSince(m.until, c)
		return m.phase == waiting || paced || (over && c.job.backoff(m.attempts) > 0)
	case "ready":
		return m.ready(c)
	case "reserved":
		return m.phase == reserved || m.ready(c) // by a client that never knew
	case "dead":
		return m.phase == dead || (m.limit > 0 && (over || m.phase == waiting))
	}
	return false
}

// exhausted reports whether the last attempt that a client saw was the last.
func (m jobModel) exhausted() bool { return m.limit > 0 && m.attempts >= m.limit }

// lifeModel is for one id at a time.
var lifeModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{jobModel{}} },
	Step: func(state, input, _ any) []any {
		next := steps(state.(jobModel), input.(call))
		states := make([]any, len(next))
		for i, l := range next {
			states[i] = l
		}
		return states
	},
}).ToModel()

// calls are the operations that say something about a life.
func (s *jobHistory) calls() []porcupine.Operation {
	var list []porcupine.Operation
	lives, bodies := s.lives(), s.bodies()
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
				effect := op.effect()
				if !bodies[effect.Body] {
					effect.Body = "" // no client can distinguish it
				}
				if open[effect]++; op.idle() || open[effect] > lives {
					continue
				}
				end = math.MaxInt64
			}
			list = append(list, porcupine.Operation{ClientId: op.Client, Input: call{op, s}, Call: op.Invoke, Return: end})
		}
	}
	return list
}

// shown is what the search looked at.
func (s *jobHistory) shown() []Op {
	var ops []Op
	for _, o := range s.calls() {
		ops = append(ops, *o.Input.(call).Op)
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
	return ops[:min(len(ops), maxCalls)]
}

// lives is one more than the number of lives of the id that clients can distinguish. Of
// calls with the same unknown effect only that many, the earliest, must be considered.
// Each can have its effect only once in a life, and an earlier call may have had the
// effect of a later one. This keeps the search short.
func (s *jobHistory) lives() int {
	seqs := map[uint64]bool{}
	nameless := 0 // lives that a delete ended without saying which
	for _, ops := range [][]*Op{s.adds, s.deliveries, s.gets, s.updates, s.moves, s.jobKicks, s.deletes} {
		for _, op := range ops {
			switch {
			case op.Outcome != OK:
			case op.Seq != 0:
				seqs[op.Seq] = true
			case op.Kind == Delete:
				nameless++
			}
		}
	}
	return len(seqs) + nameless + 1
}

// bodies are those that clients saw.
func (s *jobHistory) bodies() map[string]bool {
	seen := map[string]bool{}
	for _, ops := range [][]*Op{s.deliveries, s.gets} {
		for _, op := range ops {
			seen[op.Body] = true
		}
	}
	return seen
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
	if o.Kind == Add {
		e.Topic, e.Body, e.MaxAttempts = o.Topic, o.Body, o.MaxAttempts
	}
	if o.Kind == Update || o.Kind == Kick || o.Kind == KickTopic || o.Kind >= Move || o.IfExists != "" {
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
func checkLives(jobs []*jobHistory, r *Report) {
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
			if r.Found["life"] == 0 {
				r.Calls = jobs[i].shown()
			}
			r.Violate("life", jobs[i].id, "no order of the calls on it explains all answers")
		}
	}
}
