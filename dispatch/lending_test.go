package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/dispatch/lending"
	"tarry/job"
	"tarry/job/jobpb"
)

// lenders are three nodes with streams between them, and groups of which each is led by one of them.
type lenders struct {
	t       *testing.T
	nodes   []*lenderNode
	groups  []*lentGroup
	streams map[[2]int]*lentStream // from home to supplier
	seq     uint64
	owner   map[uint64]int // of jobs: how often handed out and not given back
	few     bool           // a Reserve gets one job at most
	sent    int
}

type lenderNode struct {
	n int
	*Waiters
	*Lending
}

// lentGroup is the log and the state of a group: ready jobs by topic.
type lentGroup struct {
	*Source
	leader  int
	ready   map[string]int
	pending []pendingSubmit
}

type lentStream struct {
	up, down            []lentMessage
	homeDown, supplyOff bool // the end has not noticed yet that it broke
}

type lentMessage struct {
	lending.Message
	reserve *jobpb.Reserve
}

func newLenders(t *testing.T, groups int) *lenders {
	c := &lenders{t: t, streams: map[[2]int]*lentStream{}, owner: map[uint64]int{}}
	for n := range 3 {
		x := &lenderNode{n: n, Waiters: NewWaiters(1000)}
		x.Lending = x.Lend(func(node string, m lending.Message, r *jobpb.Reserve) bool { return c.send(n, node, m, r) }, c.giveBack)
		c.nodes = append(c.nodes, x)
	}
	for h := range 3 {
		for s := range 3 {
			if h != s {
				c.streams[[2]int{h, s}] = &lentStream{}
				c.nodes[h].OpenSupplier(strconv.Itoa(s))
				c.nodes[s].OpenHome(strconv.Itoa(h))
			}
		}
	}
	for g := range groups {
		c.groups = append(c.groups, &lentGroup{ready: map[string]int{}})
		c.lead(g, g%3)
	}
	return c
}

func (c *lenders) send(from int, node string, m lending.Message, r *jobpb.Reserve) bool {
	to, _ := strconv.Atoi(node)
	c.sent++
	switch m.Kind {
	case lending.Interest, lending.Lend, lending.Done, lending.Cancel:
		s := c.streams[[2]int{from, to}]
		if !s.homeDown {
			s.up = append(s.up, lentMessage{m, r})
		}
		return !s.homeDown
	}
	s := c.streams[[2]int{to, from}]
	if !s.supplyOff {
		s.down = append(s.down, lentMessage{m, nil})
	}
	return !s.supplyOff
}

// lead makes a node the leader of a group.
func (c *lenders) lead(g, n int) {
	x := c.groups[g]
	if x.Source != nil {
		x.Close()
		pending := x.pending
		x.pending = nil
		for _, p := range pending { // they are lost
			for _, op := range p.ops {
				c.released(x, op.GetRelease()) // once the lease has expired
			}
			p.done(nil, errors.New("leadership lost"))
		}
	}
	x.leader = n
	x.Source = c.nodes[n].Open(func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
		x.pending = append(x.pending, pendingSubmit{ops, done})
	}, nil)
	x.Prime(x.updates())
}

func (x *lentGroup) updates() (us []Update) {
	for _, t := range []string{"a", "b"} {
		us = append(us, Update{Topic: t, Ready: uint64(x.ready[t])})
	}
	return us
}

func (c *lenders) giveBack(jobs []*jobpb.Reserved) {
	for _, j := range jobs {
		c.back(j.Seq, j.Topic)
	}
}

func (c *lenders) back(seq uint64, topic string) {
	require.Equal(c.t, 1, c.owner[seq], "job %d", seq)
	delete(c.owner, seq)
	x := c.groups[seq%uint64(len(c.groups))]
	x.ready[topic]++
	x.Update(x.updates())
}

// apply commits the oldest proposal of a group.
func (c *lenders) apply(g int) bool {
	x := c.groups[g]
	if len(x.pending) == 0 {
		return false
	}
	p := x.pending[0]
	x.pending = x.pending[1:]
	var rs []*jobpb.Result
	var back []*jobpb.Release
	for _, op := range p.ops {
		r := &jobpb.Result{}
		if rel := op.GetRelease(); rel != nil {
			back = append(back, rel)
		}
		for _, t := range op.GetReserve().GetTopics() {
			for x.ready[t] > 0 && len(r.Jobs) < int(op.GetReserve().Max) && !(len(r.Jobs) == 1 && c.few) { // bytes are bounded
				x.ready[t]--
				c.seq++
				seq := c.seq*uint64(len(c.groups)) + uint64(g)
				c.owner[seq]++
				r.Jobs = append(r.Jobs, &jobpb.Reserved{Seq: seq, Topic: t, Generation: 1})
			}
		}
		rs = append(rs, r)
	}
	x.Update(x.updates())
	p.done(rs, nil)
	for _, r := range back {
		c.released(x, r)
		x.Update(x.updates())
	}
	return true
}

func (c *lenders) released(x *lentGroup, r *jobpb.Release) {
	if r != nil {
		delete(c.owner, r.Ref.Seq)
		x.ready["a"]++ // which topic does not matter
	}
}

// arrive delivers the first message of a stream in one direction, or lets an end notice that it broke.
func (c *lenders) arrive(h, s int, up bool) bool {
	x := c.streams[[2]int{h, s}]
	home, supplier := c.nodes[h], c.nodes[s]
	switch {
	case up && x.supplyOff:
		x.supplyOff = false
		supplier.CloseHome(strconv.Itoa(h))
		supplier.OpenHome(strconv.Itoa(h))
	case up && len(x.up) > 0:
		m := x.up[0]
		x.up = x.up[1:]
		if m.Kind == lending.Lend {
			require.NoError(c.t, supplier.Admit(strconv.Itoa(h), m.Message, m.reserve))
		} else {
			supplier.Receive(strconv.Itoa(h), m.Message)
		}
	case !up && x.homeDown:
		x.homeDown = false
		home.CloseSupplier(strconv.Itoa(s))
		home.OpenSupplier(strconv.Itoa(s))
	case !up && len(x.down) > 0:
		m := x.down[0]
		x.down = x.down[1:]
		home.Receive(strconv.Itoa(s), m.Message)
	default:
		return false
	}
	return true
}

func (c *lenders) breakStream(h, s int) {
	x := c.streams[[2]int{h, s}]
	for _, m := range x.down {
		if m.Kind == lending.Granted {
			c.giveBack(m.Jobs.(Got).Jobs) // as framerpc does with what was not sent
		}
	}
	*x = lentStream{homeDown: true, supplyOff: true}
}

// step does one thing that is under way, chosen by rnd.
func (c *lenders) step(rnd *rand.Rand) bool {
	var can []func() bool
	for g := range c.groups {
		can = append(can, func() bool { return c.apply(g) })
	}
	for h := range 3 {
		for s := range 3 {
			if h != s {
				can = append(can, func() bool { return c.arrive(h, s, true) }, func() bool { return c.arrive(h, s, false) })
			}
		}
	}
	rnd.Shuffle(len(can), func(i, j int) { can[i], can[j] = can[j], can[i] })
	return slices.ContainsFunc(can, func(f func() bool) bool { return f() })
}

type lentClient struct {
	w    *Waiter
	node *lenderNode
	g    *got
	gone bool
}

func (c *lenders) wait(n int, r *jobpb.Reserve, poll bool) *lentClient {
	x := &lentClient{node: c.nodes[n], g: &got{}}
	x.w = &Waiter{Reserve: r, Poll: poll}
	x.w.Done = func(jobs []*jobpb.Reserved, err error) {
		x.g.calls++
		x.g.jobs, x.g.err = jobs, err
		if x.gone {
			c.giveBack(jobs)
		}
	}
	x.node.Add(x.w)
	return x
}

// The real dispatchers of three nodes lose no job and no waiter, whatever happens in which order.
func TestLendingUnderRandomEvents(t *testing.T) {
	for seed := range uint64(1000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		c := newLenders(t, 1+int(seed%4))
		var clients []*lentClient
		added := 0
		topics := [][]string{{"a"}, {"b"}, {"a", "b"}}
		for range 120 {
			switch rnd.IntN(10) {
			case 0, 1:
				r := &jobpb.Reserve{Topics: topics[rnd.IntN(3)], Max: uint32(1 + rnd.IntN(2))}
				clients = append(clients, c.wait(rnd.IntN(3), r, rnd.IntN(4) == 0))
			case 2:
				x := c.groups[rnd.IntN(len(c.groups))]
				added++
				x.ready[topics[rnd.IntN(2)][0]]++
				x.Update(x.updates())
				c.few = rnd.IntN(2) == 0
			case 3:
				if len(clients) > 0 {
					x := clients[rnd.IntN(len(clients))]
					if rnd.IntN(2) == 0 {
						x.node.Cancel(x.w, true)
					} else if x.g.calls == 0 {
						x.gone = true
						x.node.Cancel(x.w, false)
					}
				}
			case 4:
				if rnd.IntN(4) == 0 {
					c.lead(rnd.IntN(len(c.groups)), rnd.IntN(3))
				}
			case 5:
				x := c.groups[rnd.IntN(len(c.groups))]
				if topic := topics[rnd.IntN(2)][0]; x.ready[topic] > 0 { // it is deleted
					added--
					x.ready[topic]--
					x.Update(x.updates())
				}
			case 6:
				if h, s := rnd.IntN(3), rnd.IntN(3); h != s && rnd.IntN(2) == 0 {
					c.breakStream(h, s)
				}
			default:
				c.step(rnd)
			}
		}
		for range 10_000 {
			if !c.step(rnd) {
				break
			}
		}
		c.check(fmt.Sprint("seed ", seed), clients, added)
	}
}

// check checks that nothing is under way, nobody waits for a job that is ready, and no job is lost.
func (c *lenders) check(name string, clients []*lentClient, added int) {
	require.False(c.t, c.step(rand.New(rand.NewPCG(1, 1))), "%s: it never ends", name)
	ready, delivered := map[string]int{}, 0
	left := 0
	for _, x := range c.groups {
		for t, n := range x.ready {
			ready[t] += n
			left += n
		}
	}
	for _, x := range clients {
		require.LessOrEqual(c.t, x.g.calls, 1, name)
		require.LessOrEqual(c.t, len(x.g.jobs), int(x.w.Reserve.Max), name)
		if !x.gone {
			delivered += len(x.g.jobs)
		}
		if x.g.calls == 0 {
			require.Equal(c.t, waiting, x.w.state, "%s: it is not at home", name)
			require.False(c.t, x.gone || x.w.Poll, name)
			for _, t := range x.w.Reserve.Topics {
				require.Zero(c.t, ready[t], "%s: a job is ready and somebody waits", name)
			}
		}
	}
	require.Equal(c.t, added, left+delivered, name)
	require.Len(c.t, c.owner, delivered, name)
	for _, n := range c.nodes {
		require.Empty(c.t, n.guests, name)
		require.Len(c.t, n.own, n.Waiting(), name)
		require.Zero(c.t, n.busy, name)
	}
}

func TestARefusedLendEndsItsWaiter(t *testing.T) {
	c := newLenders(t, 1)
	x := c.wait(1, &jobpb.Reserve{Topics: []string{"a"}, Max: 1}, false)
	c.groups[0].ready["a"] = 1
	c.groups[0].Update(c.groups[0].updates())
	rnd := rand.New(rand.NewPCG(1, 1))
	for len(c.groups[0].pending) == 0 {
		require.True(t, c.step(rnd))
	}
	p := c.groups[0].pending[0]
	c.groups[0].pending = nil
	p.done([]*jobpb.Result{{Code: jobpb.Code_FORBIDDEN}}, nil)
	for c.step(rnd) {
	}
	require.Equal(t, job.CodeForbidden, job.CodeOf(x.g.err))
}

func TestAWaiterThatStaysIsNotLent(t *testing.T) {
	c := newLenders(t, 1)
	w := &Waiter{Reserve: &jobpb.Reserve{Topics: []string{"a"}, Max: 1}, Stay: true, Done: func([]*jobpb.Reserved, error) {}}
	c.nodes[1].Add(w)
	x := c.wait(1, &jobpb.Reserve{Topics: []string{"a"}, Max: 1}, false)
	c.groups[0].ready["a"] = 2
	c.groups[0].Update(c.groups[0].updates())
	rnd := rand.New(rand.NewPCG(1, 1))
	for c.step(rnd) {
	}
	require.Equal(t, 1, x.g.calls)
	require.Equal(t, waiting, w.state)
}

// A consumer that makes up a topic for each wait must not be remembered for each.
func TestTopicsWithoutWaitersAreForgottenElsewhere(t *testing.T) {
	c := newLenders(t, 1)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		x := c.wait(1, &jobpb.Reserve{Topics: []string{fmt.Sprint("reply-", i)}, Max: 1}, false)
		x.node.Cancel(x.w, false)
		for c.step(rnd) {
		}
	}
	require.Empty(t, c.nodes[1].topics)
	require.LessOrEqual(t, c.nodes[1].lender.Known(), 2*1100, "of two suppliers")
	require.LessOrEqual(t, c.nodes[0].lender.Known(), 1100)
}

func (c *lenders) ready(g int, topic string, n int) {
	c.groups[g].ready[topic] = n
	c.groups[g].Update(c.groups[g].updates())
}

// arriveAll delivers all messages; no log commits.
func (c *lenders) arriveAll() {
	for range 100 {
		for h := range 3 {
			for s := range 3 {
				if h != s {
					c.arrive(h, s, true)
					c.arrive(h, s, false)
				}
			}
		}
	}
}

// The Reserve is of the first lend, and its stream broke. The same waiter is lent again when it commits.
func TestAReserveOfALostStreamDoesNotEndTheNextLend(t *testing.T) {
	c := newLenders(t, 1)
	x := c.wait(1, &jobpb.Reserve{Topics: []string{"a"}, Max: 1}, false)
	c.ready(0, "a", 1)
	c.arriveAll()
	require.Len(t, c.groups[0].pending, 1)
	c.breakStream(1, 0)
	c.ready(0, "a", 2)
	c.arriveAll()
	require.Len(t, c.groups[0].pending, 2, "lent again, for the other job")
	c.apply(0)
	c.arriveAll()
	require.Zero(t, x.g.calls)
	require.Equal(t, lent, x.w.state)
	for c.step(rand.New(rand.NewPCG(1, 1))) {
	}
	require.Len(t, x.g.jobs, 1)
	require.Empty(t, c.nodes[0].guests)
}

// While its only waiter of b is busy with a, the home is short of one for b. The waiter finds nothing and is
// back: nobody asks the home again unless it tells its interest.
func TestAWaiterThatFoundNothingIsOfferedElsewhere(t *testing.T) {
	c := newLenders(t, 2)
	x := c.wait(0, &jobpb.Reserve{Topics: []string{"a", "b"}, Max: 1}, false)
	c.arriveAll()
	c.ready(0, "a", 1)
	require.Equal(t, busy, x.w.state)
	c.ready(1, "b", 1)
	c.arriveAll()
	c.groups[0].ready["a"] = 0 // it is deleted
	c.apply(0)
	for c.step(rand.New(rand.NewPCG(1, 1))) {
	}
	require.Len(t, x.g.jobs, 1)
}
