package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

// lead runs a node of its own until it leads, stops it, and returns its log.
func lead(t *testing.T, dir string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args := []string{
		"--data-dir", dir, "--http-addr", clitest.FreeAddr(t), "--cluster-addr", clitest.FreeAddr(t),
		"--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", "off", "--disk-low-water", "1",
	}
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=leading") }, 30*time.Second, 10*time.Millisecond, log.String())
	stop()
	require.Equal(t, cli.ExitOK, <-ended, log.String())
	return log.String()
}

// requirePrivate fails unless nobody but the owner can reach what is in dir.
func requirePrivate(t *testing.T, dir string) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		files++
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
	require.Greater(t, files, 10)
}

func TestTheDataDirectoryIsTheOwnersAlone(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	dir := filepath.Join(t.TempDir(), "data")
	lead(t, dir)
	requirePrivate(t, dir)
}

func TestADataDirectoryThatOthersCouldReadIsClosedToThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	lead(t, dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"node.json", "lock"} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "shard-0"), 0o755))
	lead(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm(), "whoever made it may have a reason, as for /data of a volume")
	require.NoError(t, os.Chmod(dir, 0o700))
	requirePrivate(t, dir)
}
