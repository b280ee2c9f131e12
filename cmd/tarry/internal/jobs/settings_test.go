package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestSettingsFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	require.Equal(t, "mail has no settings\n", s.OK("topic", "get", "mail"))
	require.Regexp(t, `(?m)^topic +mail\nmax-pending +1$`, s.OK("topic", "set", "mail", "--max-pending", "1"))
	s.OK("add", "--topic", "mail", "one")
	code, _, errs := s.Run("add", "--topic", "mail", "two")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "max_pending, is 1")
	s.OK("topic", "set", "sms", "--max-pending", "0")
	require.Regexp(t, `(?s)mail.*max-pending +1.*sms.*max-pending +0`, s.OK("topic", "get"))
	require.JSONEq(t, `{"topic":"sms","revision":1,"settings":{"max_pending":0}}`, s.OK("topic", "get", "sms", "--json"))
	require.Equal(t, "mail has no settings\n", s.OK("topic", "unset", "mail", "max-pending"))
	require.Equal(t, "sms has no settings\n", s.OK("topic", "unset", "sms"))

	shown := s.OK("topic", "set", "mail", "--ttr", "90s", "--max-attempts", "0", "--backoff", "2m,1h", "--spread", "30s", "--expire", "1h", "--expiry", "dead")
	require.Regexp(t, `(?m)^ttr +1m30s\nmax-attempts +0\nbackoff +2m, 1h\nexpire +1h\nexpiry +dead\nspread +30s$`, shown)
	s.OK("add", "--topic", "mail", "--id", "a", "x")
	require.Regexp(t, `(?m)^expires +in 1h$`, s.OK("get", "a"))
	require.Regexp(t, `(?m)^time to run +1m30s$`, s.OK("get", "a"))
	require.NotContains(t, s.OK("topic", "unset", "mail", "ttr", "backoff"), "ttr")

	shown = s.OK("topic", "set", "tokens", "--late-finish", "refuse", "--require-token")
	require.Regexp(t, `(?m)^late-finish +refuse\nrequire-token +yes$`, shown)
	require.Equal(t, "tokens has no settings\n", s.OK("topic", "unset", "tokens", "late-finish", "require-token"))

	shown = s.OK("topic", "set", "tokens", "--retain", "1d", "--retain-max", "1000")
	require.Regexp(t, `(?m)^retain +1d\nretain-max +1000$`, shown)
	require.Equal(t, "tokens has no settings\n", s.OK("topic", "unset", "tokens", "retain", "retain-max"))

	shown = s.OK("topic", "set", "tokens", "--index-headers", "order,customer")
	require.Regexp(t, `(?m)^index-headers +order,customer$`, shown)
	require.Equal(t, "tokens has no settings\n", s.OK("topic", "unset", "tokens", "index-headers"))

	shown = s.OK("topic", "set", "tokens", "--description", `mail to "VIPs"`)
	require.Regexp(t, `(?m)^description +mail to "VIPs"$`, shown)
	require.Equal(t, "tokens has no settings\n", s.OK("topic", "unset", "tokens", "description"))

	for _, args := range [][]string{
		{"topic", "set", "mail"}, {"topic", "set", "mail", "--ttr", "0"}, {"topic", "set", "mail", "--max-attempts", "-1"}, {"topic", "set", "mail", "--max-pending", "-1"}, {"topic", "unset", "mail", "max_pending"}, {"topic", "nothing"},
	} {
		code, _, errs := s.Run(args...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.NotEmpty(t, errs)
	}
}

func TestATopicIsPausedFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "--topic", "mail", "one")
	require.Equal(t, "mail is paused\n", s.OK("pause", "mail"))
	code, _, _ := s.Run("reserve", "--topic", "mail")
	require.Equal(t, cli.ExitNothing, code)
	require.Regexp(t, `^mail is paused; ends in 10m\n$`, s.OK("pause", "mail", "--for", "10m"))
	require.Equal(t, "mail is paused; ends 2040-01-01T00:00:00.000Z\n", s.OK("pause", "mail", "--until", "2040-01-01T00:00:00Z", "--absolute"))
	require.Regexp(t, `(?m)^mail .*paused; ends 2040-01-01T00:00:00.000Z$`, s.OK("topics", "--absolute"))
	require.Equal(t, "mail is not paused\n", s.OK("resume", "mail"))
	require.Contains(t, s.OK("reserve", "--topic", "mail"), "one")
	for _, args := range [][]string{{"pause", "mail", "--for", "0"}, {"pause", "mail", "--for", "1s", "--until", "2040-01-01T00:00:00Z"}, {"pause"}} {
		code, _, _ := s.Run(args...)
		require.Equal(t, cli.ExitUsage, code, args)
	}
}

func TestHistoryFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	require.Regexp(t, `(?m)^retain +1h$`, s.OK("topic", "set", "mail", "--retain", "1h"))
	s.OK("add", "--topic", "mail", "x", "--id", "a")
	s.OK("reserve", "--topic", "mail", "--consumer", "worker-1")
	s.OK("release", "a", "--reason", "two\nlines", "--delay", "0")
	s.OK("delete", "a")
	shown := s.OK("history", "a", "--absolute")
	require.Regexp(t, `(?m)^20\S+Z +added +ready +20\S+Z$`, shown)
	require.Regexp(t, `(?m)^20\S+Z +reserved +reserved +1 +worker-1$`, shown)
	require.Contains(t, shown, `"two\nlines"`)
	require.Regexp(t, `(?m)^deleted +20`, s.OK("get", "a", "--absolute"))
	require.Regexp(t, `(?m)^mail +0 +0 +0 +0 +- +1 +not paused$`, s.OK("topics", "mail"))
	require.Contains(t, s.OK("history", "a", "--json"), `"event":"deleted"`)
	s.OK("add", "--topic", "text", "x", "--id", "c")
	s.OK("reserve", "--topic", "text")
	code, shown, errs := s.Run("history", "c")
	require.Zero(t, code)
	require.NotContains(t, shown, "reserved")
	require.Contains(t, errs, "this is not all: the job is reserved.", "its topic retains no jobs")
	code, _, errs = s.Run("history", "b")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, "b")
	code, _, _ = s.Run("topic", "set", "mail", "--retain", "soon")
	require.Equal(t, cli.ExitUsage, code)
}
