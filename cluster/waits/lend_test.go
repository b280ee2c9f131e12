package waits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/internal/testseed"
	"tarry/job/jobpb"
)

const (
	trip   = 100 * time.Microsecond
	commit = time.Millisecond
	lease  = time.Second
)

// pipe is a stream between two nodes, as both see it.
type pipe struct {
	sent *atomic.Int64
	ctx  context.Context
	cut  context.CancelFunc
	up   chan *noderpc.WaitRequest
	down chan *noderpc.WaitAnswer
}

type clientEnd struct {
	grpc.ClientStream
	*pipe
}

type serverEnd struct {
	grpc.ServerStream
	*pipe
}

func (p clientEnd) Send(m *noderpc.WaitRequest) error {
	if p.ctx.Err() != nil {
		return io.EOF
	}
	p.sent.Add(1)
	p.up <- m
	return nil
}

func (p clientEnd) Recv() (*noderpc.WaitAnswer, error) {
	select {
	case a := <-p.down:
		time.Sleep(trip)
		return a, nil
	case <-p.ctx.Done():
	}
	select {
	case a := <-p.down: // it has arrived
		return a, nil
	default:
		return nil, p.ctx.Err()
	}
}

func (p serverEnd) Context() context.Context { return p.ctx }

func (p serverEnd) Send(a *noderpc.WaitAnswer) error {
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	p.sent.Add(1)
	p.down <- a
	return nil
}

func (p serverEnd) Recv() (*noderpc.WaitRequest, error) {
	select {
	case m := <-p.up:
		time.Sleep(trip)
		return m, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// lendCluster is nodes with real Clients and Lenders, over streams that the test can cut, and groups in memory.
type lendCluster struct {
	nodes  []*lendNode
	groups []*lendGroup
	work   sync.WaitGroup // handlers of streams, and logs

	mu    sync.Mutex
	pipes []*pipe

	sent atomic.Int64 // messages
}

type lendNode struct {
	c      *lendCluster
	name   string
	ws     *dispatch.Waiters
	lender *Lender
	client *Client
}

func newLendCluster(nodes, groups int) *lendCluster {
	c := &lendCluster{}
	var names []string
	for i := range nodes {
		n := &lendNode{c: c, name: fmt.Sprint("n", i), ws: dispatch.NewWaiters(1000)}
		n.lender = NewLender(n.ws, func(_ context.Context, node string) (Peer, error) { return lendPeer{n, c.node(node)}, nil }, c.giveBack)
		n.client = NewClient(Options{
			Self: n.name, HoldTime: time.Second, GiveBack: c.giveBack,
			Leader: func() (leaderrpc.Leader, <-chan struct{}) { return leaderrpc.Leader{ID: n.name}, nil },
			Here:   func() Queue { return n.ws },
		})
		c.nodes, names = append(c.nodes, n), append(names, n.name)
	}
	for i, n := range c.nodes {
		n.lender.SetNodes(append(append([]string(nil), names[:i]...), names[i+1:]...))
	}
	for g := range groups {
		x := &lendGroup{c: c, number: g, log: make(chan lendProposal, 10_000), jobs: map[uint64]*lendJob{}}
		c.groups = append(c.groups, x)
		c.work.Go(x.run)
		x.lead(c.nodes[g%nodes])
	}
	return c
}

func (c *lendCluster) node(name string) *lendNode {
	for _, n := range c.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (c *lendCluster) giveBack(jobs []*jobpb.Reserved) {
	for _, j := range jobs {
		c.groupOf(j.Seq).release(j.Seq, j.Generation)
	}
}

func (c *lendCluster) groupOf(seq uint64) *lendGroup { return c.groups[seq%uint64(len(c.groups))] }

func (c *lendCluster) cutAll(keep func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.pipes[:0]
	for _, p := range c.pipes {
		if keep() {
			left = append(left, p)
		} else {
			p.cut()
		}
	}
	c.pipes = left
}

func (c *lendCluster) stop() {
	for _, n := range c.nodes {
		n.client.Close()
		n.ws.Stop()
	}
	c.cutAll(func() bool { return false })
	for _, n := range c.nodes {
		n.lender.Close()
	}
	for _, g := range c.groups {
		close(g.log)
	}
	c.work.Wait()
}

// lendPeer is a node as another one calls it.
type lendPeer struct{ from, to *lendNode }

func (p lendPeer) Wait(ctx context.Context, _ ...grpc.CallOption) (noderpc.Node_WaitClient, error) {
	c := p.from.c
	x := &pipe{sent: &c.sent, up: make(chan *noderpc.WaitRequest, 10_000), down: make(chan *noderpc.WaitAnswer, 10_000)}
	x.ctx, x.cut = context.WithCancel(ctx)
	c.mu.Lock()
	c.pipes = append(c.pipes, x)
	c.mu.Unlock()
	c.work.Go(func() {
		s := serverEnd{pipe: x}
		if first, err := s.Recv(); err == nil && first.Lends {
			_ = p.to.lender.Serve(s, p.from.name)
		}
		x.cut()
	})
	return clientEnd{pipe: x}, nil
}

// lendGroup is a log that commits one proposal after the other, and its jobs.
type lendGroup struct {
	c      *lendCluster
	number int
	log    chan lendProposal

	mu     sync.Mutex
	source *dispatch.Source
	jobs   map[uint64]*lendJob // that are not finished
	last   uint64
}

type lendJob struct {
	topic    string
	reserved uint32 // by which reservation; 0: it is ready
	times    uint32
}

type lendProposal struct {
	source *dispatch.Source
	ops    []*jobpb.Op
	done   func([]*jobpb.Result, error)
}

func (g *lendGroup) lead(n *lendNode) {
	g.mu.Lock()
	old := g.source
	g.mu.Unlock()
	if old != nil {
		old.Close()
	}
	var s *dispatch.Source
	s = n.ws.Open(func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) { g.log <- lendProposal{s, ops, done} }, nil)
	g.mu.Lock()
	g.source = s
	us := g.updates()
	g.mu.Unlock()
	s.Prime(us)
}

// updates is called with g.mu held.
func (g *lendGroup) updates() (us []dispatch.Update) {
	ready := map[string]uint64{"a": 0, "b": 0}
	for _, j := range g.jobs {
		if j.reserved == 0 {
			ready[j.topic]++
		}
	}
	for t, n := range ready {
		us = append(us, dispatch.Update{Topic: t, Ready: n})
	}
	return us
}

func (g *lendGroup) run() {
	for p := range g.log {
		batch := []lendProposal{p}
		time.Sleep(commit)
		for len(g.log) > 0 {
			batch = append(batch, <-g.log)
		}
		for _, p := range batch {
			g.apply(p)
		}
	}
}

func (g *lendGroup) apply(p lendProposal) {
	g.mu.Lock()
	leads := g.source == p.source
	var rs []*jobpb.Result
	for _, op := range p.ops {
		r := &jobpb.Result{}
		if leads {
			r.Jobs = g.reserve(op.GetReserve())
			if rel := op.GetRelease(); rel != nil {
				g.makeReady(rel.Ref.Seq, rel.Ref.Generation)
			}
		}
		rs = append(rs, r)
	}
	source, us := g.source, g.updates()
	g.mu.Unlock()
	source.Update(us)
	if leads {
		p.done(rs, nil)
	} else {
		p.done(nil, errors.New("it leads no more"))
	}
}

// reserve is called with g.mu held.
func (g *lendGroup) reserve(r *jobpb.Reserve) (got []*jobpb.Reserved) {
	for _, t := range r.GetTopics() {
		for seq, j := range g.jobs {
			if j.topic != t || j.reserved != 0 || len(got) >= int(r.Max) {
				continue
			}
			j.times++
			reservation := j.times
			j.reserved = reservation
			got = append(got, &jobpb.Reserved{Seq: seq, Topic: t, Generation: reservation})
			g.c.work.Go(func() {
				time.Sleep(lease)
				g.release(seq, reservation)
			})
		}
	}
	return got
}

// makeReady is called with g.mu held.
func (g *lendGroup) makeReady(seq uint64, reservation uint32) {
	if j := g.jobs[seq]; j != nil && j.reserved == reservation {
		j.reserved = 0
	}
}

func (g *lendGroup) release(seq uint64, reservation uint32) {
	g.mu.Lock()
	g.makeReady(seq, reservation)
	source, us := g.source, g.updates()
	g.mu.Unlock()
	source.Update(us)
}

func (g *lendGroup) add(topic string) {
	g.mu.Lock()
	g.last++
	g.jobs[g.last*uint64(len(g.c.groups))+uint64(g.number)] = &lendJob{topic: topic}
	source, us := g.source, g.updates()
	g.mu.Unlock()
	source.Update(us)
}

// finish reports whether the reservation was the job's.
func (g *lendGroup) finish(seq uint64, reservation uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	j := g.jobs[seq]
	if j == nil || j.reserved != reservation {
		return false
	}
	delete(g.jobs, seq)
	return true
}

func (c *lendCluster) left() (n int) {
	for _, g := range c.groups {
		g.mu.Lock()
		n += len(g.jobs)
		g.mu.Unlock()
	}
	return n
}

func reserveOf(topics ...string) *jobpb.Reserve {
	return &jobpb.Reserve{Topics: topics, Max: 1, TtrMs: lease.Milliseconds()}
}

func TestAWaiterGetsTheJobOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLendCluster(3, 1)
		defer c.stop()
		got := make(chan []*jobpb.Reserved, 1)
		go func() {
			jobs, _ := c.nodes[2].client.Reserve(t.Context(), reserveOf("a"), time.Minute)
			got <- jobs
		}()
		time.Sleep(time.Second)
		start := time.Now()
		c.groups[0].add("a")
		require.Len(t, <-got, 1)
		require.Equal(t, commit+3*trip, time.Since(start), "want, lend, commit, granted")
	})
}

func TestAReserveThatDoesNotWaitAsksAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLendCluster(3, 3)
		defer c.stop()
		c.groups[2].add("a")
		time.Sleep(time.Second)
		jobs, err := c.nodes[0].client.Reserve(t.Context(), reserveOf("a"), 0)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		jobs, err = c.nodes[0].client.Reserve(t.Context(), reserveOf("a"), 0)
		require.NoError(t, err)
		require.Empty(t, jobs)
	})
}

func TestALentReserveEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLendCluster(2, 1)
		defer c.stop()
		start := time.Now()
		jobs, err := c.nodes[1].client.Reserve(t.Context(), reserveOf("a"), time.Minute)
		require.NoError(t, err)
		require.Empty(t, jobs)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// Whichever message is under way when the streams break, the waiter gets its job without waiting for a lease to expire.
func TestALossAtAnyInstantIsMadeUpFor(t *testing.T) {
	for at := time.Duration(0); at < commit+6*trip; at += trip / 2 {
		synctest.Test(t, func(t *testing.T) {
			c := newLendCluster(2, 1)
			defer c.stop()
			got := make(chan []*jobpb.Reserved, 1)
			go func() {
				jobs, _ := c.nodes[1].client.Reserve(t.Context(), reserveOf("a"), time.Minute)
				got <- jobs
			}()
			time.Sleep(time.Second)
			start := time.Now()
			c.groups[0].add("a")
			time.Sleep(at)
			c.cutAll(func() bool { return false })
			require.Len(t, <-got, 1, "lost after %v", at)
			require.Less(t, time.Since(start), lease, "lost after %v", at)
		})
	}
}

// Streams break and leaders move while consumers come, hang up and work. Each job is done, and afterwards nobody who waits is
// overlooked.
func TestLendingSurvivesLossesAndMoves(t *testing.T) {
	seed := testseed.New()
	t.Logf("TEST_SEED=%d", seed)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := newLendCluster(3, 4)
		defer c.stop()
		stopAll, endAll := context.WithCancel(t.Context())
		stop, end := context.WithCancel(stopAll)
		var consumers sync.WaitGroup
		for i := range 9 {
			mine := rand.New(rand.NewPCG(seed, uint64(i)))
			topics := [][]string{{"a"}, {"b"}, {"a", "b"}}[i/3]
			until := stop
			if i%3 == 0 {
				until = stopAll
			}
			consumers.Go(func() { c.consume(until, c.nodes[i%3], topics, mine) })
		}
		for range 300 {
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
			c.groups[rnd.IntN(4)].add([]string{"a", "b"}[rnd.IntN(2)])
			switch rnd.IntN(12) {
			case 0:
				c.cutAll(func() bool { return rnd.IntN(3) != 0 })
			case 1:
				c.groups[rnd.IntN(4)].lead(c.nodes[rnd.IntN(3)])
			}
		}
		time.Sleep(10 * lease)
		require.Zero(t, c.left(), "all jobs are done once their leases have expired")
		end() // the rest comes from nodes without consumers
		for i, g := range c.groups {
			g.lead(c.nodes[1+i%2])
		}
		for range 20 {
			for _, g := range c.groups {
				g.add("a")
			}
			time.Sleep(lease / 2)
			require.Zero(t, c.left(), "nothing is left to a lease")
		}
		endAll()
		consumers.Wait()
	})
}

// consume reserves and finishes jobs until ctx ends. Some of its calls hang up.
func (c *lendCluster) consume(ctx context.Context, n *lendNode, topics []string, rnd *rand.Rand) {
	for ctx.Err() == nil {
		call, cancel := context.WithCancel(ctx)
		if rnd.IntN(4) == 0 {
			call, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(5000))*time.Microsecond)
		}
		jobs, err := n.client.Reserve(call, reserveOf(topics...), time.Duration(rnd.IntN(20))*time.Millisecond)
		cancel()
		if err != nil || len(jobs) == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, j := range jobs {
			time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
			c.groupOf(j.Seq).finish(j.Seq, j.Generation)
		}
	}
}

// What lending costs in messages: about none where the consumers are spread as the leaders are, and less than three
// a job where all consumers are on one node.
func TestMessagesOfLending(t *testing.T) {
	for _, x := range []struct {
		name      string
		consumers [3]int
		every     time.Duration // from one job to the next; 0: they are all there
		most      float64       // messages a job
	}{
		{"spread", [3]int{34, 33, 33}, 500 * time.Microsecond, 0.5},
		{"uneven", [3]int{80, 15, 5}, 500 * time.Microsecond, 1.5},
		{"one node", [3]int{100, 0, 0}, 500 * time.Microsecond, 3},
		{"spread, backlog", [3]int{34, 33, 33}, 0, 1},
		{"one node, backlog", [3]int{100, 0, 0}, 0, 2},
		{"one consumer", [3]int{1, 0, 0}, 50 * time.Millisecond, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const jobs = 4000
				c := newLendCluster(3, 4)
				defer c.stop()
				time.Sleep(time.Second)
				if x.every == 0 {
					for i := range jobs {
						c.groups[i%4].add("a")
					}
				}
				ctx, end := context.WithCancel(t.Context())
				var consumers sync.WaitGroup
				for n, k := range x.consumers {
					for range k {
						consumers.Go(func() { c.work10ms(ctx, c.nodes[n]) })
					}
				}
				time.Sleep(10 * time.Millisecond)
				before := c.sent.Load()
				rnd := rand.New(rand.NewPCG(1, 1))
				for i := 0; i < jobs && x.every != 0; i++ {
					time.Sleep(time.Duration(rnd.ExpFloat64() * float64(x.every)))
					c.groups[rnd.IntN(4)].add("a")
				}
				for c.left() > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				each := float64(c.sent.Load()-before) / jobs
				t.Logf("%.2f messages a job", each)
				require.Less(t, each, x.most)
				end()
				consumers.Wait()
			})
		})
	}
}

func (c *lendCluster) work10ms(ctx context.Context, n *lendNode) {
	for ctx.Err() == nil {
		jobs, _ := n.client.Reserve(ctx, reserveOf("a"), time.Minute)
		for _, j := range jobs {
			time.Sleep(10 * time.Millisecond)
			c.groupOf(j.Seq).finish(j.Seq, j.Generation)
		}
	}
}
