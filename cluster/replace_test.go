package cluster

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/cluster/logstore"
	"tarry/cluster/recovery"
	"tarry/fsm"
	"tarry/job"
	"tarry/job/jobpb"
)

// backupFrom makes a backup of a node's state.
func backupFrom(t *testing.T, n *Node) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, n.Backup(t.Context(), &file, job.BackupOptions{}))
	return file.Bytes()
}

// awaitVersion waits until the cluster has the newest version: the raise is an entry of the log.
func (c *testCluster) awaitVersion() {
	c.t.Helper()
	c.eventually(func() bool {
		for _, n := range c.nodes {
			if n != nil && n.shard.machine.Version() < job.MaxVersion {
				return false
			}
		}
		return true
	}, "the cluster version is raised")
}

// requireEqualStates checks that all nodes have the same state.
func (c *testCluster) requireEqualStates() {
	c.t.Helper()
	c.eventually(func() bool {
		v, err := c.nodes[c.leader()].Verify(c.t.Context())
		if err != nil || !v.Equal {
			return false
		}
		for _, d := range v.Digests {
			if d.Error != "" {
				return false
			}
		}
		return len(v.Digests) == len(c.nodes)
	}, "all nodes have the same state")
}

func TestABackupReplacesTheStateOfARunningCluster(t *testing.T) {
	for _, kind := range []logstore.Kind{logstore.RaftWAL, logstore.RaftBoltDB} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newTunedCluster(t, 3, func(_ int, cfg *Config) { cfg.LogStore = kind })
			c.awaitVersion()
			l := c.leader()
			do(t, c.nodes[l], add("kept", "t", 0), add("finished", "t", 0), add("later", "t", time.Hour))
			file := backupFrom(t, c.nodes[l])
			jobs, err := c.nodes[l].shard.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 2}, 0)
			require.NoError(t, err)
			require.Len(t, jobs, 2)
			do(t, c.nodes[l], finish(jobs[1]), add("replaced", "t", 0))
			var more []*jobpb.Op
			for i := range 50 {
				more = append(more, add(fmt.Sprint("replaced-", i), "u", 0))
			}
			do(t, c.nodes[l], more...)

			_, err = c.nodes[(l+1)%3].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
			require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "only the leader can")
			dry, err := c.nodes[l].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{DryRun: true})
			require.NoError(t, err)
			require.EqualValues(t, 51, dry.Before.Ready)
			require.EqualValues(t, 2, dry.After.Ready)
			require.Zero(t, dry.Index)

			done, err := c.nodes[l].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
			require.NoError(t, err)
			require.NotZero(t, done.Index)
			require.Equal(t, dry.After, done.After)
			c.requireEqualStates()
			for _, n := range c.nodes {
				require.Equal(t, done.Index, n.shard.machine.ReplacedAt())
				require.False(t, n.shard.machine.Unconfirmed())
			}
			rs, err := c.nodes[l].shard.Do(t.Context(), []*jobpb.Op{finish(jobs[0])})
			require.NoError(t, err)
			require.Equal(t, job.CodeStaleToken, job.CodeOf(job.ResultError(rs[0])), "a reservation before the replacement")
			via := c.nodes[(c.leader()+1)%3]
			got := map[string]bool{}
			for range 2 {
				for _, j := range reserveOne(t, via, patience, "t") {
					got[j.Id] = true
					do(t, via, finish(j))
				}
			}
			require.Equal(t, map[string]bool{"kept": true, "finished": true}, got)
			require.Empty(t, reserveOne(t, via, 0, "t", "u"), "nothing of the replaced state is handed out")
			r := do(t, via, add("new", "t", 0))[0]
			require.Greater(t, r.Seq, uint64(1<<40))
			for i := range c.nodes {
				c.stop(i)
			}
			for i := range c.nodes {
				c.start(i)
			}
			require.Len(t, reserveOne(t, c.nodes[c.leader()], patience, "t"), 1)
			c.requireEqualStates()
		})
	}
}

// A node that was down when the state was replaced gets the new one when it returns.
func TestANodeThatWasDownGetsTheStateThatReplacedItsOwn(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	c.awaitVersion()
	l := c.leader()
	do(t, c.nodes[l], add("kept", "t", time.Hour))
	file := backupFrom(t, c.nodes[l])
	do(t, c.nodes[l], add("replaced", "t", time.Hour))
	down := (l + 1) % 3
	c.stop(down)
	done, err := c.nodes[c.leader()].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
	require.NoError(t, err)
	c.start(down)
	c.eventually(func() bool { return c.nodes[down].shard.machine.ReplacedAt() == done.Index }, "it has the new state")
	c.requireEqualStates()
}

// While clients add, reserve and finish, the state is replaced again and again. What is
// acknowledged after the last replacement is there.
func TestTheStateIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	c.awaitVersion()
	l := c.leader()
	do(t, c.nodes[l], add("kept", "kept", time.Hour))
	file := backupFrom(t, c.nodes[l])
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[job.Code]int{}
	for i := range 6 {
		n := c.nodes[i%3]
		clients.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				_, err := n.shard.Do(ctx, []*jobpb.Op{add(fmt.Sprint(i, "-", k), "load", 0)})
				mu.Lock()
				if err != nil && ctx.Err() == nil {
					outcomes[job.CodeOf(err)]++
				}
				mu.Unlock()
				jobs, err := n.shard.Reserve(ctx, &jobpb.Reserve{Topics: []string{"load"}, Max: 1}, 100*time.Millisecond)
				if err == nil && len(jobs) > 0 {
					_, _ = n.shard.Do(ctx, []*jobpb.Op{finish(jobs[0])})
				}
			}
		})
	}
	last := uint64(0)
	for range 3 {
		c.eventually(func() bool {
			done, err := c.nodes[c.leader()].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
			if err != nil {
				t.Log(err)
				return false
			}
			require.Greater(t, done.Index, last)
			last = done.Index
			return true
		}, "the state is replaced")
		do(t, c.nodes[c.leader()], add(fmt.Sprint("after-", last), "kept", time.Hour))
	}
	cancel()
	clients.Wait()
	t.Log(outcomes)
	for code := range outcomes {
		require.Contains(t, []job.Code{job.CodeNotApplied, job.CodeUnknown}, code)
	}
	c.requireEqualStates()
	for id, there := range map[string]bool{"kept": true, fmt.Sprint("after-", last): true} {
		j, err := c.nodes[c.leader()].shard.Job(t.Context(), id, false)
		require.NoError(t, err)
		require.Equal(t, there, j != nil, id)
	}
}

// Raft sends a follower the state once the log is dropped.
func TestALeaderDropsItsLog(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	n := c.nodes[c.leader()]
	do(t, n, add("a", "t", 0))
	require.EqualValues(t, 1, firstIndex(t, n))
	n.shard.dropLog()
	c.eventually(func() bool { return firstIndex(t, n) > 1 }, "the log begins later")
	do(t, n, add("b", "t", 0))
}

// A leader that was lost right after it had the new state, which nobody else has, comes back. It
// gets the state of the cluster, which began with the first entry of the log.
func TestANodeWithAStateThatTheClusterDoesNotHaveGetsTheClusters(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	c.eventually(func() bool { return c.established() >= 0 }, "a leader")
	l := c.leader()
	do(t, c.nodes[l], add("in-backup", "t", time.Hour))
	file := backupFrom(t, c.nodes[l])
	do(t, c.nodes[l], add("present", "t", time.Hour))
	lost := c.nodes[l].shard
	configuration := lost.machine.Applied()
	c.stop(l)
	last, term := lost.raft.LastIndex(), lost.raft.CurrentTerm() // an entry may have come while it stopped

	dir := filepath.Join(c.cfgs[l].DataDir, "shard-0", "fsm")
	m, err := fsm.Open(dir, fsm.Options{})
	require.NoError(t, err)
	r, err := backup.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	defer r.Close()
	staged, err := recovery.Stage(t.Context(), r.State(), m, recovery.Staging{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, m.Replace(staged.State, fsm.Applied{Index: last + 1, Term: term, Configuration: configuration.Configuration, ConfigurationIndex: configuration.ConfigurationIndex}))
	require.NoError(t, m.Close())

	do(t, c.nodes[c.leader()], add("later", "t", time.Hour))
	ended := make(chan struct{}, 1)
	c.cfgs[l].Fatal = func(err error) {
		if !RestartFixes(err) {
			t.Errorf("fatal: %v", err)
		}
		select {
		case ended <- struct{}{}:
		default:
		}
	}
	c.start(l)
	c.eventually(func() bool {
		select {
		case <-ended: // it asks for a restart when its state has gone back, a moment after that is to be seen
			c.stop(l)
			c.start(l)
		default:
		}
		if c.nodes[l] == nil || c.nodes[l].shard.machine.ReplacedAt() != 0 {
			return false
		}
		v, err := c.nodes[c.leader()].Verify(t.Context())
		return err == nil && v.Equal
	}, "it has the cluster's state")
	_, err = c.nodes[l].shard.Job(t.Context(), "later", true)
	require.NoError(t, err)
}
