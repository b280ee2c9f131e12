package repository

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// serverFlags are the flags of tarry server, from docs/configuration.md, which a test holds against them.
func serverFlags(t *testing.T) []string {
	var flags []string
	for _, m := range regexp.MustCompile("(?m)^### `--([a-z0-9-]+)`$").FindAllStringSubmatch(read(t, "docs/configuration.md"), -1) {
		flags = append(flags, m[1])
	}
	require.Greater(t, len(flags), 30)
	return flags
}

// directives are the lines of a unit file, in order, as name=value.
func directives(t *testing.T, file string) (list []string) {
	for line := range strings.Lines(read(t, file)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "[") {
			list = append(list, line)
		}
	}
	return list
}

const unitFile = "deploy/package/tarry.service"

// The unit restarts a node unless it ended with a code that says that this does not help.
func TestTheUnitKnowsTheExitCodes(t *testing.T) {
	source := read(t, "cmd/tarry/internal/cli/exitcode.go")
	code := func(name string) string {
		m := regexp.MustCompile(`(?m)^\t` + name + ` +=\s+(\d+)$`).FindStringSubmatch(source)
		require.Len(t, m, 2, name)
		return m[1]
	}
	unit := directives(t, unitFile)
	require.Contains(t, unit, "Restart=on-failure")
	require.Contains(t, unit, "RestartPreventExitStatus="+code("ExitStopped"), "not 2: a panic of Go ends with that too")
	require.Contains(t, unit, "Type=notify")
	require.Contains(t, unit, "WatchdogSec=60s")
	require.Contains(t, unit, "ExecStart=/usr/bin/tarry server --config /etc/tarry/tarry.yaml")
}

// make cluster starts the image that it builds, and waits for the ports that are published.
func TestMakeClusterTakesItsPortsAndItsImage(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: no make")
	}
	bin := t.TempDir()
	calls := filepath.Join(bin, "calls")
	for name, script := range map[string]string{
		"docker": `echo "docker $* image=$TARRY_IMAGE"`, "curl": `echo "curl $*"`, "go": "true",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+" >>"+calls+"\n"), 0o700))
	}
	for _, c := range []struct {
		args, env       []string
		image, host, at string
	}{
		{nil, nil, "tarry:local", "127.0.0.1", "7300"},
		{[]string{"IMAGE=mine:1"}, []string{"TARRY_PORT_1=17300", "TARRY_PUBLISH=0.0.0.0"}, "mine:1", "127.0.0.1", "17300"},
		{nil, []string{"TARRY_IMAGE=mine:2", "TARRY_PUBLISH=192.0.2.7"}, "mine:2", "192.0.2.7", "7300"},
	} {
		require.NoError(t, os.WriteFile(calls, nil, 0o600))
		cmd := exec.CommandContext(t.Context(), "make", append(c.args, "cluster")...)
		cmd.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), c.env...)
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", printed)
		log := read(t, calls)
		require.Contains(t, log, "docker build -q -t "+c.image+" .")
		require.Contains(t, log, "docker compose up -d image="+c.image)
		for _, port := range []string{c.at, "7310", "7320"} {
			require.Contains(t, log, "http://"+c.host+":"+port+"/readyz")
			require.Contains(t, string(printed), "http://"+c.host+":"+port)
		}
	}
}

// The firewall of docs/security.md.
func TestNftablesAcceptsTheFirewall(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: it needs nft (apt-get install nftables) and root")
	}
	page, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```\n(table inet .*?)```").FindSubmatch(page)
	require.Len(t, block, 2)
	file := filepath.Join(t.TempDir(), "tarry.nft")
	require.NoError(t, os.WriteFile(file, block[1], 0o600))
	out, err := exec.CommandContext(t.Context(), nft, "--check", "--file", file).CombinedOutput()
	if err != nil && !strings.Contains(string(out), file+":") { // no position in the file
		t.Skipf("SKIPPED: this machine does not let nft check: %s", out)
	}
	require.NoError(t, err, "%s", out)
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED: no systemd-analyze, so %s did not run\n", t.Name())
		t.Skip("SKIPPED: no systemd-analyze")
	}
	// It also asks whether the program is there.
	text := strings.Replace(read(t, unitFile), "/usr/bin/tarry", "/bin/true", 1)
	file := filepath.Join(t.TempDir(), "tarry.service")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "tarry.service") && !strings.Contains(line, "is marked executable") {
			t.Errorf("%s", line)
		}
	}
	if err != nil {
		t.Logf("systemd-analyze: %v\n%s", err, out) // of the machine's own units, or without a running systemd
	}
}

// Each setting of the file that the package installs is a flag, also those that are commented out.
func TestTheConfigurationOfThePackageHasSettingsThatExist(t *testing.T) {
	text := read(t, "deploy/package/tarry.yaml")
	flags := serverFlags(t)
	for name, text := range map[string]string{"as installed": text, "all of it": regexp.MustCompile(`(?m)^# ([a-z-]+:)`).ReplaceAllString(text, "$1")} {
		settings := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &settings), name)
		for key := range settings {
			require.True(t, slices.Contains(flags, key), "%s: there is no flag --%s", name, key)
		}
		require.Equal(t, "/var/lib/tarry", settings["data-dir"])
		require.Equal(t, name != "as installed", len(settings) > 10)
	}
}

func TestScriptsOfThePackageAreShell(t *testing.T) {
	scripts, err := filepath.Glob("deploy/package/scripts/*.sh")
	require.NoError(t, err)
	require.Len(t, scripts, 4)
	for _, script := range scripts {
		out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
		require.NotContains(t, read(t, script), "rm -r", "%s: data stays", script)
		require.Contains(t, read(t, "deploy/package/nfpm.yaml"), "scripts/"+filepath.Base(script))
	}
}
