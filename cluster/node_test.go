package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/internal/freeport"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Ends by itself when its probe has timed out; Shutdown does not wait.
		goleak.IgnoreTopFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
	)
}

// testCluster runs nodes in this process, with real sockets and directories.
type testCluster struct {
	t     testing.TB
	cfgs  []Config
	nodes []*Node // nil while stopped
}

func freePorts(t testing.TB, n int) []string {
	t.Helper()
	addrs := make([]string, n)
	for i := range addrs {
		p, err := freeport.Take()
		require.NoError(t, err)
		addrs[i] = fmt.Sprint("127.0.0.1:", p)
	}
	return addrs
}

func newTestCluster(t testing.TB, n int) *testCluster {
	return newTunedCluster(t, n, func(int, *Config) {})
}

// newTunedCluster starts n nodes after tune has changed their configuration.
func newTunedCluster(t testing.TB, n int, tune func(i int, cfg *Config)) *testCluster {
	c := &testCluster{t: t, nodes: make([]*Node, n)}
	ports := freePorts(t, 2*n)
	log := &testLog{t: t}
	t.Cleanup(log.end) // runs last
	for i := range n {
		cfg := Config{
			NodeID: fmt.Sprint("n", i+1), DataDir: t.TempDir(), Version: "test",
			ClusterAddr: ports[2*i], GossipAddr: ports[2*i+1], HTTPAdvertise: fmt.Sprintf("127.0.0.1:%d", i+1),
			BootstrapExpect: n,
			Logger:          slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Fatal:           func(err error) { t.Errorf("fatal: %v", err) },
		}
		if n > 1 {
			for j := range n {
				cfg.Join = append(cfg.Join, ports[2*j+1])
			}
		}
		tune(i, &cfg)
		c.cfgs = append(c.cfgs, cfg)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	for i := range n {
		c.start(i)
	}
	return c
}

func (c *testCluster) start(i int) *Node {
	n, err := Start(c.cfgs[i])
	require.NoError(c.t, err)
	c.nodes[i] = n
	return n
}

func (c *testCluster) stop(i int) {
	if n := c.nodes[i]; n != nil {
		c.nodes[i] = nil
		require.NoError(c.t, n.Stop())
	}
}

// established returns the index of the leader; -1 if there is none at the moment. The first leader
// counts when it has given the cluster its id: it takes jobs a moment before that, and
// without the id there are no backups and no standby.
func (c *testCluster) established() int {
	return slices.IndexFunc(c.nodes, func(n *Node) bool {
		return n != nil && n.shard.dispatcher() != nil && n.clusterID() != ""
	})
}

// leader waits for a leader and returns its index. On a busy machine another node may lead
// a moment later.
func (c *testCluster) leader() int {
	c.t.Helper()
	at := -1
	c.eventually(func() bool {
		at = c.established()
		return at >= 0
	}, "a leader")
	return at
}

// transfer transfers leadership to a node, and returns when that is the established leader.
// One attempt may fail, for example while the target does not know the leader yet.
func (c *testCluster) transfer(to *Node) {
	c.t.Helper()
	c.eventually(func() bool {
		if to.shard.dispatcher() != nil {
			return true
		}
		_ = to.TransferLeadership(c.t.Context(), to.cfg.NodeID)
		return false
	}, to.cfg.NodeID+" leads")
}

// awaitWaiters returns when so many reserves wait on the leader.
func (c *testCluster) awaitWaiters(count int) {
	c.t.Helper()
	c.eventually(func() bool {
		at := c.established()
		if at < 0 {
			return false
		}
		d := c.nodes[at].shard.dispatcher()
		return d != nil && d.Waiting() == count
	}, "the waiters reach the leader")
}

func (c *testCluster) follower() *Node {
	c.t.Helper()
	l := c.leader()
	for i, n := range c.nodes {
		if n != nil && i != l {
			return n
		}
	}
	c.t.Fatal("no follower runs")
	return nil
}

func (c *testCluster) eventually(ok func() bool, what string) {
	c.t.Helper()
	require.Eventually(c.t, ok, 30*time.Second, 10*time.Millisecond, what)
}

// testLog writes lines to the test's log until the test has ended, because memberlist does
// not wait for its goroutines.
type testLog struct {
	t testing.TB

	mu    sync.Mutex
	ended bool
}

func (w *testLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func (w *testLog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func add(id, topic string, delay time.Duration) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{
		Id: id, Topic: topic, Body: []byte("body of " + id), DelayMs: delay.Milliseconds(), TtrMs: 60_000, Priority: 1024,
	}}}
}

func finish(j *jobpb.Reserved) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: j.Id, Seq: j.Seq, Generation: j.Generation}}}}
}

func do(t testing.TB, n *Node, ops ...*jobpb.Op) []*jobpb.Result {
	t.Helper()
	rs, err := n.shard.Do(context.Background(), ops)
	require.NoError(t, err)
	require.Len(t, rs, len(ops))
	for _, r := range rs {
		require.NoError(t, job.ResultError(r))
	}
	return rs
}

func reserveOne(t testing.TB, n *Node, wait time.Duration, topics ...string) []*jobpb.Reserved {
	t.Helper()
	jobs, err := n.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: topics, Max: 1}, wait)
	require.NoError(t, err)
	return jobs
}

func TestWaiterOnAFollowerOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	waiting := c.nodes[(l+1)%3]
	got := make(chan []*jobpb.Reserved, 1)
	go func() {
		jobs, _ := waiting.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, 30*time.Second)
		got <- jobs
	}()
	c.awaitWaiters(1)
	c.transfer(c.nodes[l]) // leads, unless the machine is busy
	c.stop(l)
	do(t, c.nodes[c.leader()], add("a", "t", 0))
	jobs := <-got
	require.Len(t, jobs, 1)
}

func TestAConsumerThatDisconnectsFromAFollowerLeavesNothingReserved(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	via := c.follower()
	for i := range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan []*jobpb.Reserved, 1)
		go func() {
			jobs, _ := via.shard.Reserve(ctx, &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, 10*time.Second)
			done <- jobs
		}()
		c.awaitWaiters(1)
		go cancel() // races with the delivery
		id := fmt.Sprint("j", i)
		do(t, via, add(id, "t", 0))
		if jobs := <-done; len(jobs) > 0 {
			do(t, via, finish(jobs[0]))
			continue
		}
		jobs := reserveOne(t, via, 10*time.Second, "t")
		require.Len(t, jobs, 1, "job %s is still held for a consumer that is gone", id)
		require.Equal(t, uint32(1), jobs[0].Attempts, "an attempt nobody saw does not count")
		do(t, via, finish(jobs[0]))
	}
}

func TestWithoutAMajorityNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	c.stop((l + 1) % 3)
	c.stop((l + 2) % 3)
	_, err := c.nodes[l].shard.Do(context.Background(), []*jobpb.Op{add("a", "t", 0)})
	require.Contains(t, []job.Code{job.CodeNotApplied, job.CodeUnknown}, job.CodeOf(err))
	_, err = c.nodes[l].shard.Do(context.Background(), []*jobpb.Op{add("b", "t", 0)})
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "once the leader has stepped down the outcome is known: %v", err)
	_, err = c.nodes[l].shard.Job(context.Background(), "a", false)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "no linearizable read without a majority")
}

func TestDrainTransfersLeadershipAndEndsWaits(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	got := make(chan error, 1)
	go func() {
		_, err := c.nodes[l].shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, time.Minute)
		got <- err
	}()
	c.awaitWaiters(1)
	c.transfer(c.nodes[l])
	c.nodes[l].Drain(context.Background())
	require.NoError(t, <-got)
	require.False(t, c.nodes[l].Readiness().Ready)
	c.eventually(func() bool { return c.leader() != l }, "another node leads")
	_, err := c.nodes[l].shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, time.Minute)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
}

func TestALargeBatchIsSplitAndItsResultsAreInOrder(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	via := c.follower()
	var ops []*jobpb.Op
	for i := range 500 {
		op := add(fmt.Sprint("j", i), "t", time.Hour)
		op.GetAdd().Body = make([]byte, 4<<10)
		ops = append(ops, op)
	}
	for i, r := range do(t, via, ops...) {
		require.Equal(t, fmt.Sprint("j", i), r.Id)
	}
}
