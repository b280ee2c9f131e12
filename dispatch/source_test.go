package dispatch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// fed is a source whose proposals the test answers.
type fed struct {
	*Source
	pending []pendingSubmit
}

func (f *fed) submit(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
	f.pending = append(f.pending, pendingSubmit{ops, done})
}

func (f *fed) answer(r *jobpb.Result, err error) {
	p := f.pending[0]
	f.pending = f.pending[1:]
	if err != nil {
		p.done(nil, err)
		return
	}
	p.done([]*jobpb.Result{r}, nil)
}

func twoSources() (ws *Waiters, a, b *fed) {
	ws, a, b = NewWaiters(10), new(fed), new(fed)
	a.Source, b.Source = ws.Open(a.submit, nil), ws.Open(b.submit, nil)
	return ws, a, b
}

func waitOn(ws *Waiters, max uint32, topics ...string) (*Waiter, *got) {
	g := new(got)
	w := &Waiter{Reserve: &jobpb.Reserve{Topics: topics, Max: max}}
	w.Done = func(jobs []*jobpb.Reserved, err error) { g.calls++; g.jobs, g.err = jobs, err }
	ws.Add(w)
	return w, g
}

func TestAReserveIsForTheJobsOfOneSource(t *testing.T) {
	ws, a, b := twoSources()
	a.Update([]Update{{Topic: "x", Ready: 1}})
	b.Update([]Update{{Topic: "x", Ready: 5}, {Topic: "y", Ready: 5}})
	waitOn(ws, 3, "x", "y")
	require.Len(t, a.pending, 1)
	require.Equal(t, []string{"x"}, a.pending[0].ops[0].GetReserve().Topics)
	require.Empty(t, b.pending, "no waiter has two reserves under way")
	waitOn(ws, 3, "x", "y")
	require.Len(t, a.pending, 1, "its one job is claimed")
	require.Equal(t, []string{"x", "y"}, b.pending[0].ops[0].GetReserve().Topics)
}

func TestAWaiterGetsTheJobOfWhicheverSourceHasOne(t *testing.T) {
	ws, a, b := twoSources()
	_, first := waitOn(ws, 1, "x")
	_, second := waitOn(ws, 1, "x")
	b.Update([]Update{{Topic: "x", Ready: 1}})
	a.Update([]Update{{Topic: "x", Ready: 1}})
	b.answer(&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: 2}}}, nil)
	a.answer(&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: 1}}}, nil)
	require.EqualValues(t, 2, first.jobs[0].Seq)
	require.EqualValues(t, 1, second.jobs[0].Seq)
	require.Zero(t, ws.Waiting())
	a.Update([]Update{{Topic: "x"}})
	require.NotEmpty(t, ws.topics, "the other source has jobs of it")
	b.Update([]Update{{Topic: "x"}})
	require.Empty(t, ws.topics)
}

func TestDueJobsAreClaimedAtTheirSource(t *testing.T) {
	ws, a, b := twoSources()
	a.Update([]Update{{Topic: "x", NextDue: 100}})
	b.Update([]Update{{Topic: "x", NextDue: 90}})
	require.Zero(t, a.NextDue(), "nobody waits")
	waitOn(ws, 1, "x")
	require.EqualValues(t, 100, a.NextDue())
	require.EqualValues(t, 90, b.NextDue())
	ops, done := b.Claim(90)
	require.Len(t, ops, 1)
	require.Zero(t, a.NextDue(), "its only waiter is claimed")
	done([]*jobpb.Result{{}}, nil)
	require.EqualValues(t, 100, a.NextDue())
}

func TestWaitersOfAClosedSourceGoOnToWait(t *testing.T) {
	ws, a, b := twoSources()
	_, g := waitOn(ws, 1, "x")
	a.Update([]Update{{Topic: "x", Ready: 7}})
	a.Close()
	b.Update([]Update{{Topic: "x", Ready: 1}})
	require.Empty(t, b.pending, "its reserve is under way")
	a.answer(&jobpb.Result{}, nil)
	require.Zero(t, g.calls)
	require.Len(t, b.pending, 1)
	b.answer(&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: 2}}}, nil)
	require.Len(t, g.jobs, 1)
}

// The next leadership of the same group opens its source while Reserves of the last are under way.
func TestTheClaimsOfAClosedSourceDoNotCountForTheNext(t *testing.T) {
	ws, a, _ := twoSources()
	_, g := waitOn(ws, 1, "x")
	a.Update([]Update{{Topic: "x", Ready: 1}})
	a.Close()
	next := new(fed)
	next.Source = ws.Open(next.submit, nil)
	next.Update([]Update{{Topic: "x", Ready: 1}})
	waitOn(ws, 1, "x")
	require.Len(t, next.pending, 1)
	a.answer(nil, errors.New("leadership lost"))
	require.ErrorIs(t, g.err, ErrStopped)
	require.EqualValues(t, 1, ws.topics["x"].of(next.Source).asked)
	a.Update([]Update{{Topic: "x", Ready: 9}})
	require.Nil(t, ws.topics["x"].of(a.Source), "what a closed source reports does not count")
}

func TestPrimeCountsForATopicThatAWaiterHasNamedBefore(t *testing.T) {
	s := newShard(10)
	s.addWaiter(1, "t")
	s.ready["t"] = 1
	s.d.Prime([]Update{{Topic: "t", Ready: 1}})
	require.Len(t, s.pending, 1)
}

func TestADispatcherOfSeveralStopsWithoutItsWaiters(t *testing.T) {
	ws := NewWaiters(10)
	var a, b fed
	first, second := ws.Dispatcher(a.submit, nil), ws.Dispatcher(b.submit, nil)
	_, g := waitOn(ws, 1, "x")
	first.Stop()
	require.Zero(t, g.calls)
	first.Update([]Update{{Topic: "x", Ready: 1}})
	require.Empty(t, a.pending)
	second.Update([]Update{{Topic: "x", Ready: 1}})
	b.answer(&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: 2}}}, nil)
	require.Len(t, g.jobs, 1)
}
