package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/job"
)

// adder adds jobs until its test stops it, and keeps when those that were acknowledged are due.
type adder struct {
	mu    sync.Mutex
	due   map[string]string
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func (c *cluster) addJobs(workers int) *adder {
	ctx, stop := context.WithCancel(c.t.Context())
	a := &adder{due: map[string]string{}, stop: stop}
	for w := range workers {
		a.ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("job-%d-%d", w, i)
				var added struct {
					Due string `json:"due_at"`
				}
				node := c.Nodes()[i%len(c.Nodes())]
				if c.Post(ctx, node, "/v1/jobs", object{"topic": fmt.Sprint("t", i%3), "id": id, "delay": 3600 + i%100, "body": id}, &added) == nil {
					a.mu.Lock()
					a.due[id] = added.Due
					a.mu.Unlock()
				}
			}
		})
	}
	c.t.Cleanup(a.end)
	return a
}

// acknowledged returns a copy of what was acknowledged so far.
func (a *adder) acknowledged() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	got := make(map[string]string, len(a.due))
	for id, due := range a.due {
		got[id] = due
	}
	return got
}

func (a *adder) end() {
	a.stop()
	a.ended.Wait()
}

// requireJobs checks that a node has all jobs, due as they were.
func (c *cluster) requireJobs(n *localcluster.Node, want map[string]string) {
	c.t.Helper()
	for id, due := range want {
		var j struct {
			State string `json:"state"`
			Due   string `json:"due_at"`
			Body  string `json:"body"`
		}
		require.NoError(c.t, c.Get(c.t.Context(), n, "/v1/jobs/"+id, &j), id)
		require.Equal(c.t, [...]string{"delayed", due, id}, [...]string{j.State, j.Due, j.Body}, id)
	}
}

func (c *cluster) wipe(nodes ...*localcluster.Node) {
	c.t.Helper()
	for _, n := range nodes {
		require.NoError(c.t, os.RemoveAll(n.DataDir()))
	}
}

// A backup that a follower makes under load has everything that was acknowledged before.
// After the loss of all nodes a new cluster continues from it.
func TestABackupIsRestoredIntoANewCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.waitVersion(job.MaxVersion) // which is after the cluster has its id
	nodes := c.Nodes()
	c.tarry("add", "--topic", "soon", "--id", "overdue", "--delay", "1s", "x")
	c.tarry("add", "--topic", "held", "--id", "held", "--ttr", "1h", "x")
	require.Equal(t, "held", reserveOne(t, nodes[0].HTTP, "held", 10)["id"])
	load := c.addJobs(4)
	c.until(func() error {
		if n := len(load.acknowledged()); n < 500 {
			return fmt.Errorf("%d jobs are added", n)
		}
		return nil
	})
	before := load.acknowledged()
	file := filepath.Join(t.TempDir(), "a.backup")
	from := c.follower()
	var made struct {
		Header struct {
			NodeID string `json:"node_id"`
			Index  uint64 `json:"index"`
		} `json:"header"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.tarry("backup", "--out", file, "--addr", from.HTTP, "--json")), &made))
	require.Equal(t, from.ID, made.Header.NodeID)
	load.end()
	require.Contains(t, c.tarry("backup", "verify", file), "every record was read")

	c.kill(nodes...)
	c.wipe(nodes...)
	t.Log(c.tarry("restore", file, "--data-dir", nodes[0].DataDir(), "--node-id", nodes[0].ID))
	c.start(nodes[0])
	c.start(nodes[1:]...)
	c.waitVoters(nodes[0], "n1", "n2", "n3")
	c.requireEqualDigests(nodes[1], 3)
	c.requireJobs(nodes[2], before)
	require.Equal(t, "overdue", reserveOne(t, nodes[1].HTTP, "soon", 20)["id"])
	again := reserveOne(t, nodes[1].HTTP, "held", 20)
	require.Equal(t, "held", again["id"], "its reservation has ended")
	require.EqualValues(t, 2, again["attempts"])
	c.killLeader()
	c.requireJobs(nodes[0], before)
}

// Two of three disks are lost. The third node goes on with all that it had, as the only voter of
// a new cluster; a lost node that comes back with its old data is not let in.
func TestTheLastOfThreeNodesIsRecovered(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	nodes := c.Nodes()
	load := c.addJobs(2)
	c.until(func() error {
		if n := len(load.acknowledged()); n < 200 {
			return fmt.Errorf("%d jobs are added", n)
		}
		return nil
	})
	load.end()
	want := load.acknowledged()
	c.requireEqualDigests(nodes[0], 3) // so the one that is left has them all
	c.kill(nodes...)
	old := nodes[2]
	c.wipe(nodes[1])

	last := nodes[0]
	shown := c.tarry("recover", "--data-dir", last.DataDir())
	for _, n := range nodes {
		require.Contains(t, shown, n.ID+".")
	}
	dry := c.tarry("recover", "--data-dir", last.DataDir(), "--as-only-voter", "--dry-run")
	require.Contains(t, dry, "acknowledged by 2 of 3 voters")
	refused, err := exec.CommandContext(t.Context(), binary, "recover", "--data-dir", last.DataDir(), "--as-only-voter").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "--yes")
	require.Equal(t, shown, c.tarry("recover", "--data-dir", last.DataDir()), "nothing has changed")
	require.Contains(t, c.tarry("recover", "--data-dir", last.DataDir(), "--as-only-voter", "--yes"), "only voter of the new cluster")
	shown = c.tarry("recover", "--data-dir", last.DataDir())
	require.Contains(t, c.tarry("recover", "--data-dir", last.DataDir(), "--as-only-voter", "--yes"), "there is nothing to recover")
	require.Equal(t, shown, c.tarry("recover", "--data-dir", last.DataDir()), "the second time has changed nothing")

	c.start(last)
	c.requireJobs(last, want)
	c.start(nodes[1]) // before the old one, which an empty node could take for its cluster
	c.waitVoters(last, "n1", "n2")
	require.NoError(t, old.Start()) // it finds nobody of its cluster
	c.requireJobs(nodes[1], want)
	c.waitVoters(last, "n1", "n2")
	c.kill(old)
}

// Three of five disks are lost. The other two nodes go on as the voters of a new cluster, with
// all that the one of them had that has most; a lost node that comes back with its old data is
// not let in.
func TestTwoOfFiveNodesAreRecovered(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	c.waitVersion(job.MaxVersion) // which is after the cluster has its id
	nodes := c.Nodes()
	behind, most, old := nodes[3], nodes[4], nodes[0]
	load := c.addJobs(2)
	enough := func(jobs int) func() error {
		return func() error {
			if n := len(load.acknowledged()); n < jobs {
				return fmt.Errorf("%d jobs are added", n)
			}
			return nil
		}
	}
	c.until(enough(100))
	c.kill(behind) // and the others go on
	c.until(enough(300))
	load.end()
	want := load.acknowledged()
	for id := range want {
		c.until(func() error { return c.Get(t.Context(), most, "/v1/jobs/"+id+"?consistency=stale", new(object)) })
	}
	c.kill(nodes[0], nodes[1], nodes[2], most)
	c.wipe(nodes[1])
	c.wipe(nodes[2])

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	peersOf := func(left ...*localcluster.Node) (text string, err error) {
		args := []string{"recover", "peers"}
		for _, n := range left {
			args = append(args, write(n.ID+".json", c.tarry("recover", "--data-dir", n.DataDir(), "--json")))
		}
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		return string(out), err
	}
	refused := func(n *localcluster.Node, file, says string) {
		out, err := exec.CommandContext(t.Context(), binary, "recover", "--data-dir", n.DataDir(), "--peers", file, "--yes").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), says)
	}
	text, err := peersOf(old, behind, most)
	require.Error(t, err, "three of five")
	require.Contains(t, text, "they are a majority")
	text, err = peersOf(behind, most)
	require.NoError(t, err, text)
	peers := write("peers.json", text)
	refused(old, peers, "does not have this node")
	refused(most, write("other.json", strings.Replace(text, `"last_index": `, `"last_index": 1`, 2)), "has changed since the peers file was made")
	shown := c.tarry("recover", "--data-dir", most.DataDir())
	require.Contains(t, c.tarry("recover", "--data-dir", most.DataDir(), "--peers", peers, "--dry-run"), "nothing was done: n5 has most of the 2 nodes of the file")
	require.Contains(t, c.tarry("recover", "--data-dir", behind.DataDir(), "--peers", peers, "--dry-run"), "nothing was done: n4 gets what it lacks from n5.")
	require.Equal(t, shown, c.tarry("recover", "--data-dir", most.DataDir()), "nothing has changed")
	for _, n := range []*localcluster.Node{behind, most} {
		require.Contains(t, c.tarry("recover", "--data-dir", n.DataDir(), "--peers", peers, "--yes"), "is recovered")
		refused(n, peers, "has been recovered with this peers file already")
	}

	require.NoError(t, behind.Start()) // alone it cannot lead, and waits
	require.NoError(t, most.Start())
	c.waitReady(most, behind)
	c.waitVoters(most, behind.ID, most.ID)
	c.requireJobs(most, want)
	c.requireJobs(behind, want)
	c.requireEqualDigests(behind, 2)
	c.start(nodes[1])
	c.waitVoters(most, nodes[1].ID, behind.ID, most.ID)
	require.NoError(t, old.Start()) // it finds nobody of its cluster
	c.requireJobs(nodes[1], want)
	c.waitVoters(most, nodes[1].ID, behind.ID, most.ID)
	c.requireEqualDigests(nodes[1], 3)
	c.kill(old)
	c.killLeader()
	c.requireJobs(nodes[1], want)
}
