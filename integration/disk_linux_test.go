package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk/conformance"
	"tarry/bench/localcluster"
	"tarry/internal/smalldisk"
)

// putUntil adds through client until the reply is the one wanted.
func (c *cluster) putUntil(client *tubeClient, want string) {
	c.t.Helper()
	c.until(func() error {
		if got := client.ask("put 0 0 600 1", "x"); !strings.HasPrefix(got, want) {
			return fmt.Errorf("the put was answered %q, not %s", got, want)
		}
		return nil
	})
}

// TestANodeWhoseDiskFillsUpRefusesAddsAndRecovers on a real file system of 800
// MiB, whose low-water mark is a quarter of that.
func TestANodeWhoseDiskFillsUpRefusesAddsAndRecovers(t *testing.T) {
	for _, store := range []string{"raft-wal", "raft-boltdb"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			fillDisk(t, store)
		})
	}
}

// leave is what a low disk has left: less than the mark, and room for more than the logs that the
// store of the state allocates before the next measurement, 36 MiB each and up to three of them at
// once while its memtables grow. Where one does not fit, tmpfs is full for a moment before it
// gives up, and whatever is written then meets a full disk.
const leave = 180 << 20

func fillDisk(t *testing.T, store string) {
	disk := smalldisk.New(t, 800)
	o := localcluster.Options{Binary: binary, Dir: t.TempDir(), Nodes: 1, Args: []string{"--log-store", store}, DataDir: func(string) string { return filepath.Join(disk.Dir, "data") }}
	lc, err := localcluster.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, lc.Stop())
		if t.Failed() {
			t.Logf("end of the node's log:\n%s", tail(lc.Nodes()[0].LogPath()))
		}
	})
	c := &cluster{lc, t}
	require.NoError(t, c.Start())
	node := c.Nodes()[0]
	c.waitReady(node)
	c.until(func() error { // or the disk is full for a moment while both take their room
		info, err := os.Stat(filepath.Join(node.DataDir(), "ballast"))
		if err == nil && info.Size() == 0 {
			err = errors.New("the ballast is not made yet")
		}
		return err
	})
	conformance.RunFullDisk(t, node.Beanstalk, func() { disk.Fill(leave) }, disk.Free)

	client := dialTubes(t, node)
	c.putUntil(client, "INSERTED")
	disk.Fill(leave)
	c.putUntil(client, "OUT_OF_MEMORY")
	status, head, body := postJSON(t, node, "/v1/jobs", `{"topic":"t","body":"x"}`)
	require.Equal(t, http.StatusInsufficientStorage, status)
	require.NotEmpty(t, head.Get("Retry-After"))
	require.Contains(t, body, `"code":"disk_low"`)
	require.Contains(t, body, `"outcome":"not_applied"`)
	c.tarry("ready") // fails when the node is not

	disk.Free()
	c.putUntil(client, "INSERTED")

	// Full to the last byte, and killed: the node comes up on its ballast.
	disk.Fill(0)
	require.NoError(t, node.Kill())
	require.NoError(t, node.Start())
	c.waitReady(node)
	client = dialTubes(t, node)
	var id, size int
	_, err = fmt.Sscanf(client.ask("reserve"), "RESERVED %d %d", &id, &size)
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, client.in, int64(size)+2)
	require.NoError(t, err)
	require.Equal(t, "DELETED", client.ask(fmt.Sprint("delete ", id)))
	require.Equal(t, "OUT_OF_MEMORY", client.ask("put 0 0 600 1", "x"))
	disk.Free()
	c.putUntil(client, "INSERTED")
}

func postJSON(t *testing.T, n *localcluster.Node, path, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+n.HTTP+path, strings.NewReader(body))
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, a.Header, string(text)
}
