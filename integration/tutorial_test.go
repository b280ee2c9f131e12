package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
)

// The shop of the tutorial closes the order that is not paid, and what the page shows of its
// source is in it.
func TestTutorialClosesTheUnpaidOrder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/tutorial.md")
	require.NoError(t, err)
	source, err := os.ReadFile("../examples/unpaid/main.go")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, shown)
	for _, block := range shown {
		require.Contains(t, string(source), block[1])
	}

	c := startCluster(t, 1)
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", shop, "./examples/unpaid")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	port, err := freeport.Take()
	require.NoError(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shop, "-nodes", c.Nodes()[0].HTTP, "-listen", addr, "-after", "2s")
	require.NoError(t, cmd.Start())
	c.until(func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})

	blocks := shellBlocks(t, "../docs/tutorial.md", "## Run it")
	use := blocks[len(blocks)-1]
	require.Contains(t, use, "127.0.0.1:8080")
	// The last two calls look at what the worker has done, which may take its time here.
	for _, line := range strings.Split(strings.TrimSpace(use), "\n") {
		command, want, found := strings.Cut(strings.ReplaceAll(line, "127.0.0.1:8080", addr), "#")
		if !found {
			continue
		}
		c.until(func() error {
			out, err := exec.CommandContext(ctx, "sh", "-c", "curl -s "+strings.TrimPrefix(command, "curl ")).CombinedOutput()
			if err == nil && strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
				err = fmt.Errorf("%s: %s", command, out)
			}
			return err
		})
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
