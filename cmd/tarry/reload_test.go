package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestCheckConfigListsAllMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte("nodeid: x\nmax-body-bytes: many\nui: dark\nhttp-addr: 7300\nsecrets-key-file: "+dir+"/none\nhttp-tls-mode: require\nbeanstalk-listen: addr=unix:/tmp/s,token-file="+dir+"/absent\n"), 0o600))
	var out, errs bytes.Buffer
	t.Setenv("TARRY_CACHE_BYTES", "1")
	t.Setenv("TARRY_LOG_LEVEL", "loud")
	code := run(context.Background(), []string{"server", "--config", file, "--check-config", "--bootstrap-expect", "few", "--max-connections=x"}, strings.NewReader(""), &out, &errs)
	require.Equal(t, cli.ExitUsage, code)
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
	require.Equal(t, cli.ExitOK, code, errs.String())
	require.Contains(t, out.String(), "no mistake")
	require.NoDirExists(t, dir+"/data", "nothing was started")
}

func TestTheLogLevelOfANodeIsChanged(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "log level: info\n", s.OK("cluster", "log-level"))
	require.Contains(t, s.OK("cluster", "log-level", "debug", "--dry-run"), "would change from info to debug")
	require.Equal(t, "log level: debug\n", s.OK("cluster", "log-level", "debug"))
	require.Equal(t, `{"level":"debug"}`+"\n", s.OK("cluster", "log-level", "--json"))
	code, _, errs := s.Run("cluster", "log-level", "loud")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "debug, info, warn, error")
}
