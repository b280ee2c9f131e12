package integration

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
	"tarry/internal/s3"
)

// objectStore is a real S3-compatible store with one bucket, "backups". Its objects are files.
type objectStore struct {
	t      *testing.T
	binary string
	root   string // the buckets
	args   []string
	cmd    *exec.Cmd
	access s3.Access
}

// objectStoreBinary builds the store from its module, once.
var objectStoreBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "versitygw")
	build := exec.Command("go", "build", "-o", path, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = "s3server"
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the object store: %w: %s", err, out)
	}
	return path, nil
})

// newObjectStore starts a store with TLS.
func newObjectStore(t *testing.T) *objectStore {
	dir := t.TempDir()
	s := &objectStore{t: t, root: filepath.Join(dir, "buckets")}
	var err error
	s.binary, err = objectStoreBinary()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(s.root, "backups"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "metadata"), 0o700))
	a := newAuthority(t)
	own := a.server(false).Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	port, err := freeport.Take()
	require.NoError(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s.args = []string{
		"--port", addr, "--cert", a.file("store.pem", "CERTIFICATE", own.Certificate[0]), "--key", a.file("store.key", "PRIVATE KEY", key),
		"posix", "--sidecar", filepath.Join(dir, "metadata"), s.root,
	}
	keys := filepath.Join(dir, "credentials")
	require.NoError(t, os.WriteFile(keys, []byte("[default]\naws_access_key_id = tarry\naws_secret_access_key = a-secret-of-tests\n"), 0o600))
	s.access = s3.Access{Endpoint: "https://" + addr, CredentialsFile: keys, CA: a.files["ca"].(string)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *objectStore) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.binary, s.args...)
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=tarry", "ROOT_SECRET_KEY=a-secret-of-tests")
	require.NoError(s.t, s.cmd.Start())
	waitUntil(s.t, func() error {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.access.Endpoint, "https://"))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func (s *objectStore) kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	_ = s.cmd.Wait()         // killed
}

// flags are those with which a command or a node reaches the store.
func (s *objectStore) flags() []string {
	return []string{"--s3-endpoint", s.access.Endpoint, "--s3-credentials-file", s.access.CredentialsFile, "--s3-ca", s.access.CA}
}

// The cluster writes its backups to an object store, also after a change of leader and after
// the store was away, and the newest one can be restored from there.
func TestScheduledBackupsInAnObjectStore(t *testing.T) {
	t.Parallel()
	store := newObjectStore(t)
	const place = "s3://backups/tarry/c1"
	dir := filepath.Join(store.root, "backups", "tarry", "c1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	const foreign = "tarry-20200101T000000Z-000000000001.backup"
	require.NoError(t, os.WriteFile(filepath.Join(dir, foreign), []byte("not of this cluster"), 0o600))

	c := startCluster(t, 3, append(store.flags(), "--backup-schedule", "@every 1s", "--backup-dir", place, "--backup-keep", "3", "--backup-full-every", "4")...)
	last := c.awaitBackup(dir, filepath.Join(dir, foreign))
	c.killLeader()
	last = c.awaitBackup(dir, last)

	store.kill()
	c.until(func() error {
		if out := c.tarry("cluster", "events"); !strings.Contains(out, "a scheduled backup failed") {
			return errors.New(out)
		}
		return nil
	})
	c.tarry("add", "--topic", "t", "--id", "the-last-one", "--delay", "1h", "x")
	store.start()
	last = c.awaitBackup(dir, last)
	chained := c.awaitIncremental(dir, last) // it began after the add

	for _, n := range c.Nodes() {
		require.NoError(t, n.Terminate(t.Context()))
	}
	complete, partial := backups(t, dir)
	require.Empty(t, partial)
	require.FileExists(t, filepath.Join(dir, foreign), "what is not of this cluster stays")
	require.LessOrEqual(t, len(complete), 1+3+4, "one is removed after the next is complete and nothing builds on it")

	newest := place + "/" + filepath.Base(chained)
	require.Regexp(t, "(?m)^base: +"+place+"/tarry-.*, whole, ", c.tarry(append(store.flags(), "backup", "inspect", newest)...))
	require.Contains(t, c.tarry(append(store.flags(), "backup", "verify", newest)...), "every record was read")
	c.wipe(c.Nodes()...)
	first := c.Nodes()[0]
	t.Log(c.tarry(append(store.flags(), "restore", newest, "--data-dir", first.DataDir(), "--node-id", first.ID)...))
	c.start(first)
	var j struct {
		State string `json:"state"`
	}
	require.NoError(t, c.Get(t.Context(), first, "/v1/jobs/the-last-one", &j))
	require.Equal(t, "delayed", j.State)
}

// An object is there as a whole or not at all, and an upload that ended early leaves nothing
// that costs.
func TestObjectsOfAnObjectStoreAreWhole(t *testing.T) {
	t.Parallel()
	store := newObjectStore(t)
	ctx := t.Context()
	b, err := store.access.Open("s3://backups/a/b")
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, "s3://backups/a/b", b.String())
	names := func() (names []string) {
		list, err := b.List(ctx, 10)
		require.NoError(t, err)
		for _, o := range list {
			names = append(names, o.Name)
		}
		return names
	}

	content := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16) // of several parts
	size, err := b.Put(ctx, "whole", bytes.NewReader(content), 0)
	require.NoError(t, err)
	require.EqualValues(t, len(content), size)
	body, err := b.Get(ctx, "whole")
	require.NoError(t, err)
	got, err := io.ReadAll(body)
	require.NoError(t, errors.Join(err, body.Close()))
	require.True(t, bytes.Equal(content, got))
	part := make([]byte, 16)
	n, err := b.ReaderAt(ctx, "whole", size).ReadAt(part, size-10)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "6789abcdef", string(part[:n]))

	broken := errors.New("broken")
	_, err = b.Put(ctx, "half", io.MultiReader(bytes.NewReader(content), iotest.ErrReader(broken)), 0)
	require.ErrorIs(t, err, broken)
	interrupted, cancel := context.WithCancel(ctx)
	_, err = b.Put(interrupted, "half", io.MultiReader(bytes.NewReader(content), readerFunc(func([]byte) (int, error) {
		cancel()
		return 0, interrupted.Err()
	})), 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"whole"}, names())
	left := 0
	require.NoError(t, b.Abandoned(ctx, time.Now().Add(time.Hour), func(string) bool { left++; return true }))
	require.Zero(t, left, "incomplete uploads")

	for _, name := range []string{"whole", "whole"} { // also one that is gone
		require.NoError(t, b.Remove(ctx, name))
	}
	there, err := b.Has(ctx, "whole")
	require.NoError(t, err)
	require.False(t, there)
	_, err = b.Get(ctx, "whole")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "read whole from s3://backups/a/b: the store replied NoSuchKey")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
