package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/chaos/history"
	"tarry/client"
	"tarry/job"
)

// releaseBefore is the commit of the release before this one. Everything that it writes to
// disks and sends to other nodes must be readable (docs/formats.md). The first is that of
// version 0.1; after a release it is set to the next.
const releaseBefore = "7bce60b98de2569828421a2da976c7450b66b60c"

// buildBefore builds the release before this one from its commit.
func buildBefore(t *testing.T) string {
	dir := t.TempDir()
	path := filepath.Join(dir, "tarry-before")
	run := func(dir string, env []string, name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
	}
	source := filepath.Join(dir, "source")
	require.NoError(t, os.Mkdir(source, 0o700))
	run("..", nil, "git", "archive", "--output", filepath.Join(dir, "source.tar"), releaseBefore)
	run(source, nil, "tar", "-xf", filepath.Join(dir, "source.tar"))
	run(source, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", path, "./cmd/tarry")
	return path
}

// Three nodes of the release before are upgraded one after the other, taken back, and upgraded
// again, while a client that retries sees no failure. What the old nodes wrote is still there.
func TestUpgradeFromTheReleaseBefore(t *testing.T) {
	t.Parallel()
	before := buildBefore(t)
	c := newCluster(t, 3)
	for _, n := range c.Nodes() {
		n.SetBinary(before)
	}
	c.start(c.Nodes()...)
	queue, err := client.New(c.addrs())
	require.NoError(t, err)
	c.writeEverything(queue)
	saved := filepath.Join(t.TempDir(), "before.backup")
	c.tarryOf(before, "backup", "--out", saved)

	l := startLoad(t, c.addrs())
	work := c.retryingClient(queue)
	c.waitHealthy(c.leader())
	require.Contains(t, c.tarry("cluster", "upgrade", "--check"), "can be upgraded")
	equal := func(*localcluster.Node) {
		l.writes()
		c.requireEqualDigests(c.leader(), 3)
	}
	hold := func(value string) {
		for _, n := range c.Nodes() {
			n.Setenv("TARRY_HOLD_VERSION", value)
		}
	}
	hold("true")
	c.roll(binary, equal)
	hold("")
	c.roll(before, equal)
	c.roll(binary, equal)
	c.waitVersion(job.MaxVersion)
	// Until version 2 a delay may be up to 1 ms shorter than asked for.
	l.skews = []history.Skew{{Window: history.Window{From: l.from, To: l.config.Recorder.Now()}, By: time.Millisecond}}
	work()
	r := l.judge()
	t.Logf("operations %d, unknown outcomes %d, worst write gap %v", r.Ops, r.Unknowns(), r.WorstWriteGap)
	c.readEverything(queue)
	c.requireEqualDigests(c.leader(), 3)
	require.Contains(t, c.tarry("backup", "verify", saved), "every record was read")
}

// tarryOf runs a command of another binary.
func (c *cluster) tarryOf(path string, args ...string) {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), path, append(args, "--addr", c.Nodes()[0].HTTP)...).CombinedOutput()
	require.NoError(c.t, err, "%q: %s", args, out)
}

// writeEverything makes one thing of each kind.
func (c *cluster) writeEverything(queue *client.Client) {
	for _, command := range [][]string{
		{"topic", "set", "old.work", "--ttr", "45s", "--max-attempts", "1"},
		{"schedule", "put", "old-nightly", "--spec", "30 3 * * *", "--topic", "old.work", "x"},
		{"namespace", "create", "old", "--topic-prefix", "old.", "--jobs", "100"},
		{"add", "--topic", "old.later", "--id", "old-delayed", "--delay", "3h", "later"},
		{"add", "--topic", "old.now", "--id", "old-ready", "now"},
		{"add", "--topic", "old.work", "--id", "old-dead", "dies"},
	} {
		c.tarryOf(c.Nodes()[0].Binary(), command...)
	}
	jobs, err := queue.Reserve(c.t.Context(), client.ReserveOptions{Topics: []string{"old.work"}, Wait: patience})
	require.NoError(c.t, err)
	require.Len(c.t, jobs, 1)
	_, err = queue.Bury(c.t.Context(), jobs[0].Ref(), client.BuryOptions{Reason: "broken"})
	require.NoError(c.t, err)
}

// readEverything checks what writeEverything made.
func (c *cluster) readEverything(queue *client.Client) {
	for id, state := range map[string]client.State{"old-delayed": "delayed", "old-ready": "ready", "old-dead": "dead"} {
		j, err := queue.Get(c.t.Context(), id)
		require.NoError(c.t, err)
		require.Equal(c.t, state, j.State, id)
	}
	for want, command := range map[string][]string{
		"45s":        {"topic", "get", "old.work"},
		"30 3 * * *": {"schedule", "get", "old-nightly"},
		"old\\.":     {"namespace", "show", "old"},
	} {
		require.Regexp(c.t, want, c.tarry(command...))
	}
}

// retryingClient adds, reserves and finishes jobs with the client's own retries until the returned
// function is called, which checks that no call has failed and no job is left.
func (c *cluster) retryingClient(queue *client.Client) (end func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var work sync.WaitGroup
	added, finished := 0, map[string]bool{}
	var failed error
	work.Go(func() {
		for failed == nil && (ctx.Err() == nil || len(finished) < added) {
			if ctx.Err() == nil {
				id := fmt.Sprintf("retried-%d", added)
				if _, failed = queue.Add(c.t.Context(), client.NewJob{Topic: "retried", ID: id, Body: client.Text(id)}); failed != nil {
					return
				}
				added++
			}
			jobs, err := queue.Reserve(c.t.Context(), client.ReserveOptions{Topics: []string{"retried"}, Wait: time.Second})
			failed = err
			for _, j := range jobs {
				// A job that was handed out again by a new leader is finished by either call.
				if err := queue.Finish(c.t.Context(), j.Ref()); err != nil && !errors.Is(err, client.CodeNotFound) && !errors.Is(err, client.CodeStaleToken) {
					failed = errors.Join(failed, err)
				}
				finished[j.ID] = true
			}
		}
	})
	return func() {
		c.t.Helper()
		cancel()
		work.Wait()
		require.NoError(c.t, failed, "a call failed for good")
		require.Positive(c.t, added)
		require.Len(c.t, finished, added)
		c.t.Logf("%d jobs of a client that retries", added)
	}
}
