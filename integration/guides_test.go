package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
	"tarry/job"
)

const guides = "../docs/guides"

// guideBlock is a block of shell commands, and the output that the page shows below it.
type guideBlock struct{ commands, output string }

func guideBlocks(t *testing.T, guide string) (blocks []guideBlock) {
	data, err := os.ReadFile(filepath.Join(guides, guide))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:```\n(.*?)```\n)?").FindAllStringSubmatch(string(data), -1) {
		blocks = append(blocks, guideBlock{m[1], m[2]})
	}
	require.NotEmpty(t, blocks, guide)
	return blocks
}

// shellOfGuide returns bash in a directory of its own, with tarry in the PATH.
func shellOfGuide(ctx context.Context, t *testing.T, script string) *exec.Cmd {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(binary, filepath.Join(dir, "bin", "tarry")))
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	return cmd
}

// sameOutput compares what a page shows with what came: "..." stands for anything, columns
// may have other widths, and times pass.
func sameOutput(shown, came string) bool {
	plain := func(text string) string {
		text = regexp.MustCompile(`\b(in (\d+[a-z]+)+|(\d+[a-z]+)+ ago|now)\b`).ReplaceAllString(text, "WHEN")
		return regexp.MustCompile(` +`).ReplaceAllString(strings.TrimSpace(text), " ")
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(plain(shown)), regexp.QuoteMeta("..."), ".*") // within a line
	return regexp.MustCompile("^" + pattern + "$").MatchString(plain(came))
}

// The commands of each guide run in their order on a new node, and print what the page shows.
func TestGuidesDoWhatTheyShow(t *testing.T) {
	t.Parallel()
	// Tests of their own: below, and in closing_test.go.
	own := map[string]bool{"three-machines.md": true, "monitoring-and-alerts.md": true, "close-a-running-cluster.md": true}
	pages, err := filepath.Glob(filepath.Join(guides, "*.md"))
	require.NoError(t, err)
	ran := 0
	for _, page := range pages {
		guide := filepath.Base(page)
		if own[guide] {
			continue
		}
		ran++
		t.Run(guide, func(t *testing.T) {
			t.Parallel()
			runGuide(t, guide)
		})
	}
	require.Equal(t, 7, ran)
}

func runGuide(t *testing.T, guide string) {
	port, err := freeport.Take()
	require.NoError(t, err)
	receiver := fmt.Sprint("127.0.0.1:", port)
	c := startCluster(t, 1, "--push-allow", receiver)
	c.waitVersion(job.MaxVersion)
	const end = "--- end of a block ---"
	blocks := guideBlocks(t, guide)
	var script strings.Builder
	script.WriteString("set -eu\nexec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for _, b := range blocks {
		script.WriteString(b.commands + "echo '" + end + "'\n")
	}
	// The output shows the address of a receiver, too.
	addresses := strings.NewReplacer("127.0.0.1:7300", c.Nodes()[0].HTTP, "127.0.0.1:8080", receiver, `("127.0.0.1", 8080)`, fmt.Sprintf(`("127.0.0.1", %d)`, port))
	var others []string // for nodes that the page starts
	for _, name := range []string{"127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7500", "127.0.0.1:7501", "127.0.0.1:7502"} {
		port, err := freeport.Take()
		require.NoError(t, err)
		others = append(others, name, fmt.Sprint("127.0.0.1:", port))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := shellOfGuide(ctx, t, strings.NewReplacer(others...).Replace(addresses.Replace(script.String())))
	cmd.Env = append(cmd.Env, "TARRY_ADDR="+c.Nodes()[0].HTTP)
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	parts := strings.Split(string(out), end+"\n")
	require.Len(t, parts, len(blocks)+1, "%s", out)
	for i, b := range blocks {
		if b.output != "" || strings.TrimSpace(parts[i]) != "" {
			require.True(t, sameOutput(addresses.Replace(b.output), parts[i]), "%s\nprints\n%s\nand the page has\n%s", b.commands, parts[i], b.output)
		}
	}
}

func TestTheBackupPageDoesWhatItShows(t *testing.T) {
	t.Parallel()
	runGuide(t, "../backup.md")
}

func TestTheStandbyPageDoesWhatItShows(t *testing.T) {
	t.Parallel()
	runGuide(t, "../standby.md")
}

func TestWhatAGuideMayLeaveOut(t *testing.T) {
	require.True(t, sameOutput("a  due in 30m\n", "a due in 29m59s\n"))
	require.True(t, sameOutput("a ... c\n", "a b c\n"))
	require.False(t, sameOutput("a\n", "a\nb\n"))
	require.False(t, sameOutput("1 kicked\n", "2 kicked\n"))
}

// machines makes directories of machines: on runs commands on one of them, of which the last
// is its node; systemctl and ssh do what the guide to three machines needs of them.
const machines = `set -eu
trap 'status=$?; kill -9 $(cat */pid) 2>/dev/null; [ $status = 0 ] || tail -n 20 *.log' EXIT
mkdir n1 n2 n3 n4
on() {
  ( host=$1; hostname() { echo "$host"; }; cd "$host"; eval "${2/tarry server/exec tarry server}" ) >>"$1.log" 2>&1 &
  echo $! >"$1/pid"
}
systemctl() {
  case $2 in
  stop) kill "$(cat "$1/pid")"; while kill -0 "$(cat "$1/pid")" 2>/dev/null; do sleep 0.1; done ;;
  start) on "$1" 'tarry server --config tarry.yaml' ;;
  esac
}
ssh() { systemctl "$1" "$4"; }
`

// The machines of the guide are addresses of the loopback network here.
func TestGuideToThreeMachines(t *testing.T) {
	t.Parallel()
	blocks := guideBlocks(t, "three-machines.md")
	require.Len(t, blocks, 6)
	start, check, use, join, replace, upgrade := blocks[0].commands, blocks[1].commands, blocks[2].commands, blocks[3].commands, blocks[4].commands, blocks[5].commands
	script := machines + `for host in n1 n2 n3; do on $host "$START"; done
` + check + `kill -9 "$(cat n3/pid)"
` + use + `on n4 "$JOIN"
` + replace + `mv n4/joining.yaml n4/tarry.yaml
` + upgrade
	file, _, found := strings.Cut(start, "tarry server") // the file that n4 has too
	require.True(t, found)
	ports := make([]string, 3)
	for i := range ports {
		port, err := freeport.Take()
		require.NoError(t, err)
		ports[i] = fmt.Sprint(":", port)
	}
	here := func(text string) string {
		text = regexp.MustCompile(`\bn([1-4])\b`).ReplaceAllString(text, "127.0.0.$1")
		return strings.NewReplacer(":7300", ports[0], ":7301", ports[1], ":7302", ports[2], "0.0.0.0", "$(hostname)", "/var/lib/tarry", "data").Replace(text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := shellOfGuide(ctx, t, here(script))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(cmd.Env, "START="+here(start), "JOIN="+here(file+join))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "voters that may still fail: 1")
	require.Contains(t, string(out), "hello")
	require.Regexp(t, "equal", string(out))
}

// The guide's directory of Prometheus is a temporary one.
func TestGuideToMonitoring(t *testing.T) {
	t.Parallel()
	tool(t, "promtool")
	c := startCluster(t, 1)
	var script strings.Builder
	script.WriteString("set -eu\nexport TARRY_ADDR=" + c.Nodes()[0].HTTP + "\n")
	blocks := guideBlocks(t, "monitoring-and-alerts.md")
	for _, b := range blocks {
		script.WriteString(b.commands)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := shellOfGuide(ctx, t, strings.NewReplacer("/etc/prometheus", t.TempDir(), "//127.0.0.1:7300", "//"+c.Nodes()[0].HTTP).Replace(script.String()))
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	shown, _, found := strings.Cut(string(out), "Checking ")
	require.True(t, found, "%s", out)
	require.True(t, sameOutput(blocks[0].output, shown), "%s", shown)
	require.Contains(t, string(out), "runbook_url: https://git.example/tarry/blob/main/docs/alerts.md#")
}
