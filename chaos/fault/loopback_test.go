//go:build linux

package fault

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/internal/testseed"
)

// onLoopback starts three real nodes on 127.0.0.1. CHAOS_BINARY names another server
// binary.
func onLoopback(t *testing.T) *Env {
	if testing.Short() {
		t.Skip("runs a cluster of processes; without -short it does")
	}
	binary := os.Getenv("CHAOS_BINARY")
	if binary == "" {
		binary = serverBinary(t)
	}
	c, err := localcluster.New(localcluster.Options{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx, c.Nodes()...))
	seed := testseed.New()
	t.Logf("seed %d", seed)
	return &Env{
		Cluster: c, Rand: rand.New(rand.NewPCG(seed, 0)), Claimed: NewClaimedNodes(), Dir: t.TempDir(),
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
		Hold:    func() time.Duration { return 2 * time.Second },
		Violate: func(invariant, format string, args ...any) { t.Errorf(invariant+": "+format, args...) },
		Healed:  func() {},
		Stall:   func() {},
		Count:   func(figure string, n int) { t.Logf("%s: %d", figure, n) },
	}
}
