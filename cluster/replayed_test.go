package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/logstore"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestAStateIsShownOnceItIsAsNewAsBeforeTheStart(t *testing.T) {
	const command, noop, configuration = raft.LogCommand, raft.LogNoop, raft.LogConfiguration
	type step func(r *replay, st *replayState)
	apply := func(index uint64) step {
		return func(r *replay, st *replayState) { st.applied = index; r.advanced() }
	}
	effects := func(term uint64) step {
		return func(r *replay, st *replayState) { st.effects = term; r.advanced() }
	}
	truncate := func(first uint64) step {
		return func(r *replay, st *replayState) {
			last := uint64(len(st.log))
			st.log = st.log[:first-1]
			r.truncated(first, last)
		}
	}
	led := func(term uint64) step { return func(r *replay, _ *replayState) { r.led(term) } }
	for name, c := range map[string]struct {
		log     []raft.LogType // from entry 1 on
		applied uint64
		effects uint64 // term 3 is that of the start
		steps   []step
		shown   int // after so many steps, and not before; -1: never
	}{
		"a new node":                             {nil, 0, 0, nil, 0},
		"all is applied":                         {[]raft.LogType{configuration, command}, 2, 0, nil, 0},
		"the state is ahead of the log":          {nil, 7, 0, nil, 0},
		"a command is missing":                   {[]raft.LogType{configuration, command}, 1, 0, []step{led(3), led(4), apply(2)}, 3},
		"a configuration is missing":             {[]raft.LogType{command, configuration}, 1, 0, []step{apply(2)}, 1},
		"some are missing":                       {[]raft.LogType{command, command, command}, 1, 0, []step{apply(2), apply(3)}, 2},
		"what is never applied is missing":       {[]raft.LogType{command, noop, raft.LogBarrier}, 1, 0, nil, 0},
		"a command before it is missing":         {[]raft.LogType{command, command, noop}, 1, 0, []step{apply(2)}, 1},
		"the missing one is truncated":           {[]raft.LogType{command, command, command}, 2, 0, []step{truncate(3)}, 1},
		"one after it is truncated":              {[]raft.LogType{command, command, command, command}, 2, 0, []step{truncate(4), apply(3)}, 2},
		"truncated down to what is not applied":  {[]raft.LogType{command, noop, command}, 1, 0, []step{truncate(3)}, 1},
		"a later part of the log is truncated":   {[]raft.LogType{command, command, noop}, 1, 0, []step{truncate(3), apply(2)}, 2},
		"a newer state is installed":             {[]raft.LogType{command, command, command}, 1, 0, []step{apply(9)}, 1},
		"an effect waits, whose leader it was":   {[]raft.LogType{command}, 1, 3, []step{led(4), apply(1)}, -1},
		"the effect comes":                       {[]raft.LogType{command}, 1, 3, []step{led(4), effects(0)}, 2},
		"its term has another leader":            {[]raft.LogType{command}, 1, 3, []step{led(3)}, 1},
		"an effect of an earlier term waits":     {[]raft.LogType{command}, 1, 2, []step{led(3), effects(0)}, 2},
		"an effect of a later term waits":        {[]raft.LogType{command, command}, 1, 3, []step{apply(2), effects(4)}, 2},
		"the leader is known before the command": {[]raft.LogType{command, command}, 1, 3, []step{led(3), apply(2)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			st := &replayState{log: c.log, applied: c.applied, effects: c.effects}
			r := newReplay(uint64(len(c.log)), 3, st.get, func() uint64 { return st.applied }, func() uint64 { return st.effects })
			require.Equal(t, c.shown == 0, r.isOver(), "at the start")
			for i, s := range c.steps {
				s(r, st)
				require.Equal(t, c.shown >= 0 && i+1 >= c.shown, r.isOver(), "after step %d", i+1)
			}
			require.Equal(t, r.isOver(), r.why() == "")
		})
	}
}

type replayState struct {
	log              []raft.LogType
	applied, effects uint64
}

func (st *replayState) get(index uint64, out *raft.Log) error {
	if index == 0 || index > uint64(len(st.log)) {
		return raft.ErrLogNotFound
	}
	out.Type = st.log[index-1]
	return nil
}

// crash ends a node as kill -9 does: what was not on disk is lost. The node starts again with
// what was there. Nothing is written meanwhile.
func (c *testCluster) crash(i int) {
	c.t.Helper()
	dir := copyOf(c.t.(*testing.T), c.cfgs[i].DataDir)
	c.stop(i)
	c.cfgs[i].DataDir = dir
}

// cutTransport is a node's transport of Raft, which can be cut off from the other nodes.
type cutTransport struct {
	raft.Transport
	raft.WithPreVote
	cut    *atomic.Bool
	calls  chan raft.RPC
	over   chan struct{}
	relays sync.WaitGroup
}

var errCut = errors.New("the node is cut off")

func newCutTransport(t raft.Transport, cut *atomic.Bool) *cutTransport {
	c := &cutTransport{Transport: t, WithPreVote: t.(raft.WithPreVote), cut: cut, calls: make(chan raft.RPC), over: make(chan struct{})}
	c.relays.Go(func() {
		for {
			select {
			case rpc := <-t.Consumer():
				if c.cut.Load() {
					rpc.Respond(nil, errCut)
					continue
				}
				select {
				case c.calls <- rpc:
				case <-c.over:
					return
				}
			case <-c.over:
				return
			}
		}
	})
	return c
}

func (c *cutTransport) Consumer() <-chan raft.RPC { return c.calls }

func (c *cutTransport) SetHeartbeatHandler(cb func(raft.RPC)) {
	c.Transport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if c.cut.Load() {
			rpc.Respond(nil, errCut)
			return
		}
		cb(rpc)
	})
}

func (c *cutTransport) RequestVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, r *raft.RequestVoteResponse) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Transport.RequestVote(id, to, q, r)
}

func (c *cutTransport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, r *raft.RequestPreVoteResponse) error {
	if c.cut.Load() {
		return errCut
	}
	return c.WithPreVote.RequestPreVote(id, to, q, r)
}

func (c *cutTransport) Close() error {
	close(c.over)
	c.relays.Wait()
	return c.Transport.(raft.WithClose).Close()
}

// ownReads are what shows a client a node's own state. Each returns how many jobs it has seen.
func ownReads(seqs map[string]uint64) map[string]func(ctx context.Context, n *Node) (int, error) {
	one := func(err error) (int, error) {
		if job.CodeOf(err) == job.CodeNotFound {
			return 0, nil
		}
		return len(seqs), err
	}
	return map[string]func(ctx context.Context, n *Node) (int, error){
		"counts": func(ctx context.Context, n *Node) (int, error) {
			totals, err := n.shard.Totals(ctx, true)
			return int(totals.GetDelayed()), err
		},
		"topic": func(ctx context.Context, n *Node) (int, error) {
			topic, err := n.shard.Topic(ctx, "t", true)
			return int(topic.GetDelayed()), err
		},
		"topics": func(ctx context.Context, n *Node) (int, error) {
			topics, err := n.shard.Topics(ctx, "", 10, true)
			return len(topics) * len(seqs), err
		},
		"job": func(ctx context.Context, n *Node) (int, error) {
			_, err := n.shard.Job(ctx, "j0", true)
			return one(err)
		},
		"job by number": func(ctx context.Context, n *Node) (int, error) {
			_, err := n.shard.JobBySeq(ctx, seqs["j0"], true)
			return one(err)
		},
		"peek": func(ctx context.Context, n *Node) (int, error) {
			_, err := n.shard.Peek(ctx, "t", jobpb.State_STATE_DELAYED, true)
			return one(err)
		},
		"list": func(ctx context.Context, n *Node) (int, error) {
			page, err := n.shard.Jobs(ctx, &jobpb.JobQuery{Topic: "t", Max: 1000}, true)
			return len(page.GetJobs()), err
		},
		"backup": func(ctx context.Context, n *Node) (int, error) {
			err := n.Backup(ctx, io.Discard, job.BackupOptions{Stale: true})
			return len(seqs), err
		},
		"removed nodes": func(ctx context.Context, n *Node) (int, error) {
			_, err := n.RemovedNodes(ctx)
			return len(seqs), err
		},
	}
}

// jobsInMetrics returns the number of delayed jobs in a node's metrics; -1: it is not there.
func jobsInMetrics(t *testing.T, n *Node) int {
	families, err := n.Metrics().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "tarry_jobs" {
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetValue() == "delayed" {
					return int(m.GetGauge().GetValue())
				}
			}
		}
	}
	return -1
}

// The store has no log of its own: after a crash the state is that of the last flush, here an
// empty one. Nobody may see it, also not while the node hears of no leader.
func TestAfterACrashANodeShowsNoOlderState(t *testing.T) {
	for _, kind := range []logstore.Kind{logstore.RaftWAL, logstore.RaftBoltDB} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var cut atomic.Bool
			c := newTunedCluster(t, 3, func(i int, cfg *Config) {
				cfg.LogStore = kind
				if i == 2 {
					cfg.timing = DefaultTiming()
					cfg.timing.HoldTime = 200 * time.Millisecond
					cfg.wrapTransport = func(t raft.Transport) raft.Transport { return newCutTransport(t, &cut) }
				}
			})
			if c.leader() == 2 {
				c.transfer(c.nodes[0])
			}
			const count = 60
			seqs := map[string]uint64{}
			for i := range count {
				id := fmt.Sprint("j", i)
				seqs[id] = do(t, c.nodes[0], add(id, "t", time.Hour))[0].Seq
			}
			reads := ownReads(seqs)
			for what, read := range reads {
				if what == "backup" {
					continue // it flushes the state
				}
				c.eventually(func() bool { seen, err := read(t.Context(), c.nodes[2]); return err == nil && seen == count }, what+" before the crash")
			}
			standby := position(c.nodes[2])

			cut.Store(true)
			c.crash(2)
			back := c.start(2)
			require.Less(t, back.shard.machine.Applied().Index, standby.After, "the crash has lost nothing: this test shows nothing")
			for what, read := range reads {
				seen, err := read(t.Context(), back)
				require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "%s: %d jobs, error %v", what, seen, err)
				require.ErrorContains(t, err, "has not applied its log again", what)
			}
			require.Equal(t, -1, jobsInMetrics(t, back))
			_, err := readLog(t, back, job.LogOptions{ClusterID: standby.ClusterID}, 1)
			require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "a standby would take its state for the newest: %v", err)
			require.Contains(t, strings.Join(back.Readiness().Reasons, "\n"), "has not applied its log again")
			seen, err := reads["counts"](t.Context(), c.nodes[0])
			require.NoError(t, err, "the others serve")
			require.Equal(t, count, seen)

			cut.Store(false)
			for what, read := range reads {
				c.eventually(func() bool {
					seen, err := read(t.Context(), back)
					if err == nil && seen != count {
						t.Errorf("%s: %d jobs", what, seen)
					}
					return err == nil
				}, what+" once the node hears of the leader")
			}
			require.Equal(t, count, jobsInMetrics(t, back))
			c.eventually(func() bool { return back.Readiness().Ready }, "it is ready")
		})
	}
}

// A single node has the same gap between its start and its election.
func TestASingleNodeShowsNoOlderStateAfterACrash(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.leader()
	for i := range 60 {
		do(t, c.nodes[0], add(fmt.Sprint("j", i), "t", time.Hour))
	}
	c.crash(0)
	n := c.start(0)
	for {
		totals, err := n.shard.Totals(t.Context(), true)
		if err == nil {
			require.Equal(t, uint64(60), totals.Delayed)
			break
		}
		require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "%v", err)
	}
}

// What a leader lets take effect at its instant is not in an entry. It was shown.
func TestAfterACrashALeaderShowsWhatTookEffect(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.leader()
	waits := func() *jobpb.Reserved {
		got := make(chan []*jobpb.Reserved, 1)
		go func() {
			jobs, _ := c.nodes[0].shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: 3600_000}, 30*time.Second)
			got <- jobs
		}()
		c.awaitWaiters(1)
		do(t, c.nodes[0], add("", "t", 50*time.Millisecond))
		jobs := <-got
		require.Len(t, jobs, 1)
		return jobs[0]
	}
	for range 5 {
		j := waits()
		c.crash(0)
		n := c.start(0)
		for {
			now, err := n.shard.JobBySeq(t.Context(), j.Seq, true)
			if err == nil {
				require.Equal(t, jobpb.State_STATE_RESERVED, now.State)
				break
			}
			require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "%v", err)
		}
		c.leader()
	}
}

// A leader appends entries that no majority gets. Whoever leads next truncates them, and has
// nothing to commit in their place.
func TestAStateIsShownWhenTheRestOfTheLogIsTruncated(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	do(t, c.nodes[l], add("kept", "t", time.Hour))
	for i := range c.nodes {
		if i != l {
			c.stop(i)
		}
	}
	for range 3 { // the first are in its log
		_, err := c.nodes[l].shard.Do(t.Context(), []*jobpb.Op{add("lost", "t", time.Hour)})
		require.Error(t, err)
	}
	c.crash(l)
	for i := range c.nodes {
		if i != l {
			c.start(i)
		}
	}
	c.leader()
	back := c.start(l)
	c.eventually(func() bool {
		totals, err := back.shard.Totals(t.Context(), true)
		return err == nil && totals.Delayed == 1
	}, "it shows the state that the cluster has")
	require.NotContains(t, strings.Join(back.Readiness().Reasons, "\n"), "has not applied its log again")
}
