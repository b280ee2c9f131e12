package main

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/apitest"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/cmd/tarry/internal/server"
)

// closedShell is a shell whose queue can need tokens, in a directory of its own with the data
// directory of the node.
func closedShell(t *testing.T) *clitest.Shell {
	s := &clitest.Shell{T: t, Root: newRoot, Queue: apitest.New(t), Operator: &apitest.Operator{}}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("tarry-data", 0o700))
	require.NoError(t, server.MakeBootstrapSecret("tarry-data"))
	control := access.Open(access.Options{Source: s.Queue})
	t.Cleanup(control.Close)
	server := httptest.NewServer(api.New(api.Options{Queue: s.Queue, Operator: s.Operator, Access: control, CheckBootstrap: server.ChecksBootstrap("tarry-data"), AuthReset: &server.ResetFile{Dir: "tarry-data"}}))
	t.Cleanup(server.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	t.Setenv(cli.TokenFileEnv, "")
	return s
}

// block is commands of the page and what they print, if that is shown.
var block = regexp.MustCompile("(?s)```sh\n(.*?)\n```\n(?:```\n(.*?)```\n)?")

// The commands of docs/tokens.md close an open cluster.
func TestThePageAboutTokens(t *testing.T) {
	page, err := os.ReadFile("../../docs/tokens.md")
	require.NoError(t, err)
	s := closedShell(t)
	commands := 0
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		printed := ""
		for line := range strings.Lines(m[1]) {
			line = strings.TrimSpace(line)
			if name, value, is := strings.Cut(strings.TrimPrefix(line, "export "), "="); is && strings.HasPrefix(line, "export ") {
				t.Setenv(name, value)
				continue
			}
			words := shellWords(line)
			require.Equal(t, "tarry", words[0], line)
			printed += s.OK(words[1:]...)
			commands++
		}
		if m[2] != "" {
			require.Equal(t, m[2], printed, m[1])
		}
	}
	require.GreaterOrEqual(t, commands, 13)
	code, _, errs := s.Run("--token-file", "mailer.token", "reserve", "--topic", "mail")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "token", "it was revoked")
}

// shellWords splits a line at spaces, except in single quotes.
func shellWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}

func TestTokensOfTheCommandLine(t *testing.T) {
	s := closedShell(t)
	code, _, errs := s.Run("auth", "bootstrap", "--data-dir", "none")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--data-dir")
	s.OK("auth", "bootstrap", "-o", "root.token")
	about, err := os.Stat("root.token")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), about.Mode().Perm())
	code, _, errs = s.Run("auth", "bootstrap", "second", "-o", "second.token")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "first token")
	_, err = os.Stat("second.token")
	require.ErrorIs(t, err, os.ErrNotExist, "a file without a token is not left behind")

	t.Setenv(cli.TokenFileEnv, "root.token")
	for _, c := range []struct{ args, says string }{
		{"token create shop", "--allow"},
		{"token create shop --allow mail", "topics=verbs"},
		{"token create shop --allow mail=write", "the verbs are add"},
		{"token create shop --allow mail=add -o root.token", "exists"},
		{"token create shop --allow mail=add --limit speed=3", "the limits are rate"},
		{"token create shop --allow mail=add --limit=", "is empty; leave it out"},
		{"token create shop --allow mail=add --limit=,", "is empty; leave it out"},
		{"token create shop --allow mail=add --limit rate=5,rate=6", "rate is given twice"},
		{"token create shop --allow mail=add --limit bytes=5 --limit bytes=5", "bytes is given twice"},
		{"token create shop --allow mail=add --limit rate=0", "rate takes a number from 0.001 to 1000000, got \"0\""},
		{"token create shop --allow mail=add --limit rate=NaN", "rate takes a number from 0.001 to 1000000, got \"NaN\""},
		{"token create shop --allow mail=add --limit bytes=0.5", "bytes takes a whole number from 1 to 1099511627776, got \"0.5\""},
		{"token create shop --allow mail=add --limit connections=99999999999", "connections takes a whole number from 1 to 4294967295, got \"99999999999\""},
		{"token show nobody", "nobody"},
		{"auth mode closed", "enforce"},
		{"auth anonymous --none --allow mail=add", "both"},
		{"--token-file none list mail", "none"},
	} {
		code, _, errs := s.Run(strings.Fields(c.args)...)
		require.NotEqual(t, cli.ExitOK, code, c.args)
		require.Contains(t, errs, c.says, c.args)
	}
	text := s.OK("token", "create", "shop", "--allow", "mail=add", "--expires-in", "1h", "--description", "the shop")
	require.Regexp(t, `^tarry_shop_\S+\n$`, text)
	require.Contains(t, s.OK("token", "create", "shop", "--allow", "mail=add,consume"), "its text stays")
	require.Contains(t, s.OK("token", "show", "shop"), "mail=add,consume")
	require.NotContains(t, s.OK("token", "show", "shop"), "limits")
	s.OK("token", "create", "shop", "--allow", "mail=add,consume", "--limit", "rate=1.5,connections=20", "--limit", "waiters=30,bytes=1000000")
	for _, command := range []string{"show shop", "list"} {
		require.Contains(t, s.OK(append([]string{"token"}, strings.Fields(command)...)...), "rate=1.5,connections=20,waiters=30,bytes=1000000")
	}
	require.NotContains(t, s.OK("token", "show", "shop", "--json"), strings.TrimSpace(text))
	require.Contains(t, s.OK("auth", "check"), "token root")
	s.OK("auth", "mode", "enforce")
	require.NoError(t, os.WriteFile("shop.token", []byte(text), 0o600))
	t.Setenv(cli.TokenFileEnv, "shop.token")
	s.OK("auth", "check", "add", "mail")
	s.OK("auth", "check", "add", "--topic", "mail")
	code, _, errs = s.Run("auth", "check", "manage", "mail")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "manage on topic mail")
	s.OK("add", "--topic", "mail", "hello")
	code, _, errs = s.Run("add", "--topic", "sms", "hello")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, `add on topic "sms" is not allowed`)
}
