package dispatch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// finishOf finishes a job of the topic.
func finishOf(topic string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: topic}}}}
}

// addAfter adds a waiter that finishes a job of its first topic first.
func (s *shard) addAfter(topics ...string) (*Waiter, *got) {
	w, g := s.wait(1, topics...)
	w.Poll, w.First = true, []*jobpb.Op{finishOf(topics[0])}
	s.d.Add(w)
	return w, g
}

func (s *shard) limited(topic string, ready, held uint64) {
	s.ready[topic], s.held[topic] = ready, held
	s.d.Update([]Update{{Topic: topic, Ready: ready, Held: held}})
}

func TestAFinishSharesTheProposalOfTheReserve(t *testing.T) {
	for name, c := range map[string]struct {
		ready, held uint64
		ops         int
	}{
		"a job is ready":             {1, 0, 2},
		"the finish makes one ready": {0, 1, 2},
		"nothing is ready":           {0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard(10)
			s.limited("a", c.ready, c.held)
			w, g := s.addAfter("a")
			require.Len(t, s.pending, 1)
			require.Len(t, s.pending[0].ops, c.ops)
			require.NotNil(t, s.pending[0].ops[0].GetFinish(), "the finish comes first")
			require.Zero(t, g.calls, "the finish is not applied yet")
			s.settle()
			require.Equal(t, 1, g.calls)
			require.NoError(t, g.err)
			require.Len(t, g.jobs, c.ops-1)
			require.Equal(t, []*jobpb.Result{{Id: "a"}}, w.Results)
			require.Zero(t, s.d.Waiting())
			require.Zero(t, s.empty)
		})
	}
}

// A Reserve in the log names only topics with jobs. All else in it is as its consumer asked.
func TestAReserveOfSomeTopicsIsOtherwiseTheSame(t *testing.T) {
	s := newShard(10)
	s.limited("a", 1, 0)
	w, _ := s.wait(1, "a", "b")
	w.Poll = true
	w.Reserve.TtrMs, w.Reserve.Consumer, w.Reserve.HoldMs = 1000, "c", 5
	s.d.Add(w)
	require.Equal(t, &jobpb.Reserve{Topics: []string{"a"}, Max: 1, TtrMs: 1000, Consumer: "c", HoldMs: 5}, s.pending[0].ops[0].GetReserve())
}

func TestAFinishTakesAnAdvanceAlongForAJobThatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		due, now int64
		others   bool
		ops      int
	}{
		"due":                            {100, 100, false, 3},
		"not yet":                        {101, 100, false, 1},
		"others come first":              {100, 100, true, 1},
		"nothing":                        {0, 100, false, 1},
		"a job of others is due as well": {100, 100, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard(10)
			s.d.Update([]Update{{Topic: "a", NextDue: c.due}})
			if c.others {
				s.addWaiter(1, "a")
			}
			if strings.HasPrefix(name, "a job of others") {
				s.d.Update([]Update{{Topic: "c", NextDue: 100}})
				s.addWaiter(1, "c") // its job would need another Reserve
			}
			s.d.Update([]Update{{Topic: "nobody's", NextDue: 1}})
			s.d.Update([]Update{{Topic: "later", NextDue: 101}})
			s.addWaiter(1, "later")
			w, g := s.wait(1, "a", "b")
			w.Poll, w.First = true, []*jobpb.Op{finishOf("a")}
			w.Advance, w.Now = &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 9}}}, c.now
			s.d.Add(w)
			require.Len(t, s.pending, 1)
			ops := s.pending[0].ops
			require.Len(t, ops, c.ops)
			results := make([]*jobpb.Result, len(ops))
			for i := range results {
				results[i] = &jobpb.Result{Count: uint32(i)}
			}
			if c.ops == 3 {
				require.NotNil(t, ops[0].GetFinish())
				require.EqualValues(t, 9, ops[1].GetAdvance().GetMax())
				require.Equal(t, []string{"a"}, ops[2].GetReserve().GetTopics())
				results[2].Jobs = []*jobpb.Reserved{{Id: "next"}}
			}
			s.pending[0].done(results, nil)
			require.Equal(t, results[:1], w.Results)
			require.Len(t, g.jobs, (c.ops-1)/2)
		})
	}
}

func TestAPollTakesAnAdvanceAlongForAJobThatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		due, now int64
		ready    uint64
		others   bool
		ops      int
	}{
		"due":               {100, 100, 0, false, 2},
		"not yet":           {101, 100, 0, false, 0},
		"one is ready":      {100, 100, 1, false, 1},
		"others come first": {100, 100, 0, true, 0},
		"nothing":           {0, 100, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShard(10)
			s.d.Update([]Update{{Topic: "a", NextDue: c.due, Ready: c.ready}})
			if c.others {
				s.addWaiter(1, "a")
			}
			w, g := s.wait(1, "a", "b")
			w.Poll = true
			w.Advance, w.Now = &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 9}}}, c.now
			s.d.Add(w)
			if c.ops == 0 {
				require.Empty(t, s.pending)
				require.Equal(t, 1, g.calls)
				return
			}
			require.Len(t, s.pending, 1)
			ops := s.pending[0].ops
			require.Len(t, ops, c.ops)
			require.NotNil(t, ops[c.ops-1].GetReserve())
			results := make([]*jobpb.Result, c.ops)
			for i := range results {
				results[i] = &jobpb.Result{}
			}
			results[c.ops-1].Jobs = []*jobpb.Reserved{{Id: "next"}}
			s.pending[0].done(results, nil)
			require.Len(t, g.jobs, 1)
		})
	}
}

func TestWhatAFinishMakesReadyGoesToTheLongestWaiting(t *testing.T) {
	s := newShard(10)
	s.limited("a", 0, 1)
	_, first := s.addWaiter(1, "a")
	_, second := s.addAfter("a")
	s.settle()
	require.Len(t, first.jobs, 1)
	require.Empty(t, second.jobs)
	require.Equal(t, 1, second.calls)
}

func TestTheOutcomeOfAFinishIsThatOfItsProposal(t *testing.T) {
	for name, ready := range map[string]uint64{"with a reserve": 1, "alone": 0} {
		t.Run(name, func(t *testing.T) {
			s := newShard(10)
			s.limited("a", ready, 0)
			w, g := s.addAfter("a")
			p := s.pending[0]
			s.pending = nil
			p.done(nil, job.Unknown("the leader was lost"))
			require.Equal(t, job.CodeUnknown, job.CodeOf(g.err))
			require.Nil(t, w.Results)
			require.Zero(t, s.d.Waiting())
		})
	}
}

func TestAFinishIsAloneIfNothingIsReady(t *testing.T) {
	s := newShard(10)
	w, _ := s.addAfter("a")
	require.True(t, s.d.Alone(w))
	s.settle()
	require.True(t, s.d.Alone(w), "it was")
	s.add("a", 1)
	w, _ = s.addAfter("a")
	require.False(t, s.d.Alone(w))
	s.settle()
}

func TestAFinishIsKnownThoughTheDispatcherStops(t *testing.T) {
	s := newShard(10)
	w, g := s.addAfter("a")
	s.d.Stop()
	s.settle()
	require.Equal(t, got{calls: 1}, *g)
	require.Len(t, w.Results, 1)
	late, g := s.addAfter("a")
	require.ErrorIs(t, g.err, ErrStopped)
	require.Empty(t, s.pending, "nothing is proposed")
	require.Nil(t, late.Results)
}

func TestAConsumerThatHungUpAfterItsFinishLeavesNoReservation(t *testing.T) {
	s := newShard(10)
	s.add("a", 1)
	w, g := s.addAfter("a")
	s.d.Cancel(w, false)
	s.settle()
	require.Equal(t, 1, g.calls)
	require.Equal(t, 1, s.back)
}

// The plain operation would succeed as well.
func TestAFinishIsNotRefusedThoughManyWait(t *testing.T) {
	s := newShard(1)
	_, waiting := s.addWaiter(1, "b")
	s.add("a", 1)
	w, g := s.addAfter("a")
	s.settle()
	require.NoError(t, g.err)
	require.Len(t, g.jobs, 1)
	require.Len(t, w.Results, 1)
	require.Zero(t, waiting.calls)
	_, late := s.addWaiter(1, "c")
	require.ErrorIs(t, late.err, ErrFull)
}

// The token of a rate is refunded if the reservation is of the current second.
func TestAJobThatGoesBackNamesWhenItWasReserved(t *testing.T) {
	ops := GiveBack([]*jobpb.Reserved{{Id: "a", TtrMs: 1000, ReservedUntilMs: 11_205}}, 205)
	require.EqualValues(t, 10_000, ops[0].GetRelease().ReservedMs)
}
