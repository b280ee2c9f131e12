package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/push"
)

func TestATargetFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("put your own here\n"), 0o600))
	set := []string{"topic", "set", "mail", "--push", "https://hooks.example.com/x", "--push-secret-file", secret, "--push-timeout", "2s", "--push-concurrency", "7"}
	code, _, errs := s.run(set...)
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "push is off")

	allow, err := push.ParseAllow("hooks.example.com")
	require.NoError(t, err)
	server := httptest.NewServer(api.New(api.Options{Queue: s.queue, Operator: s.operator, CheckPush: allow.Check}))
	defer server.Close()
	t.Setenv(addrEnv, server.Listener.Addr().String())
	require.Contains(t, s.ok(set...), "https://hooks.example.com/x, 2s to answer, 7 at once")
	topic, err := s.queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, "put your own here", topic.Settings.Push.Secret)
	s.ok("topic", "set", "mail", "--push", "https://hooks.example.com/y")
	require.NotContains(t, s.ok("topic", "get", "mail", "--json"), "put your own here")
	require.Contains(t, s.ok("topic", "unset", "mail", "push"), "no settings")
	code, _, errs = s.run("add", "-t", "mail", "-i", "a", "--push-url", "https://hooks.example.com/a", "x")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "push_url is not permitted")
	require.Contains(t, s.ok("topic", "set", "mail", "--push-job-urls", "--push-secret-file", secret), "to the URL of each job")
	s.ok("add", "-t", "mail", "-i", "a", "--delay", "1h", "--push-url", "https://hooks.example.com/a", "x")
	require.Regexp(t, `(?m)^push.url +https://hooks.example.com/a$`, s.ok("get", "a"))
	s.ok("update", "a", "--push-url", "https://hooks.example.com/b")
	require.Contains(t, s.ok("move", "-t", "mail", "--to", "post", "--id-prefix", "a"), "0 moved; 1 skipped: push_url is not permitted in topic \"post\"")
	exported := s.ok("export")
	require.Contains(t, exported, `"push_url":"https://hooks.example.com/b"`)
	s.ok("delete", "a")
	s.stdin = exported
	s.ok("add", "--file", "-")
	require.Equal(t, exported, s.ok("export"))
	require.Contains(t, s.ok("topic", "set", "mail", "--push", "https://hooks.example.com/y", "--push-job-urls", "--push-secret-file", secret), "/y, or to the URL of a job")
	s.ok("update", "a", "--push-url", "none")
	require.NotContains(t, s.ok("export"), "push_url")
	s.ok("schedule", "put", "s", "--spec", "@daily", "--topic", "mail", "--push-url", "https://hooks.example.com/s", "x")
	require.Regexp(t, `(?m)^push url +https://hooks.example.com/s$`, s.ok("schedule", "get", "s"))
	s.ok("delete", "a")
	code, _, errs = s.run("topic", "set", "mail", "--push", "https://hooks.example.com/y", "--push-concurrency", "0")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "between 1 and 100")
	t.Setenv("TARRY_PUSH_SECRET", "from the environment")
	s.ok("topic", "set", "mail", "--push", "https://hooks.example.com/z")
	topic, err = s.queue.Topic(t.Context(), "mail", false)
	require.NoError(t, err)
	require.Equal(t, "from the environment", topic.Settings.Push.Secret)
}

func TestTheListOfDestinationsIsASettingOfTheServer(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	c, err := parseServerConfig(nil, none)
	require.NoError(t, err)
	require.True(t, c.PushAllow.Empty(), "nothing is allowed by default")
	c, err = parseServerConfig([]string{"--push-allow", "hooks.example.com,10.0.0.0/8:80"}, none)
	require.NoError(t, err)
	require.NoError(t, c.PushAllow.Check("push.url", "https://hooks.example.com/"))
	_, err = parseServerConfig([]string{"--push-allow", "https://hooks.example.com"}, none)
	require.ErrorContains(t, err, "push-allow")
	env := func(name string) (string, bool) { return "a.example", name == "TARRY_PUSH_ALLOW" }
	c, err = parseServerConfig(nil, env)
	require.NoError(t, err)
	require.False(t, c.PushAllow.Empty())
}
