package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/cmd/tarry/internal/cli"
	"tarry/push"
)

func TestATargetFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("put your own here\n"), 0o600))
	set := []string{"topic", "set", "mail", "--push", "https://hooks.example.com/x", "--push-secret-file", secret, "--push-timeout", "2s", "--push-concurrency", "7"}
	code, _, errs := s.Run(set...)
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "push is off")

	allow, err := push.ParseAllow("hooks.example.com")
	require.NoError(t, err)
	server := httptest.NewServer(api.New(api.Options{Queue: s.Queue, Operator: s.Operator, CheckPush: allow.Check}))
	defer server.Close()
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	require.Contains(t, s.OK(set...), "https://hooks.example.com/x, 2s to answer, 7 at once")
	topic, err := s.Queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, "put your own here", topic.Settings.Push.Secret)
	s.OK("topic", "set", "mail", "--push", "https://hooks.example.com/y")
	require.NotContains(t, s.OK("topic", "get", "mail", "--json"), "put your own here")
	require.Contains(t, s.OK("topic", "unset", "mail", "push"), "no settings")
	code, _, errs = s.Run("add", "-t", "mail", "-i", "a", "--push-url", "https://hooks.example.com/a", "x")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "push_url is not permitted")
	require.Contains(t, s.OK("topic", "set", "mail", "--push-job-urls", "--push-secret-file", secret), "to the URL of each job")
	s.OK("add", "-t", "mail", "-i", "a", "--delay", "1h", "--push-url", "https://hooks.example.com/a", "x")
	require.Regexp(t, `(?m)^push.url +https://hooks.example.com/a$`, s.OK("get", "a"))
	s.OK("update", "a", "--push-url", "https://hooks.example.com/b")
	require.Contains(t, s.OK("move", "-t", "mail", "--to", "post", "--id-prefix", "a"), "0 moved; 1 skipped: push_url is not permitted in topic \"post\"")
	exported := s.OK("export")
	require.Contains(t, exported, `"push_url":"https://hooks.example.com/b"`)
	s.OK("delete", "a")
	s.Stdin = exported
	s.OK("add", "--file", "-")
	require.Equal(t, exported, s.OK("export"))
	require.Contains(t, s.OK("topic", "set", "mail", "--push", "https://hooks.example.com/y", "--push-job-urls", "--push-secret-file", secret), "/y, or to the URL of a job")
	s.OK("update", "a", "--push-url", "none")
	require.NotContains(t, s.OK("export"), "push_url")
	s.OK("schedule", "put", "s", "--spec", "@daily", "--topic", "mail", "--push-url", "https://hooks.example.com/s", "x")
	require.Regexp(t, `(?m)^push url +https://hooks.example.com/s$`, s.OK("schedule", "get", "s"))
	s.OK("delete", "a")
	code, _, errs = s.Run("topic", "set", "mail", "--push", "https://hooks.example.com/y", "--push-concurrency", "0")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "between 1 and 100")
	t.Setenv("TARRY_PUSH_SECRET", "from the environment")
	s.OK("topic", "set", "mail", "--push", "https://hooks.example.com/z")
	topic, err = s.Queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, "from the environment", topic.Settings.Push.Secret)
}
