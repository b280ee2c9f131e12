package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"tarry/cluster/datadir"
	"tarry/cluster/logstore"
)

// lastingNode is the configuration of a single node that ran for a while.
func lastingNode(t *testing.T) Config {
	c := newTestCluster(t, 1)
	c.leader()
	for i := range 50 {
		do(t, c.nodes[0], add(fmt.Sprint("job-", i), "t", 0))
	}
	c.stop(0)
	cfg := c.cfgs[0]
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// flip changes one bit in the middle of a file's content.
func flip(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	content := len(bytes.TrimRight(data, "\x00"))
	data[content/2] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o640))
}

func one(t *testing.T, pattern string) string {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	return files[len(files)-1]
}

// A node does not start on files that are damaged or do not belong together, and says how
// to recover.
func TestDamagedDirectoryIsRefusedWithTheRecovery(t *testing.T) {
	t.Parallel()
	const shard = "shard-0"
	cfg := lastingNode(t)
	for name, tt := range map[string]struct {
		damage func(t *testing.T, dir string)
		says   string
	}{
		"identity lost": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "node.json")))
		}, "node.json is missing"},
		"identity damaged": {func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte("{"), 0o640))
		}, "node.json is damaged"},
		"identity of another copy": {func(t *testing.T, dir string) {
			file := filepath.Join(dir, "node.json")
			require.NoError(t, os.Remove(file))
			elsewhere := t.TempDir()
			other, err := datadir.Open(elsewhere, "n1", "")
			require.NoError(t, err)
			require.NoError(t, other.Close())
			require.NoError(t, os.Rename(filepath.Join(elsewhere, "node.json"), file))
		}, "belongs to the incarnation"},
		"votes lost": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, shard, "raft", "votes")))
		}, "votes have come to term 0"},
		"votes cut off": {func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, shard, "raft", "votes"), 10))
		}, "votes: the file is damaged"},
		"list of segments lost": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, shard, "raft", "wal", "segments")))
		}, "list of segments"},
		"state lost": {func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, shard, "fsm")))
		}, "the state is missing"},
		"state without its pointer": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, shard, "fsm", "CURRENT")))
		}, "CURRENT is missing"},
		"manifest lost": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(one(t, filepath.Join(dir, shard, "fsm", "gen-*", "MANIFEST-*"))))
		}, "MANIFEST"},
		"manifest damaged": {func(t *testing.T, dir string) {
			flip(t, one(t, filepath.Join(dir, shard, "fsm", "gen-*", "MANIFEST-*")))
		}, "state machine"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(cfg.DataDir)))
			cfg.DataDir = dir
			tt.damage(t, dir)
			n, err := Start(cfg)
			if err == nil {
				require.NoError(t, n.Stop())
			}
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, "move ")
			require.ErrorContains(t, err, "rejoin")
		})
	}
}

// A cause outside of the data is not fixed by a new directory, which would cost a node
// without others all its jobs.
func TestASoundDirectoryIsNotToBeMoved(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) { cfg.LogStore = logstore.RaftBoltDB })
	c.leader()
	c.stop(0)
	cfg := c.cfgs[0]
	cfg.Logger = slog.New(slog.DiscardHandler)
	for name, tt := range map[string]struct {
		cause func(t *testing.T, dir string)
		says  string
	}{
		"log open elsewhere": {func(t *testing.T, dir string) {
			db, err := bbolt.Open(filepath.Join(dir, "shard-0", "raft", "raft.db"), 0o600, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
		}, "another process has the file open: stop it"},
		"log store of another release": {func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			other, err := datadir.Open(elsewhere, cfg.NodeID, "raft-new")
			require.NoError(t, err)
			require.NoError(t, other.Close())
			file := "node.json"
			require.NoError(t, os.Rename(filepath.Join(elsewhere, file), filepath.Join(dir, file)))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "shard-0")))
		}, `the log store "raft-new", which this release does not have`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.LogStore = ""
			cfg.DataDir = t.TempDir()
			require.NoError(t, os.CopyFS(cfg.DataDir, os.DirFS(c.cfgs[0].DataDir)))
			tt.cause(t, cfg.DataDir)
			n, err := Start(cfg)
			if err == nil {
				require.NoError(t, n.Stop())
			}
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "move ")
			require.NotContains(t, err.Error(), "rejoin")
		})
	}
}

// An old copy of a data directory is consistent. Only the other nodes can detect it.
func TestOldCopyOfADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	do(t, c.nodes[l], add("before", "t", 0))
	victim := (l + 1) % 3
	c.stop(victim)
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(copied, os.DirFS(c.cfgs[victim].DataDir)))

	c.start(victim)
	for i := range 20 {
		do(t, c.nodes[c.leader()], add(fmt.Sprint("after-", i), "t", 0))
	}
	member := c.nodes[victim].data.ServerID()
	old := lastIndexOf(t, copied)
	c.eventually(func() bool { return c.nodes[victim].shard.raft.LastIndex() >= old+20 }, "the node has it all")
	// The leader learns of it with its next status call.
	c.eventually(func() bool {
		n := c.nodes[c.leader()]
		return n.acks.Of(member).Index >= old+20
	}, "the leader knows what the node has")

	c.stop(victim)
	c.cfgs[victim].DataDir = copied
	_, err := Start(c.cfgs[victim])
	require.ErrorContains(t, err, "older copy")
	require.ErrorContains(t, err, "move "+copied+" away")

	// The recovery.
	c.cfgs[victim].DataDir = t.TempDir()
	c.start(victim)
	c.eventually(func() bool {
		v := c.nodes[victim].shard.machine.View()
		defer v.Close()
		_, found, err := v.Job("after-19")
		return err == nil && found
	}, "the node has got everything from the others")
}

// lastIndexOf returns the last index of the log in a data directory.
func lastIndexOf(t *testing.T, dataDir string) uint64 {
	s, err := logstore.Open(filepath.Join(dataDir, "shard-0", "raft"), logstore.Options{Fatal: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	last, err := s.Log.LastIndex()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return last
}

// A leader records an ack when it counts it, not with its next status call: a copy that is
// put in place before that call would catch up undetected.
func TestOldCopyIsRefusedBeforeTheNextStatusCall(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 3, func(_ int, cfg *Config) { cfg.membership.Health = time.Hour })
	victim := (c.leader() + 1) % 3
	do(t, c.nodes[c.leader()], add("before", "t", 0))
	c.stop(victim)
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(copied, os.DirFS(c.cfgs[victim].DataDir)))

	c.start(victim)
	leader := c.nodes[c.leader()]
	for i := range 20 {
		do(t, leader, add(fmt.Sprint("after-", i), "t", 0))
	}
	old := lastIndexOf(t, copied)
	c.eventually(func() bool { return c.nodes[victim].shard.raft.LastIndex() >= old+20 }, "the node has it all")
	c.stop(victim)
	c.cfgs[victim].DataDir = copied
	_, err := Start(c.cfgs[victim])
	require.ErrorContains(t, err, "older copy")
}
