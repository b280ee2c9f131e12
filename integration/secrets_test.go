package integration

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/client"
	"tarry/cluster/backup"
	"tarry/internal/secretkeys"
)

// hookSecret signs the posts of the test, marker is beside it in the settings.
const hookSecret, marker = "the-secret-of-the-hooks-2718281828", "a marker that is no secret 3141592653"

// hook receives posts, and takes those with a good signature.
type hook struct {
	mu        sync.Mutex
	good, bad map[string]int // by the ids of jobs
}

func (h *hook) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	id := q.Header.Get("Tarry-Job-Id")
	mac := hmac.New(sha256.New, []byte(hookSecret))
	fmt.Fprintf(mac, "%s\n%s\n%s", q.Header.Get("Tarry-Timestamp"), id, body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.Header.Get("Tarry-Signature") != "v1="+hex.EncodeToString(mac.Sum(nil)) {
		h.bad[id]++
		w.WriteHeader(http.StatusForbidden)
		return
	}
	h.good[id]++
}

// took returns nil once a job was posted.
func (h *hook) took(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.good[id] == 0 {
		return fmt.Errorf("job %s was not posted with a good signature; %v were, %v not", id, h.good, h.bad)
	}
	return nil
}

// shows returns the files below a directory that have a text.
func shows(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil // a node that runs removes files
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(data, []byte(text)) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// unpacked returns what a backup has, which is compressed.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := backup.NewReader(f)
	require.NoError(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(content)
}

// secretKeys are the keys of a cluster, one file for all nodes.
type secretKeys struct {
	*cluster
	path, root string
}

// write makes the file have keys.
func (c *secretKeys) write(keys ...secretkeys.Key) (ids []string) {
	c.t.Helper()
	text := ""
	for _, k := range keys {
		text += k.Text() + "\n"
		ids = append(ids, k.ID())
	}
	require.NoError(c.t, os.WriteFile(c.path, []byte(text), 0o600))
	return ids
}

// use makes all nodes have keys, and waits until they do.
func (c *secretKeys) use(keys ...secretkeys.Key) {
	c.t.Helper()
	want := c.write(keys...)
	for _, n := range c.Nodes() {
		require.NoError(c.t, syscall.Kill(n.PID(), syscall.SIGHUP))
		c.until(func() error {
			var held []string
			for _, k := range c.list(n).Keys {
				if k.Held {
					held = append(held, k.ID)
				}
			}
			if !slices.Equal(held, want) {
				return fmt.Errorf("%s has %q", n.ID, held)
			}
			return nil
		})
	}
}

func (c *secretKeys) list(n *localcluster.Node) (list client.SecretKeys) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal([]byte(c.tarry("--token-file", c.root, "secrets", "list", "--json", "--addr", n.HTTP)), &list))
	return list
}

// The secret of a push target is on no disk and in no backup, and signs the posts all the same,
// also while keys are replaced. Nodes without the key post nothing.
func TestNoDiskAndNoBackupShowsTheSecretOfAPush(t *testing.T) {
	t.Parallel()
	h := &hook{good: map[string]int{}, bad: map[string]int{}}
	target := httptest.NewServer(h)
	defer target.Close()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	c := &secretKeys{newCluster(t, 3, "--push-allow", target.Listener.Addr().String(), "--secrets-key-file", file("keys")), file("keys"), file("root")}
	first, second, other := secretkeys.NewKey(), secretkeys.NewKey(), secretkeys.NewKey()
	c.write(first)
	c.start(c.Nodes()...)
	one := c.Nodes()[0]
	c.tarry("auth", "bootstrap", "--addr", one.HTTP, "--data-dir", one.DataDir(), "-o", c.root)
	all := connectTo(t, patience, c.addrs()...)
	_, err := all.Topics().SetSettings(t.Context(), "hooks", client.Settings{
		Push:        &client.Push{URL: target.URL, Secret: hookSecret},
		Description: marker, Backoff: &client.Backoff{Delays: []client.Duration{{Duration: 100_000_000}}},
	}, client.AnyRevision)
	require.NoError(t, err)
	post := func(id string) {
		t.Helper()
		_, err := all.Add(t.Context(), client.NewJob{ID: id, Topic: "hooks", Body: client.Text("x"), MaxAttempts: new(uint32(0))})
		require.NoError(t, err)
	}
	post("sealed")
	c.until(func() error { return h.took("sealed") })
	nowhere := func() {
		t.Helper()
		for _, n := range c.Nodes() {
			require.NotEmpty(t, shows(t, n.DataDir(), marker), "the test reads what settings are in")
			require.Empty(t, shows(t, n.DataDir(), hookSecret))
			require.Empty(t, shows(t, filepath.Dir(n.LogPath()), hookSecret))
		}
	}
	nowhere()

	c.use(first, second)
	c.use(second, first)
	c.until(func() error { // it can be repeated, as after an election
		out, err := exec.CommandContext(t.Context(), binary, "--token-file", c.root, "secrets", "rewrap", "--addr", one.HTTP).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	c.use(second)
	require.EqualValues(t, 1, c.list(one).Keys[0].Topics)
	post("rewrapped")
	c.until(func() error { return h.took("rewrapped") })

	// A node without the key fails the attempt, and the cluster says so.
	c.use(other)
	post("missing")
	c.until(func() error {
		var health struct{ Reasons []string }
		if err := c.Get(t.Context(), one, "/v1/cluster/health", &health); err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(health.Reasons), "cannot open their push secrets") {
			return fmt.Errorf("%q", health.Reasons)
		}
		var seen json.RawMessage
		if err := c.Get(t.Context(), one, "/v1/jobs/missing", &seen); err != nil {
			return err
		}
		if !strings.Contains(string(seen), "--secrets-key-file") {
			return fmt.Errorf("%s", seen)
		}
		return nil
	})
	require.Error(t, h.took("missing"))
	c.use(other, second)
	c.until(func() error { return h.took("missing") })
	require.Empty(t, h.bad, "what cannot be signed is not posted")

	c.tarry("backup", "--out", file("a.backup"), "--addr", one.HTTP)
	content := unpacked(t, file("a.backup"))
	require.Contains(t, content, marker, "the test reads what the backup has")
	require.NotContains(t, content, hookSecret)
	// A node that starts writes what it had in memory into its store.
	c.kill(c.Nodes()...)
	c.start(c.Nodes()...)
	nowhere()
	post("again")
	c.until(func() error { return h.took("again") })
}
