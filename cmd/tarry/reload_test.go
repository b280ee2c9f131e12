package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckConfigListsAllMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte("nodeid: x\nmax-body-bytes: many\nui: dark\nhttp-addr: 7300\nsecrets-key-file: "+dir+"/none\nhttp-tls-mode: require\nbeanstalk-listen: addr=unix:/tmp/s,token-file="+dir+"/absent\n"), 0o600))
	var out, errs bytes.Buffer
	t.Setenv("TARRY_CACHE_BYTES", "1")
	t.Setenv("TARRY_LOG_LEVEL", "loud")
	code := run(context.Background(), []string{"server", "--config", file, "--check-config", "--bootstrap-expect", "few", "--max-connections=x"}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitUsage, code)
	for _, mistake := range []string{
		`there is no setting "nodeid"`, "max-body-bytes: ", `--ui is "dark"`, `--http-addr is "7300"`, "--cache-bytes is 1", `TARRY_LOG_LEVEL="loud"`,
		`invalid value "few" for flag --bootstrap-expect: it must be a whole number`, `invalid value "x" for flag --max-connections`,
		"(--secrets-key-file)", "that needs --http-tls-cert", "(--beanstalk-listen)",
	} {
		require.Equal(t, 1, strings.Count(errs.String(), mistake), "%s: %s", mistake, errs.String())
	}
	require.Contains(t, errs.String(), "tarry server: 11 mistakes; see tarry server --help\n  ")

	require.NoError(t, os.WriteFile(file, []byte("node-id: x\ndata-dir: "+dir+"/data\n"), 0o600))
	t.Setenv("TARRY_CACHE_BYTES", "1048576")
	t.Setenv("TARRY_LOG_LEVEL", "warn")
	errs.Reset()
	code = run(context.Background(), []string{"server", "--config", file, "--check-config"}, strings.NewReader(""), &out, &errs)
	require.Equal(t, exitOK, code, errs.String())
	require.Contains(t, out.String(), "no mistake")
	require.NoDirExists(t, dir+"/data", "nothing was started")
}

func TestAChangedConfigurationFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("node-id: n7\nhttp-hosts: a\nui: off\njoin: [a:7302]\n")
	cfg, err := parseServerConfig([]string{"--config", file, "--ui", "readonly"}, noEnv)
	require.NoError(t, err)
	var lines bytes.Buffer
	log := newLogger(cfg, &lines)
	reload := func() string {
		lines.Reset()
		cfg.reload(log)
		return lines.String()
	}
	require.Contains(t, reload(), "no setting needs a restart")
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))

	write("node-id: n7\nhttp-hosts: b\nui: on\nlog-level: debug\nmax-connections: 9\n")
	said := reload()
	require.Contains(t, said, `msg="the log level was changed" from=INFO to=DEBUG`)
	require.Contains(t, said, "need a restart")
	require.Contains(t, said, `settings="[http-hosts join max-connections]"`, "the command line has ui")
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug))

	write("node-id: n7\nlog-level: loud\nhttp-host: c\n")
	said = reload()
	require.Contains(t, said, "all settings stay as they are")
	require.Contains(t, said, "http-host")
	require.Contains(t, said, "log-level")
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug))

	write("node-id: n7\nhttp-hosts: a\njoin: [a:7302]\n")
	said = reload()
	require.Contains(t, said, "from=DEBUG to=INFO")
	require.NotContains(t, said, "need a restart", "the file is as at the start again")
}

func TestTheLogLevelOfANodeIsChanged(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "log level: info\n", s.ok("cluster", "log-level"))
	require.Contains(t, s.ok("cluster", "log-level", "debug", "--dry-run"), "would change from info to debug")
	require.Equal(t, "log level: debug\n", s.ok("cluster", "log-level", "debug"))
	require.Equal(t, `{"level":"debug"}`+"\n", s.ok("cluster", "log-level", "--json"))
	code, _, errs := s.run("cluster", "log-level", "loud")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "debug, info, warn, error")
}
