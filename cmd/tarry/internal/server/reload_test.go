package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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
