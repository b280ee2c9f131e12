package cluster

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/logstore"
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

// largeBackup adds jobs with bodies that do not compress, and returns a backup of them, which goes
// through the log in many parts.
func largeBackup(t *testing.T, n *Node, megabytes int) []byte {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for i := range megabytes {
		var ops []*jobpb.Op
		for k := range 16 {
			op := add(fmt.Sprintf("large-%d-%d", i, k), "large", time.Hour)
			op.GetAdd().Body = make([]byte, 64<<10)
			_, _ = random.Read(op.GetAdd().Body)
			ops = append(ops, op)
		}
		do(t, n, ops...)
	}
	return backupFrom(t, n)
}

// newSendingCluster starts three nodes. A leader that sends a state stops after its first part until
// release is called.
func newSendingCluster(t *testing.T) (c *testCluster, release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	c = newTunedCluster(t, 3, func(_ int, cfg *Config) { cfg.sentPart = func() { <-gate } })
	t.Cleanup(release) // before the nodes are stopped
	c.awaitVersion()
	return c, release
}

// sendState makes the leader send a backup, and returns once its first part is sent.
func (c *testCluster) sendState(file []byte) (leader int, cancel func(), ended chan error) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	leader, ended = -1, make(chan error, 1)
	c.eventually(func() bool {
		if leader < 0 {
			leader = c.leader()
			n := c.nodes[leader]
			go func() {
				_, err := n.Restore(ctx, bytes.NewReader(file), job.RestoreOptions{})
				ended <- err
			}()
		}
		select {
		case err := <-ended: // leadership moved before
			c.t.Log(err)
			leader = -1
			return false
		default:
			return c.nodes[leader].shard.machine.Upload() != 0
		}
	}, "it sends the state")
	return leader, cancel, ended
}

// A leader that is lost while it sends a state has replaced nothing. What it has sent is removed,
// and the next leader can do the same.
func TestALeaderThatIsLostWhileItSendsAStateReplacesNothing(t *testing.T) {
	for name, lose := range map[string]func(c *testCluster, l int){
		"it ends":              func(c *testCluster, l int) { c.stop(l) },
		"it leads no longer":   func(c *testCluster, l int) { c.transfer(c.nodes[(l+1)%3]) },
		"its client goes away": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, release := newSendingCluster(t)
			l := c.leader()
			file := largeBackup(t, c.nodes[l], 12)
			do(t, c.nodes[l], add("present", "t", time.Hour))
			l, cancel, ended := c.sendState(file)
			if lose == nil {
				cancel()
			} else {
				lose(c, l)
			}
			release()
			require.Equal(t, job.CodeNotApplied, job.CodeOf(<-ended))
			if c.nodes[l] == nil {
				c.start(l)
			}
			c.eventually(func() bool {
				for _, n := range c.nodes {
					if n.shard.machine.Upload() != 0 {
						return false
					}
				}
				return true
			}, "what was sent is removed")
			_, err := c.nodes[c.leader()].shard.Job(t.Context(), "present", false)
			require.NoError(t, err)
			c.requireEqualStates()
			c.eventually(func() bool {
				done, err := c.nodes[c.leader()].Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
				return err == nil && done.Index != 0
			}, "the state is replaced")
			c.requireEqualStates()
			_, err = c.nodes[c.leader()].shard.Job(t.Context(), "present", false)
			require.Equal(t, job.CodeNotFound, job.CodeOf(err))
		})
	}
}

// A node that was down gets the state while another is being sent: with the parts that were sent.
func TestANodeThatReturnsWhileAStateIsSentGetsItsParts(t *testing.T) {
	t.Parallel()
	c, release := newSendingCluster(t)
	l := c.leader()
	file := largeBackup(t, c.nodes[l], 12)
	do(t, c.nodes[l], add("present", "t", time.Hour))
	down := (l + 1) % 3
	c.stop(down)
	l, _, ended := c.sendState(file)
	s := c.nodes[l].shard
	require.NoError(t, s.reloadRaft(func(r *raft.ReloadableConfig) { r.TrailingLogs = 1 }))
	require.NoError(t, s.raft.Snapshot().Error())
	c.start(down)
	// It serves meanwhile.
	do(t, c.nodes[down], add("meanwhile", "t", time.Hour))
	release()
	require.NoError(t, <-ended)
	c.requireEqualStates()
	for _, n := range c.nodes {
		require.NotZero(t, n.shard.machine.ReplacedAt())
		require.Zero(t, n.shard.machine.Upload())
	}
}

// A backup of a cluster whose clock was far ahead does not move the clock of this one.
func TestABackupOfAClockThatWasAheadDoesNotMoveTheQueuesTime(t *testing.T) {
	t.Parallel()
	ahead := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.wall = func() time.Time { return time.Now().Add(365 * 24 * time.Hour) }
	})
	ahead.awaitVersion()
	n := ahead.nodes[ahead.leader()]
	do(t, n, add("soon", "t", time.Hour))
	file := backupFrom(t, n)
	c := newTestCluster(t, 1)
	c.awaitVersion()
	n = c.nodes[c.leader()]
	_, err := n.Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
	require.NoError(t, err)
	require.Less(t, time.Until(n.shard.Now()), time.Minute)
	j, err := n.shard.Job(t.Context(), "soon", false)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), time.UnixMilli(j.DueMs), 10*time.Minute)
}

// Every entry goes through the committer, which gives it a time of the guarded clock and knows
// when it is applied (stamps). And raft.Restore makes a state that no majority has.
func TestOnlyTheCommitterProposes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	proposes := regexp.MustCompile(`\braft\.(Apply|ApplyLog|Restore)\(`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		want := 0
		if name == "shard.go" {
			want = 1
		}
		require.Len(t, proposes.FindAll(source, -1), want, name)
	}
}
