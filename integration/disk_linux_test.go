package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tarry/bench/localcluster"
)

// smallDisk is a file system of its own, so that it can be filled.
type smallDisk struct {
	t   *testing.T
	dir string
}

func newSmallDisk(t *testing.T, megabytes int) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("SKIPPED: no small file system can be mounted here (%v); run as root. Nothing shows what a full disk does", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return &smallDisk{t, dir}
}

func (d *smallDisk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves so many bytes free.
func (d *smallDisk) fill(leave int64) {
	d.t.Helper()
	d.empty()
	var s unix.Statfs_t
	require.NoError(d.t, unix.Statfs(d.dir, &s))
	f, err := os.Create(d.filler())
	require.NoError(d.t, err)
	require.NoError(d.t, unix.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-leave))
	require.NoError(d.t, f.Close())
}

func (d *smallDisk) empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); !os.IsNotExist(err) {
		require.NoError(d.t, err)
	}
}

// put adds through client until the reply is the one wanted.
func (c *cluster) putUntil(client *tubeClient, want string) {
	c.t.Helper()
	c.until(func() error {
		if got := client.ask("put 0 0 600 1", "x"); !strings.HasPrefix(got, want) {
			return fmt.Errorf("the put was answered %q, not %s", got, want)
		}
		return nil
	})
}

// TestANodeWhoseDiskFillsUpRefusesAddsAndRecovers on a real file system of 400
// MiB, whose low-water mark is a quarter of that.
func TestANodeWhoseDiskFillsUpRefusesAddsAndRecovers(t *testing.T) {
	disk := newSmallDisk(t, 400)
	o := localcluster.Options{Binary: binary, Dir: t.TempDir(), Nodes: 1, DataDir: func(string) string { return filepath.Join(disk.dir, "data") }}
	lc, err := localcluster.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lc.Stop()) })
	c := &cluster{lc, t}
	require.NoError(t, c.Start())
	node := c.Nodes()[0]
	c.waitReady(node)
	client := dialTubes(t, node)
	for i := range 20 {
		require.Equal(t, fmt.Sprint("INSERTED ", i+1), client.ask("put 0 0 600 1", "x"))
	}

	disk.fill(60 << 20)
	c.putUntil(client, "OUT_OF_MEMORY")
	status, head, body := postJSON(t, node, "/v1/jobs", `{"topic":"t","body":"x"}`)
	require.Equal(t, http.StatusInsufficientStorage, status)
	require.NotEmpty(t, head.Get("Retry-After"))
	require.Contains(t, body, `"code":"disk_low"`)
	require.Contains(t, body, `"outcome":"not_applied"`)
	require.Equal(t, "DELETED", client.ask("delete 1"))
	require.Equal(t, "RESERVED 2 1", client.ask("reserve"))
	require.Equal(t, "x", client.reply())
	require.Equal(t, "TOUCHED", client.ask("touch 2"))
	require.Equal(t, "RELEASED", client.ask("release 2 0 0"))
	c.tarry("ready") // fails when the node is not

	disk.empty()
	c.putUntil(client, "INSERTED")

	// Full to the last byte, and killed: the node comes up on its ballast.
	disk.fill(0)
	require.NoError(t, node.Kill())
	require.NoError(t, node.Start())
	c.waitReady(node)
	client = dialTubes(t, node)
	require.Equal(t, "DELETED", client.ask("delete 2"))
	require.Equal(t, "OUT_OF_MEMORY", client.ask("put 0 0 600 1", "x"))
	disk.empty()
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
