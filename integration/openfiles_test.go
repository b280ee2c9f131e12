package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// limitedNode is a node of its own under a limit on open files. It is not started.
func limitedNode(t *testing.T, files int, args ...string) (*cluster, *localcluster.Node) {
	limits := fmt.Sprintf(`ulimit -n %d && exec "$@"`, files)
	c, err := localcluster.New(localcluster.Options{
		Binary: binary, Dir: t.TempDir(), Nodes: 1, Args: args,
		Prefix: func(string) []string { return []string{"sh", "-c", limits, "sh"} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return &cluster{c, t}, c.Nodes()[0]
}

// TestIdleConnectionsLeaveTheStoresTheirFiles holds more connections to every
// port than the process may have files, while the stores need new ones.
func TestIdleConnectionsLeaveTheStoresTheirFiles(t *testing.T) {
	t.Parallel()
	c, node := limitedNode(t, 512)
	require.NoError(t, node.Start())
	c.waitReady(node)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}} // it has its connection already
	add := func(i int) {
		t.Helper()
		body := fmt.Sprintf(`{"topic":"mail","id":"m%d","body":%q}`, i, strings.Repeat("x", 200<<10))
		answer, err := client.Post("http://"+node.HTTP+"/v1/jobs", "application/json", strings.NewReader(body))
		require.NoError(t, err, tail(node.LogPath()))
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body) // so that the connection is used again
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, answer.StatusCode)
	}
	add(0)
	for _, addr := range []string{node.HTTP, node.Beanstalk, node.Cluster, node.Gossip} {
		for range 600 {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			t.Cleanup(func() { conn.Close() })
		}
	}
	for i := range 500 { // 100 MB: some memtables, and segments of the log
		add(i + 1)
	}
	require.True(t, node.Running())
	log, err := node.Output()
	require.NoError(t, err)
	require.Contains(t, log, "lowers --max-connections")
	require.NotContains(t, log, "too many open files")
}

func TestANodeWithTooFewOpenFilesSaysHowManyItNeeds(t *testing.T) {
	t.Parallel()
	_, node := limitedNode(t, 200)
	require.NoError(t, node.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, err := node.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, code)
	log, err := node.Output()
	require.NoError(t, err)
	require.Regexp(t, `may have 200 files open and needs \d+ at least`, log)
	require.Contains(t, log, "ulimit -n")
}
