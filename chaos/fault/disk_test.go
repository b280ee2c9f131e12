//go:build linux

package fault

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/internal/sleep"
	"tarry/internal/testseed"
)

func serverBinary(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "tarry")
	out, err := exec.Command("go", "build", "-o", path, "tarry/cmd/tarry").CombinedOutput()
	require.NoError(t, err, "build the server: %s", out)
	return path
}

// onDisks starts three real nodes on faulty disks, under a load of adds.
func onDisks(t *testing.T) *Env {
	if err := disk.Available(); err != nil {
		t.Skipf("NOT TESTED on this machine: %v", err)
	}
	binary := serverBinary(t)
	disks, err := disk.NewDisks(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, disks.Close()) })
	c, err := localcluster.New(localcluster.Options{Binary: binary, Dir: t.TempDir(), Nodes: 3, Prepare: disks.Add, DataDir: disks.DataDir})
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes() {
				log, _ := os.ReadFile(n.LogPath())
				t.Logf("log of %s:\n%s", n.ID, tail(log))
			}
		}
		disks.Heal()
		require.NoError(t, c.Stop())
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx, c.Nodes()...))
	seed := testseed.New()
	t.Logf("seed %d", seed)
	return &Env{
		Cluster: c, Disks: disks, Rand: rand.New(rand.NewPCG(seed, 0)), Claimed: NewClaimedNodes(),
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
		Hold:    func() time.Duration { return 2 * time.Second },
		Violate: func(invariant, format string, args ...any) { t.Errorf(invariant+": "+format, args...) },
		Healed:  func() {},
		Stall:   func() {},
		Count:   func(figure string, n int) { t.Logf("%s: %d", figure, n) },
	}
}

func tail(log []byte) []byte { return log[max(0, len(log)-4000):] }

// adds is a load of jobs from a few clients. It keeps the ids of the acknowledged ones.
type adds struct {
	stop    context.CancelFunc
	clients sync.WaitGroup

	mu  sync.Mutex
	ids []string
}

func startAdds(t *testing.T, e *Env, prefix string) *adds {
	ctx, cancel := context.WithCancel(context.Background())
	a := &adds{stop: cancel}
	for client := range 6 {
		a.clients.Go(func() { a.send(ctx, e.Cluster.Nodes()[client%3], fmt.Sprintf("%s-%d", prefix, client)) })
	}
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.ids) > 200
	}, time.Minute, 10*time.Millisecond, "the load does not begin")
	return a
}

func (a *adds) send(ctx context.Context, n *localcluster.Node, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%d", prefix, i)
		code, err := add(ctx, n, `{"topic":"t","delay":86400,"body":"b","id":"`+id+`"}`)
		if err != nil || code != "" {
			sleep.For(ctx, 10*time.Millisecond)
			continue
		}
		a.mu.Lock()
		a.ids = append(a.ids, id)
		a.mu.Unlock()
	}
}

// check stops the load and verifies that every acknowledged job exists.
func (a *adds) check(t *testing.T, e *Env) {
	a.stop()
	a.clients.Wait()
	t.Logf("%d adds acknowledged", len(a.ids))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, err := e.Cluster.Leader(ctx)
	require.NoError(t, err)
	for _, id := range a.ids {
		require.NoError(t, localcluster.Call(ctx, http.MethodGet, leader.HTTP, "/v1/jobs/"+id, nil), "%s was acknowledged", id)
	}
	var v struct {
		Equal   bool
		Digests []struct{ ID, Error string }
	}
	require.NoError(t, localcluster.Until(ctx, func() error {
		if err := localcluster.Call(ctx, http.MethodPost, leader.HTTP, "/v1/cluster/verify", &v); err != nil {
			return err
		}
		for _, d := range v.Digests {
			if d.Error != "" {
				return fmt.Errorf("%s: %s", d.ID, d.Error)
			}
		}
		return nil
	}))
	require.True(t, v.Equal, "the nodes' states differ")
}

func named(t *testing.T, faults []Fault, name string) Fault {
	for _, f := range faults {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no fault %s", name)
	return Fault{}
}

// CHAOS_FAULTS names the faults to try; "all" means all. Without it the quickest of each
// kind are tried.
func chosen(faults []Fault, quick string) []string {
	list := os.Getenv("CHAOS_FAULTS")
	if list == "all" {
		var names []string
		for _, f := range faults {
			names = append(names, f.Name)
		}
		return names
	}
	if list == "" {
		list = quick
	}
	return strings.Split(list, ",")
}

func TestNodesBehaveOnFaultyDisks(t *testing.T) {
	underAdds(t, Disk(), "sync-error-leader,torn-write,power-loss-all")
}

func TestNodesWithDamagedFilesRefuseToStartOrServe(t *testing.T) {
	underAdds(t, Corrupt(), "corrupt-identity,corrupt-generation,corrupt-manifest")
}

func TestNodesBehaveOnDisksThatReadWrongly(t *testing.T) {
	underAdds(t, Reads(), "latent-sector,misdirected-read")
}

func TestAnyPartIsOneThatANodeHas(t *testing.T) {
	e := newEnv(t, 1)
	n := e.Cluster.Nodes()[0]
	k, err := e.anyPart(n, parts())
	require.NoError(t, err)
	require.Empty(t, k.path)
	votes := filepath.Join(n.DataDir(), "shard-0/raft/votes")
	require.NoError(t, os.MkdirAll(filepath.Dir(votes), 0o755))
	require.NoError(t, os.WriteFile(votes, []byte("x"), 0o644))
	k, err = e.anyPart(n, parts())
	require.NoError(t, err)
	require.Equal(t, votes, k.path)
	require.Equal(t, "votes", k.name)
}

// underAdds runs the chosen faults, one after the other, and requires that what was
// acknowledged meanwhile is there.
func underAdds(t *testing.T, faults []Fault, quick string) {
	e := onDisks(t)
	for _, name := range chosen(faults, quick) {
		t.Run(name, func(t *testing.T) {
			load := startAdds(t, e, name)
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
			defer cancel()
			require.NoError(t, named(t, faults, name).Run(ctx, e))
			e.Claimed.Release(e)
			load.check(t, e)
		})
	}
}

func TestANewClusterSurvivesAPowerLoss(t *testing.T) {
	e := onDisks(t)
	load := startAdds(t, e, "young")
	for _, n := range e.Cluster.Nodes() {
		require.NoError(t, n.Kill())
	}
	for _, n := range e.Cluster.Nodes() {
		require.NoError(t, e.Disks.Of(n.ID).PowerLoss(1, 0))
		_, err := os.Stat(filepath.Join(e.Disks.Of(n.ID).Files(), "node.json"))
		require.NoError(t, err, "%s was there when it answered", n.ID)
		_, err = os.Stat(filepath.Join(e.Disks.Of(n.ID).Files(), "shard-0", "raft", "votes"))
		require.NoError(t, err, "%s was there when it answered", n.ID)
	}
	require.NoError(t, e.Return(context.Background(), e.Cluster.Nodes()...))
	load.check(t, e)
}
