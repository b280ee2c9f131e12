package localcluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script makes an executable that stands in for the binary.
func script(t *testing.T, body string) string {
	path := filepath.Join(t.TempDir(), "binary")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	return path
}

func newCluster(t *testing.T, binary string, nodes int) *Cluster {
	c, err := New(Options{Binary: binary, Dir: t.TempDir(), Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return c
}

func TestNodesHaveDistinctPortsAndOneCommandLine(t *testing.T) {
	c := newCluster(t, "unused", 3)
	seen := map[string]bool{}
	for _, n := range c.Nodes() {
		for _, addr := range []string{n.HTTP, n.Beanstalk, n.Cluster, n.Gossip} {
			require.False(t, seen[addr], addr)
			seen[addr] = true
		}
		require.Contains(t, n.Args(), "--bootstrap-expect")
	}
	late, err := c.Add("n4")
	require.NoError(t, err)
	require.Contains(t, late.Args(), "--join")
	require.NotContains(t, late.Args(), "--bootstrap-expect", "a late node only joins")
}

func TestKilledNodeStartsAgainWithTheSameCommandLine(t *testing.T) {
	c := newCluster(t, script(t, `echo "$@"; exec sleep 600`), 1)
	n := c.Nodes()[0]
	require.Error(t, n.Kill(), "never started")
	for life := range 2 {
		require.NoError(t, n.Start())
		require.ErrorContains(t, n.Start(), "running already")
		require.ErrorContains(t, n.Wipe(), "is running")
		require.NoError(t, n.Kill())
		require.False(t, n.Running(), "life %d", life)
	}
	require.NoError(t, n.Wipe())
}

func TestNodesArePlacedWhereOptionsSay(t *testing.T) {
	data := t.TempDir()
	c, err := New(Options{
		Binary: script(t, `echo "$PLACE $TARRY_X$TARRY_ALL"; exit 7`), Dir: t.TempDir(), Nodes: 1,
		Env:     []string{"TARRY_ALL=!"},
		Host:    func(id string) string { return id + ".example" },
		DataDir: func(string) string { return data },
		Prefix:  func(id string) []string { return []string{"env", "PLACE=" + id} },
	})
	require.NoError(t, err)
	n := c.Nodes()[0]
	require.Contains(t, n.Args(), "n1.example")
	require.Contains(t, n.HTTP, "n1.example:")
	require.Equal(t, data, n.DataDir())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, value := range []string{"set", ""} {
		n.Setenv("TARRY_X", value)
		require.NoError(t, n.Start())
		code, err := n.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, code)
		out, err := n.Output()
		require.NoError(t, err)
		require.Equal(t, "n1 "+value+"!\n", out, "only what this life printed")
	}
	require.NoError(t, os.WriteFile(filepath.Join(data, "state"), nil, 0o644))
	require.NoError(t, n.Wipe())
	require.NoFileExists(t, filepath.Join(data, "state"))
	require.DirExists(t, data, "the directory may be a mount")
	require.NoError(t, c.Forget(n))
	require.Empty(t, c.Nodes())
	again, err := c.Add("n1")
	require.NoError(t, err)
	require.Same(t, n, again, "a place is made once")
	require.Len(t, c.Nodes(), 1)
}

func TestNamedNodesListenForOthersEverywhere(t *testing.T) {
	var prepared []string
	c, err := New(Options{
		Binary: "unused", Dir: t.TempDir(), Nodes: 2,
		Prepare: func(id string) error { prepared = append(prepared, id); return nil },
		Host:    func(string) string { return "192.0.2.1" },
		Name:    func(id string) string { return id + ".example" },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"n1", "n2"}, prepared)
	n := c.Nodes()[0]
	require.Contains(t, n.HTTP, "192.0.2.1:")
	require.Contains(t, n.Gossip, "n1.example:")
	_, port, err := net.SplitHostPort(n.Gossip)
	require.NoError(t, err)
	require.Contains(t, n.Args(), "0.0.0.0:"+port)
	require.Contains(t, n.Args(), n.HTTP)
	require.Contains(t, n.Args(), "n1.example")
	require.Contains(t, n.Args(), n.Gossip+","+c.Nodes()[1].Gossip, "seeds are names")

	_, err = New(Options{Nodes: 1, Prepare: func(string) error { return errors.New("no room") }})
	require.ErrorContains(t, err, "no room")
}

func TestNodesOnMachinesOfTheirOwnMayHaveTheSamePorts(t *testing.T) {
	c, err := New(Options{Binary: "unused", Dir: t.TempDir(), Nodes: 2, SamePorts: true, Host: func(id string) string { return id + ".example" }})
	require.NoError(t, err)
	late, err := c.Add("n3")
	require.NoError(t, err)
	port := func(addr string) string {
		_, p, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		return p
	}
	for _, n := range append(c.Nodes(), late) {
		require.Equal(t, port(c.Nodes()[0].Cluster), port(n.Cluster))
		require.NotEqual(t, port(n.Cluster), port(n.Gossip))
	}
}

func TestTerminateReportsABadExit(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"exits 0": {`trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, ""},
		"exits 3": {`trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done`, "exited with 3"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, script(t, c.body), 1)
			n := cluster.Nodes()[0]
			require.NoError(t, n.Start())
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.NoError(t, Until(ctx, func() error { // the trap is set once it printed
				if data, _ := os.ReadFile(n.LogPath()); len(data) == 0 {
					return errors.New("no output yet")
				}
				return nil
			}))
			err := n.Terminate(ctx)
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}

func TestWaitReadyNamesTheLogOfADeadNode(t *testing.T) {
	c := newCluster(t, script(t, "exit 1"), 1)
	n := c.Nodes()[0]
	require.NoError(t, n.Start())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, c.WaitReady(ctx, n), n.LogPath())
}

func TestCPUOfAProcessWhoseNameHasSpaces(t *testing.T) {
	cpu, err := parseCPU([]byte("42 (a b) c) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100"))
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, cpu)
	_, err = parseCPU([]byte("42 (a) S 1"))
	require.ErrorContains(t, err, "too few fields")
}
