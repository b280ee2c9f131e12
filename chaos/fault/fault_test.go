package fault

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/bench/localcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEnv returns an Env whose nodes run a script instead of the server.
func newEnv(t *testing.T, nodes int) *Env {
	binary := filepath.Join(t.TempDir(), "binary")
	require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\nexec sleep 600\n"), 0o755))
	c, err := localcluster.New(localcluster.Options{Binary: binary, Dir: t.TempDir(), Nodes: nodes})
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return &Env{
		Cluster: c, Rand: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler), Claimed: NewClaimedNodes(),
		Hold: func() time.Duration { return 0 }, Healed: func() {}, Stall: func() {},
	}
}

func TestConcurrentFaultsHaveDistinctVictims(t *testing.T) {
	a := newEnv(t, 3)
	b := *a
	ctx := context.Background()
	first, err := a.Node(ctx)
	require.NoError(t, err)
	second, err := b.Node(ctx)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	_, err = b.All()
	require.ErrorIs(t, err, ErrNoVictim)
	a.Claimed.Release(a)
	nodes, err := b.All()
	require.NoError(t, err)
	require.Len(t, nodes, 3)
	_, err = a.Node(ctx)
	require.ErrorIs(t, err, ErrNoVictim)
}

func TestNeedsNameWhatIsMissing(t *testing.T) {
	require.Equal(t, "namespaces, strace", (Root | Namespaces | Strace).Lacks(Root|FaultyDisk).String())
	require.Zero(t, Root.Lacks(Root|Cgroup))
}

func TestNamesOfFaultsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range slices.Concat(Process(), Stall(), Lasting(), Limits(), Network(), Hostile(), Load(), Hooks()) {
		require.False(t, seen[f.Name], f.Name)
		seen[f.Name] = true
		require.NotNil(t, f.Run)
	}
}
