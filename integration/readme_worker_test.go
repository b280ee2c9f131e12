package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// readmeBlock returns the block of code in a language of a section of the README, with the
// address of a node instead of the default one.
func readmeBlock(t *testing.T, heading, language, addr string) string {
	_, section, found := strings.Cut(readme(t), "\n## "+heading+"\n")
	require.True(t, found, "the README has no %q", heading)
	section, _, _ = strings.Cut(section, "\n## ")
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(section)
	require.NotNil(t, block, "%q has no block in %s", heading, language)
	require.Contains(t, block[1], "127.0.0.1:7300")
	return strings.ReplaceAll(block[1], "127.0.0.1:7300", addr)
}

func TestReadmeThreeCallsAreOneJobsLife(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	calls := strings.Split(strings.TrimSpace(readmeBlock(t, "Three calls", "sh", c.Nodes()[0].HTTP)), "\n")
	require.Len(t, calls, 3)
	for i, want := range []string{`"state":"delayed"`, `"token":"0-1-1"`, `"success":true`} {
		command, _, _ := strings.Cut(calls[i], " #")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		require.Contains(t, string(out), want, command)
	}
}

// Each worker of the README finishes a job and ends at SIGTERM.
func TestReadmeWorkersDoTheirJobs(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, l := range []struct {
		language, file, before string
		command                []string
	}{
		{"go", "main.go", "", []string{"sh", "-c", `go build -o "$0.out" "$0" && exec "$0.out"`}},
		{"python", "worker.py", "", []string{"python3"}},
		{"php", "worker.php", "<?php require '" + root + "/clients/php/autoload.php';\n", []string{"php"}},
	} {
		t.Run(l.language, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 1)
			node := c.Nodes()[0].HTTP
			file := filepath.Join(t.TempDir(), l.file)
			require.NoError(t, os.WriteFile(file, []byte(l.before+readmeBlock(t, "A worker", l.language, node)), 0o600))
			queue, err := client.New([]string{node})
			require.NoError(t, err)
			_, err = queue.Add(t.Context(), client.NewJob{Topic: "unpaid", ID: "order-5", Body: client.Text("x")})
			require.NoError(t, err)

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, l.command[0], append(l.command[1:], file)...)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "PYTHONPATH="+root+"/clients/python/src")
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			errs := &strings.Builder{}
			cmd.Stderr = errs
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				require.NoError(t, cmd.Wait())
			}
			require.Equal(t, "close order-5", lines.Text())
			c.until(func() error {
				_, err := queue.Get(t.Context(), "order-5")
				if errors.Is(err, client.CodeNotFound) {
					return nil
				}
				return fmt.Errorf("order-5 is still there: %w", err)
			})
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Wait(), "%s", errs)
		})
	}
}
