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

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/cluster/raftconfig"
	"tarry/internal/freeport"
	"tarry/internal/sleep"
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

// steadyTiming is the timing of these clusters, unless a test is about the loss of a leader or has
// other reasons. A dozen nodes share the machine, with other work: one that does not run for
// 400 ms loses its leadership with the default, and each call under way has an unknown outcome.
func steadyTiming() Timing {
	return Timing{
		Heartbeat: 3 * time.Second, Election: 3 * time.Second, Lease: 2500 * time.Millisecond,
		HoldTime: 20 * time.Second, OpTimeout: time.Minute,
	}
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
			timing:          steadyTiming(),
		}
		if n > 1 {
			for j := range n {
				cfg.Join = append(cfg.Join, ports[2*j+1])
			}
		}
		tune(i, &cfg)
		c.cfgs = append(c.cfgs, cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var electing sync.WaitGroup
	t.Cleanup(func() { cancel(); electing.Wait() })
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	for i := range n {
		c.start(i)
	}
	nodes := slices.Clone(c.nodes) // before a test stops one
	electing.Go(func() { firstElection(ctx, nodes) })
	return c
}

// firstElection makes a node stand for election as soon as it has a vote, instead of after
// the heartbeat timeout. If another one is elected at the same time this does nothing.
func firstElection(ctx context.Context, nodes []*Node) {
	for sleep.For(ctx, 10*time.Millisecond) {
		for _, n := range nodes {
			r, id := n.shard.raft, raft.ServerID(n.data.ServerID())
			if _, leader := r.LeaderWithID(); leader != "" || r.CurrentTerm() > 1 {
				return
			}
			if c := r.GetConfiguration(); c.Error() == nil && slices.Contains(raftconfig.Voters(c.Configuration()), id) {
				_ = n.trans.TimeoutNow(id, n.trans.LocalAddr(), &raft.TimeoutNowRequest{
					RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id)},
				}, &raft.TimeoutNowResponse{})
				return
			}
		}
	}
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

// patience ends a wait for what never happens. With a third of a core for a dozen nodes an
// election takes half a minute. Nothing is asserted about how long things take.
const patience = 3 * time.Minute

func (c *testCluster) eventually(ok func() bool, what string) {
	c.t.Helper()
	require.Eventually(c.t, ok, patience, 10*time.Millisecond, what)
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

// do runs ops through a node. On a busy machine any leader may be lost at any time: what was
// not applied is sent again, and also what may have been, if that shows no difference.
func do(t testing.TB, n *Node, ops ...*jobpb.Op) []*jobpb.Result {
	t.Helper()
	repeated := false
	for deadline := time.Now().Add(patience); ; {
		rs, err := n.shard.Do(context.Background(), ops)
		if code := job.CodeOf(err); err != nil && time.Now().Before(deadline) {
			repeated = repeated || code == job.CodeUnknown
			if code == job.CodeNotApplied || repeated && !slices.ContainsFunc(ops, once) {
				continue
			}
		}
		require.NoError(t, err)
		require.Len(t, rs, len(ops))
		for i, r := range rs {
			if repeated && r.Code == jobpb.Code_NOT_FOUND && endsJob(ops[i]) {
				continue // by an earlier attempt
			}
			require.NoError(t, job.ResultError(r))
		}
		return rs
	}
}

// endsJob reports whether op finishes or deletes a job.
func endsJob(op *jobpb.Op) bool { return op.GetFinish() != nil || op.GetDelete() != nil }

// once reports whether op does more when it is repeated.
func once(op *jobpb.Op) bool {
	return !endsJob(op) && op.GetAdd().GetId() == "" && op.GetSetTopic() == nil && op.GetPutSchedule() == nil && op.GetPutNamespace() == nil
}

// reserveOne reserves a job through a node within wait. If a leader is lost meanwhile the job may
// have been reserved for nobody: then it waits for the end of that reservation.
func reserveOne(t testing.TB, n *Node, wait time.Duration, topics ...string) []*jobpb.Reserved {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		jobs, err := n.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: topics, Max: 1}, wait)
		if lostLeader(err) && time.Now().Before(deadline) {
			if job.CodeOf(err) == job.CodeUnknown {
				wait = patience
			}
			continue
		}
		require.NoError(t, err)
		return jobs
	}
}

// lostLeader reports whether a call may have failed because a leader was lost.
func lostLeader(err error) bool {
	code := job.CodeOf(err)
	return err != nil && (code == job.CodeNotApplied || code == job.CodeUnknown)
}

func TestWaiterOnAFollowerOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	waiting := c.nodes[(l+1)%3]
	got := make(chan []*jobpb.Reserved, 1)
	go func() {
		jobs, _ := waiting.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, patience)
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
		jobs := reserveOne(t, via, patience, "t")
		require.Len(t, jobs, 1, "job %s is still held for a consumer that is gone", id)
		require.Equal(t, uint32(1), jobs[0].Attempts, "an attempt nobody saw does not count")
		do(t, via, finish(jobs[0]))
	}
}

func TestWithoutAMajorityNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 3, func(_ int, cfg *Config) { cfg.timing = DefaultTiming() }) // it waits for the ends of its times
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
	c.eventually(func() bool { at := c.established(); return at >= 0 && at != l }, "another node leads")
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
