package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/internal/smalldisk"
)

// backups lists the files in a directory of scheduled backups, oldest first.
func backups(t *testing.T, dir string) (complete, partial []string) {
	entries, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "tarry-probe-") {
			continue // a node that starts tries the object store
		}
		switch filepath.Ext(e.Name()) {
		case ".backup":
			complete = append(complete, filepath.Join(dir, e.Name()))
		case ".partial":
			partial = append(partial, e.Name())
		default:
			t.Fatalf("there is a file %s", e.Name())
		}
	}
	return complete, partial
}

// awaitBackup returns the newest backup, once there is one that is newer than another.
func (c *cluster) awaitBackup(dir, newerThan string) (newest string) {
	c.t.Helper()
	c.until(func() error {
		complete, _ := backups(c.t, dir)
		if len(complete) == 0 || complete[len(complete)-1] <= newerThan {
			return fmt.Errorf("no backup is newer than %q: %v", newerThan, complete)
		}
		newest = complete[len(complete)-1]
		return nil
	})
	return newest
}

// awaitIncremental returns the newest backup, once that is newer than another and incremental.
func (c *cluster) awaitIncremental(dir, newerThan string) (newest string) {
	c.t.Helper()
	for {
		newest = c.awaitBackup(dir, newerThan)
		if strings.Contains(c.tarry("backup", "inspect", newest), "\nbase:  ") {
			return newest
		}
		newerThan = newest
	}
}

// A node that makes a backup each second, and of three one whole, is killed again and again, and goes on. Its newest
// backup has everything that was acknowledged before, and can be restored.
func TestScheduledBackupsSurviveKillsAndAreRestored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	const keep, fullEvery = 4, 3
	c := startCluster(t, 1, "--backup-schedule", "@every 1s", "--backup-dir", dir, "--backup-keep", fmt.Sprint(keep), "--backup-full-every", fmt.Sprint(fullEvery), "--backup-rate", "0")
	node := c.Nodes()[0]
	last := c.awaitBackup(dir, "")
	for range 3 {
		load := c.addJobs(2)
		last = c.awaitBackup(dir, last)
		c.kill(node)
		load.end()
		c.start(node)
		last = c.awaitBackup(dir, last)
	}
	c.tarry("add", "--topic", "t", "--id", "the-last-one", "--delay", "1h", "x")
	last = c.awaitBackup(dir, last)
	last = c.awaitBackup(dir, last) // this one began after the add
	c.awaitIncremental(dir, last)   // and what it builds on is there
	complete, partial := backups(t, dir)
	require.LessOrEqual(t, len(complete), keep+fullEvery, "one is removed after the next is complete and nothing builds on it")
	require.LessOrEqual(t, len(partial), 1)
	require.Contains(t, c.tarry("cluster", "events"), "a scheduled backup is complete")
	require.Contains(t, c.tarry("backup", "list"), "incremental")
	require.NoError(t, node.Terminate(t.Context()))
	complete, partial = backups(t, dir)
	require.Empty(t, partial, "a stop leaves nothing half done")

	for _, file := range complete {
		require.Contains(t, c.tarry("backup", "verify", file), "every record was read")
	}
	newest := complete[len(complete)-1]
	c.wipe(node)
	t.Log(c.tarry("restore", newest, "--data-dir", node.DataDir(), "--node-id", node.ID))
	c.start(node)
	var j struct {
		State string `json:"state"`
	}
	require.NoError(t, c.Get(t.Context(), node, "/v1/jobs/the-last-one", &j))
	require.Equal(t, "delayed", j.State)
	c.awaitBackup(dir, last) // of the new cluster
	for _, old := range complete {
		require.FileExists(t, old, "backups of the cluster before are left alone")
	}
}

// With a shared directory the next leader goes on where the last one ended.
func TestScheduledBackupsGoOnWithTheNextLeader(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	c := startCluster(t, 3, "--backup-schedule", "@every 1s", "--backup-dir", dir, "--backup-keep", "10", "--backup-full-every", "5")
	last := c.awaitIncremental(dir, "")
	for range 2 {
		c.killLeader()
		if complete, _ := backups(t, dir); len(complete) > 0 {
			last = complete[len(complete)-1] // perhaps the last one of the killed leader
		}
		last = c.awaitIncremental(dir, last)
	}
	require.Contains(t, c.tarry("cluster", "events"), "a scheduled backup is whole before its turn")
	c.tarry("add", "--topic", "t", "--id", "the-last-one", "--delay", "1h", "x")
	last = c.awaitBackup(dir, c.awaitBackup(dir, last))
	require.Regexp(t, "jobs: +1 in 1 topics", c.tarry("backup", "verify", last))
}

// Each node has a directory of its own. The leader names a node without a schedule, and after a
// change of leader the next one goes on in its directory.
func TestScheduledBackupsInADirectoryOfEachNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	dir := map[string]string{}
	schedule := func(n *localcluster.Node) {
		dir[n.ID] = filepath.Join(t.TempDir(), "backups")
		n.Setenv("TARRY_BACKUP_DIR", dir[n.ID])
		n.Setenv("TARRY_BACKUP_SCHEDULE", "@every 1s")
	}
	nodes := c.Nodes()
	schedule(nodes[0])
	schedule(nodes[1])
	c.start(nodes...)
	c.awaitProblems(nodes[0], "warning: n3 has no --backup-schedule, and other nodes have one: while it leads, no backups are made")
	c.kill(nodes[2])
	schedule(nodes[2])
	c.start(nodes[2])
	c.awaitProblems(nodes[0])
	for range 2 {
		c.until(func() error { // the leader may change at any time
			if complete, _ := backups(t, dir[c.leader().ID]); len(complete) == 0 {
				return errors.New("the leader has no backup yet")
			}
			return nil
		})
		c.killLeader()
	}
}

// awaitProblems waits until health gives exactly such problems.
func (c *cluster) awaitProblems(n *localcluster.Node, want ...string) {
	c.t.Helper()
	c.until(func() error {
		var h struct {
			Problems []struct{ Severity, Reason string }
		}
		if err := c.Get(c.t.Context(), n, "/v1/cluster/health", &h); err != nil {
			return err
		}
		var got []string
		for _, p := range h.Problems {
			got = append(got, p.Severity+": "+p.Reason)
		}
		if !slices.EqualFunc(got, want, func(got, want string) bool { return regexp.MustCompile("^" + want + "$").MatchString(got) }) {
			return fmt.Errorf("the problems are %q", got)
		}
		return nil
	})
}

// A full disk of backups is reported, and the queue goes on.
func TestAFullDiskOfBackupsIsReported(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, 8)
	dir := filepath.Join(disk.Dir, "backups")
	c := startCluster(t, 1, "--backup-schedule", "@every 1s", "--backup-dir", dir, "--backup-keep", "2")
	node := c.Nodes()[0]
	last := c.awaitBackup(dir, "")
	disk.Fill(0)
	c.awaitProblems(node, "warning: n1 cannot make the scheduled backup of .*: no space left on device")
	require.Contains(t, c.scrape(node), "\ntarry_backup_failing 1\n")
	require.Contains(t, c.tarry("cluster", "events"), "a scheduled backup failed")
	status, _, body := postJSON(t, node, "/v1/jobs", `{"topic":"t","body":"x"}`)
	require.Equal(t, http.StatusCreated, status, body)
	complete, _ := backups(t, dir)
	require.NotEmpty(t, complete, "those that are there stay")
	disk.Free()
	c.awaitBackup(dir, last)
	c.awaitProblems(node)
}

// Any node lists the backups of all, also without a leader.
func TestScheduledBackupsAreListed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	c := startCluster(t, 3, "--backup-schedule", "@every 1s", "--backup-dir", dir, "--backup-keep", "5")
	c.awaitBackup(dir, "")
	type listing struct {
		Backups []struct {
			Name     string   `json:"name"`
			Index    uint64   `json:"index"`
			Bytes    int64    `json:"bytes"`
			Verified bool     `json:"verified"`
			Nodes    []string `json:"nodes"`
		} `json:"backups"`
		Nodes []struct {
			ID        string `json:"id"`
			Scheduled bool   `json:"scheduled"`
			Error     string `json:"error"`
		} `json:"nodes"`
	}
	list := func(from *localcluster.Node) (l listing) {
		resp, err := http.Get("http://" + from.HTTP + "/v1/cluster/backups") // it may take longer than Get allows
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&l))
		return l
	}
	for _, n := range c.Nodes() {
		c.until(func() error {
			l := list(n)
			for _, other := range l.Nodes {
				if other.Error != "" || !other.Scheduled {
					return fmt.Errorf("%s replies %+v", n.ID, l.Nodes)
				}
			}
			if len(l.Backups) == 0 {
				return fmt.Errorf("%s lists none", n.ID)
			}
			newest := l.Backups[0]
			require.Len(t, l.Nodes, 3)
			require.True(t, newest.Verified)
			require.NotZero(t, newest.Index)
			require.Positive(t, newest.Bytes)
			require.NotEmpty(t, newest.Nodes)
			return nil
		})
	}
	nodes := c.Nodes()
	c.kill(nodes[1], nodes[2])
	c.until(func() error {
		l := list(nodes[0])
		if l.Nodes[0].Error != "" || l.Nodes[1].Error != "it does not reply" || l.Nodes[2].Error != "it does not reply" {
			return fmt.Errorf("the nodes reply %+v", l.Nodes)
		}
		return nil
	})
}
