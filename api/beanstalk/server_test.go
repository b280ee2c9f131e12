package beanstalk_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/api/beanstalk"
	"tarry/api/beanstalk/conformance"
	"tarry/auth"
	"tarry/cluster"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Ends by itself when its probe has timed out; Shutdown does not wait.
		goleak.IgnoreTopFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
	)
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// startNodes runs a cluster in this process and returns the beanstalkd address of each node,
// and the number of the leader. hold is that of Options.
func startNodes(t testing.TB, n int, hold time.Duration) (addrs []string, leader int) {
	t.Helper()
	ports := freePorts(t, 2*n)
	nodes := make([]*cluster.Node, n)
	for i := range n {
		cfg := cluster.Config{
			NodeID: fmt.Sprint("n", i+1), DataDir: t.TempDir(), Version: "test",
			ClusterAddr: ports[2*i], GossipAddr: ports[2*i+1], HTTPAdvertise: "127.0.0.1:1",
			BootstrapExpect: n, Logger: testLogger(t),
			Fatal: func(err error) { t.Errorf("fatal: %v", err) },
		}
		for j := 0; n > 1 && j < n; j++ {
			cfg.Join = append(cfg.Join, ports[2*j+1])
		}
		node, err := cluster.Start(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { node.Stop() })
		nodes[i] = node
	}
	for _, node := range nodes {
		require.Eventually(t, func() bool { return node.Readiness().Ready }, patience, 10*time.Millisecond)
		addrs = append(addrs, serve(t, beanstalk.Options{Queue: node.Queue(), Logger: testLogger(t), Hold: hold}))
	}
	fmt.Sscanf(nodes[0].Readiness().Leader, "n%d", &leader)
	return addrs, leader - 1
}

// serve runs a server until the test ends.
func serve(t testing.TB, o beanstalk.Options) string {
	return serveOn(t, "tcp", "127.0.0.1:0", o)
}

func serveOn(t testing.TB, network, addr string, o beanstalk.Options) string {
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	return serveAs(t, l, o, nil)
}

// serveBound is serve for a listener with a token.
func serveBound(t testing.TB, o beanstalk.Options, token func() (auth.Secret, error)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Registry = nil // another server has published its metrics there
	return serveAs(t, l, o, token)
}

func serveAs(t testing.TB, l net.Listener, o beanstalk.Options, token func() (auth.Secret, error)) string {
	s := beanstalk.New(o)
	done := make(chan error, 1)
	go func() { done <- s.ServeAs(l, token) }()
	t.Cleanup(func() {
		require.NoError(t, s.Shutdown(context.Background()))
		require.ErrorIs(t, <-done, beanstalk.ErrClosed)
	})
	return l.Addr().String()
}

func TestOneNodeIsABeanstalkd(t *testing.T) {
	t.Parallel()
	addrs, _ := startNodes(t, 1, 0)
	conformance.Run(t, conformance.Target{Addr: addrs[0], Tarry: true})
}

func TestAFollowerIsABeanstalkd(t *testing.T) {
	t.Parallel()
	addrs, leader := startNodes(t, 3, 0)
	conformance.Run(t, conformance.Target{Addr: addrs[(leader+1)%3], Tarry: true})
}

// The docs name each intended difference from beanstalkd.
func TestDifferencesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/beanstalkd.md")
	require.NoError(t, err)
	for _, c := range conformance.Cases() {
		if c.Tarry != "" {
			require.Contains(t, string(doc), "`"+c.Name+"`", "docs/beanstalkd.md does not name a difference")
		}
	}
}
