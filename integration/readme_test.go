package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
)

func readme(t *testing.T) string {
	data, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(data)
}

func TestHelloExampleShowsOneJobsLife(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../examples/hello.sh")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TARRY="+binary, fmt.Sprint("PORT=", portsInARow(t, 4)))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text := string(out)
	at := 0
	// On a busy machine a command may take longer than the delay.
	for _, step := range []string{"$ tarry add", "is delayed", "$ tarry get", "$ tarry reserve", "hello ann", "$ tarry finish", "$ tarry topics"} {
		i := strings.Index(text[at:], step)
		require.GreaterOrEqual(t, i, 0, "%q is missing after its predecessors in:\n%s", step, text)
		at += i
	}
}

// portsInARow returns the first of so many free ports.
func portsInARow(t *testing.T, count int) int {
	last, row := 0, 0
	for row < count {
		p, err := freeport.Take()
		require.NoError(t, err)
		if p != last+1 {
			row = 0
		}
		last, row = p, row+1
	}
	return last - count + 1
}

func TestReadmeNamesOnlyTargetsThatExist(t *testing.T) {
	text := readme(t)
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	targets := regexp.MustCompile("make ([a-z-]+)").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, targets)
	for _, m := range targets {
		require.Regexp(t, `(?m)^`+m[1]+`:`, string(makefile), "make %s", m[1])
	}
}

// clusterCommands is the block of the README that walks through three nodes.
func clusterCommands(t *testing.T) []string {
	_, section, found := strings.Cut(readme(t), "## Three nodes")
	require.True(t, found)
	parts := strings.SplitN(section, "```", 3)
	require.Len(t, parts, 3)
	return strings.Split(strings.TrimSpace(strings.TrimPrefix(parts[1], "sh\n")), "\n")
}

func TestReadmeWalkThroughThreeNodes(t *testing.T) {
	requireDocker(t)
	c := startContainers(t)
	ports := strings.NewReplacer(":7300/", ":17300/", ":7310/", ":17310/", ":7320/", ":17320/")
	var answers []string
	for _, line := range clusterCommands(t) {
		command, _, _ := strings.Cut(line, " #")
		fields := strings.Fields(command)
		switch fields[0] {
		case "make": // startContainers and its clean-up do this
		case "docker":
			out, err := c.compose(fields[2:]...)
			require.NoError(t, err, "%s: %s", line, out)
			if fields[2] == "start" {
				c.waitReady()
			}
		case "curl":
			begin := time.Now()
			answers = append(answers, c.curl(ports.Replace(command)))
			t.Logf("%.1f s: %s", time.Since(begin).Seconds(), command)
		default:
			t.Errorf("the test does not know how to run %q", line)
		}
	}
	require.Len(t, answers, 5)
	require.Contains(t, answers[1], `"to":"ann"`)
	require.Contains(t, answers[4], `"equal":true`)
}

// curl runs a line of the README until it succeeds. A person types slower than a
// node that was just started is found again by the others.
func (c *containers) curl(command string) string {
	c.t.Helper()
	var answer string
	waitUntil(c.t, func() error {
		out, err := exec.CommandContext(c.t.Context(), "sh", "-c", command).CombinedOutput()
		answer = string(out)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w: %s", command, err, answer)
		case !strings.Contains(answer, `"success":true`), strings.Contains(answer, `"error":"`):
			return fmt.Errorf("%s: %s", command, answer)
		}
		return nil
	})
	return answer
}

// shellBlocks are the sh blocks of the docs' section with this heading.
func shellBlocks(t *testing.T, page, heading string) []string {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(data), "\n"+heading+"\n")
	require.True(t, found, "%s has no %q", page, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func TestThreeNodesOnOneMachineAsOperationsSays(t *testing.T) {
	t.Parallel()
	blocks := shellBlocks(t, "../docs/operations.md", "## Three nodes on one machine")
	require.Len(t, blocks, 2)
	start, use := blocks[0], blocks[1]
	// set -m gives the jobs their numbers, as in a terminal. A person types slower
	// than the nodes find each other.
	script := "set -m\ntrap 'kill -9 $(jobs -p) 2>/dev/null' EXIT\n" + start + "set -e\n" +
		strings.Replace(use, "./tarry cluster health\n", "until ./tarry cluster health; do sleep 0.2; done\n", 1)
	script = strings.NewReplacer("./tarry ", binary+" ", ":74", ":194").Replace(script)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "healthy: yes")
	require.Regexp(t, `welcome-1 +0-1-1 +1 .* hello ann`, string(out))
}
