package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// shard is a fake log and state machine: it counts ready jobs by topic and applies submitted
// operations when the test calls apply.
type shard struct {
	d       *Dispatcher
	ready   map[string]uint64
	held    map[string]uint64 // a finish makes one of them ready
	nextID  uint64
	pending []pendingSubmit
	empty   int            // Reserves that found nothing
	back    int            // jobs given back
	owner   map[uint64]int // seq -> times handed out and not given back
}

type pendingSubmit struct {
	ops  []*jobpb.Op
	done func([]*jobpb.Result, error)
}

func newShard(limit int) *shard {
	s := &shard{ready: map[string]uint64{}, held: map[string]uint64{}, owner: map[uint64]int{}}
	s.d = New(func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
		s.pending = append(s.pending, pendingSubmit{ops, done})
	}, limit, nil)
	return s
}

func (s *shard) add(topic string, n uint64) {
	s.ready[topic] += n
	s.d.Update([]Update{{Topic: topic, Ready: s.ready[topic]}})
}

// apply commits the oldest submission: first the state changes, then the results,
// as the node does.
func (s *shard) apply() bool {
	if len(s.pending) == 0 {
		return false
	}
	p := s.pending[0]
	s.pending = s.pending[1:]
	var rs []*jobpb.Result
	for _, op := range p.ops {
		r := &jobpb.Result{}
		switch k := op.Kind.(type) {
		case *jobpb.Op_Reserve:
			for _, t := range k.Reserve.Topics {
				for s.ready[t] > 0 && len(r.Jobs) < int(k.Reserve.Max) {
					s.ready[t]--
					s.nextID++
					r.Jobs = append(r.Jobs, &jobpb.Reserved{Seq: s.nextID, Topic: t, Generation: 1})
					s.owner[s.nextID]++
				}
			}
			if len(r.Jobs) == 0 {
				s.empty++
			}
		case *jobpb.Op_Finish:
			r.Id = k.Finish.Ref.Id
			if topic := k.Finish.Ref.Id; s.held[topic] > 0 {
				s.held[topic]--
				s.ready[topic]++
			}
		case *jobpb.Op_Release:
			s.back++
			delete(s.owner, k.Release.Ref.Seq)
		}
		rs = append(rs, r)
	}
	for t, n := range s.ready {
		s.d.Update([]Update{{Topic: t, Ready: n, Held: s.held[t]}})
	}
	p.done(rs, nil)
	return true
}

func (s *shard) settle() {
	for s.apply() {
	}
}

type got struct {
	calls int
	jobs  []*jobpb.Reserved
	err   error
}

func (s *shard) wait(max uint32, topics ...string) (*Waiter, *got) {
	g := &got{}
	w := &Waiter{Reserve: &jobpb.Reserve{Topics: topics, Max: max}}
	w.Done = func(jobs []*jobpb.Reserved, err error) { g.calls++; g.jobs, g.err = jobs, err }
	return w, g
}

// addWaiter adds a waiter.
func (s *shard) addWaiter(max uint32, topics ...string) (*Waiter, *got) {
	w, g := s.wait(max, topics...)
	s.d.Add(w)
	return w, g
}

func TestWaiterGetsAJobThatBecomesReady(t *testing.T) {
	s := newShard(10)
	_, g := s.addWaiter(1, "a")
	require.Empty(t, s.pending, "nothing ready, so nothing may enter the log")
	s.add("a", 1)
	s.settle()
	require.Equal(t, 1, g.calls)
	require.Len(t, g.jobs, 1)
	require.Zero(t, s.d.Waiting())
}

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	s := newShard(10)
	var gots []*got
	for range 4 {
		_, g := s.addWaiter(1, "a")
		gots = append(gots, g)
	}
	s.add("a", 2)
	require.Len(t, s.pending, 1, "reserves that can be served together share a submission")
	s.settle()
	require.Equal(t, []int{1, 1, 0, 0}, []int{gots[0].calls, gots[1].calls, gots[2].calls, gots[3].calls})
	require.Zero(t, s.empty)
}

func TestWaiterThatFoundNothingKeepsItsPosition(t *testing.T) {
	s := newShard(10)
	_, g1 := s.addWaiter(1, "a")
	s.add("a", 1)
	_, g2 := s.addWaiter(1, "a")
	s.ready["a"] = 0 // deleted between the update and the reserve
	s.settle()
	require.Zero(t, g1.calls)
	s.add("a", 1)
	s.settle()
	require.Equal(t, 1, g1.calls)
	require.Zero(t, g2.calls)
}

func TestPollReturnsAtOnce(t *testing.T) {
	s := newShard(10)
	w, g := s.wait(1, "a")
	w.Poll = true
	s.d.Add(w)
	require.Equal(t, 1, g.calls)
	require.NoError(t, g.err)
	require.Empty(t, g.jobs)
}

func TestConsumerThatHungUpLeavesNoReservation(t *testing.T) {
	s := newShard(10)
	w, g := s.addWaiter(5, "a")
	s.add("a", 3)
	s.d.Cancel(w, false) // while its Reserve is under way
	s.settle()
	require.Equal(t, 1, g.calls)
	require.Empty(t, g.jobs)
	require.Equal(t, 3, s.back)
	require.Empty(t, s.owner)
}

func TestWaitThatEndsDuringItsReserveStillDelivers(t *testing.T) {
	s := newShard(10)
	w, g := s.addWaiter(5, "a")
	s.add("a", 3)
	s.d.Cancel(w, true)
	s.settle()
	require.Len(t, g.jobs, 3)
	require.Zero(t, s.back)
}

func TestClaimTakesAsManyWaitersAsJobsAreDue(t *testing.T) {
	s := newShard(10)
	for _, max := range []uint32{1, 2, 1, 1} {
		s.addWaiter(max, "a")
	}
	s.d.Update([]Update{{Topic: "a", NextDue: 100, Soon: []int64{100, 101, 101, 200}}})
	ops, _ := s.d.Claim(101)
	require.Len(t, ops, 2, "three jobs are due: one for the first waiter, two for the second")
	require.Equal(t, uint32(2), ops[1].GetReserve().Max)
}

func TestClaimTakesOneWaiterForEachDueTopic(t *testing.T) {
	s := newShard(10)
	w1, g1 := s.wait(1, "a", "b")
	w2, g2 := s.wait(1, "a", "b")
	w3, g3 := s.wait(1, "b")
	for _, w := range []*Waiter{w1, w2, w3} {
		s.d.Add(w)
	}
	s.d.Update([]Update{{Topic: "a", NextDue: 100}, {Topic: "b", NextDue: 100}, {Topic: "c", NextDue: 100}})
	early, _ := s.d.Claim(99)
	require.Empty(t, early)
	ops, done := s.d.Claim(100)
	require.Len(t, ops, 2)
	again, _ := s.d.Claim(100)
	require.Len(t, again, 1, "the two that are under way are not claimed again")
	done([]*jobpb.Result{{Jobs: []*jobpb.Reserved{{Seq: 1}}}, {Jobs: []*jobpb.Reserved{{Seq: 2}}}}, nil)
	require.Equal(t, 2, g1.calls+g2.calls+g3.calls)
}

func TestStopSendsWaitersToTheNextLeader(t *testing.T) {
	s := newShard(10)
	idle, g1 := s.wait(1, "a")
	busy, g2 := s.wait(1, "b")
	s.d.Add(idle)
	s.d.Add(busy)
	s.add("b", 1)
	s.d.Stop()
	require.ErrorIs(t, g1.err, ErrStopped)
	require.Zero(t, g2.calls)
	s.settle()
	require.Len(t, g2.jobs, 1, "a reserve that was committed still delivers")
	_, g3 := s.addWaiter(1, "a")
	require.ErrorIs(t, g3.err, ErrStopped)
}

func TestWaitersAreBounded(t *testing.T) {
	s := newShard(1)
	a, _ := s.wait(1, "a")
	b, g := s.wait(1, "a")
	s.d.Add(a)
	s.d.Add(b)
	require.ErrorIs(t, g.err, ErrFull)
}

// With random arrivals, departures, adds and commits, each waiter ends exactly once, no job
// is handed out twice or lost, and nothing is left in memory.
func TestRandomOperationsLoseNothing(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newShard(1000)
		type client struct {
			w    *Waiter
			g    *got
			keep bool
		}
		var clients []client
		var added uint64
		for range 200 {
			topic := fmt.Sprint("t", rnd.IntN(3))
			switch rnd.IntN(5) {
			case 0, 1:
				w, g := s.wait(uint32(1+rnd.IntN(3)), topic, fmt.Sprint("t", rnd.IntN(3)))
				w.Poll = rnd.IntN(4) == 0
				if w.Poll && rnd.IntN(2) == 0 {
					w.First = []*jobpb.Op{finishOf(topic)}
				}
				clients = append(clients, client{w, g, true})
				s.d.Add(w)
			case 2:
				n := uint64(rnd.IntN(3))
				added += n
				s.add(topic, n)
			case 3:
				s.apply()
			case 4:
				if len(clients) > 0 {
					c := &clients[rnd.IntN(len(clients))]
					c.keep = rnd.IntN(2) == 0
					s.d.Cancel(c.w, c.keep)
				}
			}
		}
		s.settle()
		s.d.Stop()
		var delivered uint64
		for i, c := range clients {
			require.Equal(t, 1, c.g.calls, "seed %d: waiter %d must end exactly once", seed, i)
			delivered += uint64(len(c.g.jobs))
		}
		var left uint64
		for _, n := range s.ready {
			left += n
		}
		require.Equal(t, added, delivered+left+uint64(s.back), "seed %d: jobs lost or made up", seed)
		require.Len(t, s.owner, int(delivered), "seed %d", seed)
		require.Zero(t, s.d.Waiting(), "seed %d", seed)
		require.Empty(t, s.d.due, "seed %d", seed)
		for name, tp := range s.d.topics {
			require.Zero(t, tp.asked, "seed %d: topic %s", seed, name)
			require.Zero(t, tp.names, "seed %d: topic %s", seed, name)
		}
	}
}

func TestResponsesInFlightShareTheBound(t *testing.T) {
	s := newShard(1000)
	s.add("t", 1000)
	for range 100 {
		s.d.Add(&Waiter{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 5, MaxBytes: 16 << 20}, Done: func([]*jobpb.Reserved, error) {}})
	}
	s.d.Add(&Waiter{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, Done: func([]*jobpb.Reserved, error) {}})
	asked := func() (shares []int64) {
		for _, p := range s.pending {
			for _, op := range p.ops {
				shares = append(shares, op.GetReserve().MaxBytes)
			}
		}
		return shares
	}
	shares := asked()
	require.Len(t, shares, 101)
	require.EqualValues(t, 16<<20, shares[0], "few may have what they asked for")
	require.EqualValues(t, maxBodyBytes/100, shares[99], "many share it")
	require.Zero(t, shares[100], "one job may have any size")
	s.settle()
	s.add("t", 5)
	s.d.Add(&Waiter{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 5, MaxBytes: 16 << 20}, Done: func([]*jobpb.Reserved, error) {}})
	require.EqualValues(t, 16<<20, asked()[0], "what has landed counts no more")
	s.settle()
}

func TestTopicsThatWaitersNameAreBounded(t *testing.T) {
	s := newShard(2)
	many := make([]string, placesPerWaiter*2)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	var errs []error
	wait := func(topics []string) *Waiter {
		w := &Waiter{Reserve: &jobpb.Reserve{Topics: topics, Max: 1}, Done: func(_ []*jobpb.Reserved, err error) { errs = append(errs, err) }}
		s.d.Add(w)
		return w
	}
	all := wait(many)
	wait([]string{"one more"})
	require.Equal(t, []error{ErrFull}, errs)
	s.d.Cancel(all, false)
	wait([]string{"one more"})
	require.Equal(t, []error{ErrFull, nil}, errs, "the place of one that went is free")
	require.Equal(t, 1, s.d.Waiting())
}
