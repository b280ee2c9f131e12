package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "mail has no settings\n", s.ok("topic", "get", "mail"))
	require.Regexp(t, `(?m)^topic +mail\nmax-pending +1$`, s.ok("topic", "set", "mail", "--max-pending", "1"))
	s.ok("add", "--topic", "mail", "one")
	code, _, errs := s.run("add", "--topic", "mail", "two")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "max_pending, is 1")
	s.ok("topic", "set", "sms", "--max-pending", "0")
	require.Regexp(t, `(?s)mail.*max-pending +1.*sms.*max-pending +0`, s.ok("topic", "get"))
	require.JSONEq(t, `{"topic":"sms","revision":1,"settings":{"max_pending":0}}`, s.ok("topic", "get", "sms", "--json"))
	require.Equal(t, "mail has no settings\n", s.ok("topic", "unset", "mail", "max-pending"))
	require.Equal(t, "sms has no settings\n", s.ok("topic", "unset", "sms"))

	shown := s.ok("topic", "set", "mail", "--ttr", "90s", "--max-attempts", "0", "--backoff", "2m,1h", "--spread", "30s", "--expire", "1h", "--expiry", "dead")
	require.Regexp(t, `(?m)^ttr +1m30s\nmax-attempts +0\nbackoff +2m, 1h\nexpire +1h\nexpiry +dead\nspread +30s$`, shown)
	s.ok("add", "--topic", "mail", "--id", "a", "x")
	require.Regexp(t, `(?m)^expires +in 1h$`, s.ok("get", "a"))
	require.Regexp(t, `(?m)^time to run +1m30s$`, s.ok("get", "a"))
	require.NotContains(t, s.ok("topic", "unset", "mail", "ttr", "backoff"), "ttr")

	shown = s.ok("topic", "set", "tokens", "--late-finish", "refuse", "--require-token")
	require.Regexp(t, `(?m)^late-finish +refuse\nrequire-token +yes$`, shown)
	require.Equal(t, "tokens has no settings\n", s.ok("topic", "unset", "tokens", "late-finish", "require-token"))

	shown = s.ok("topic", "set", "tokens", "--retain", "1d", "--retain-max", "1000")
	require.Regexp(t, `(?m)^retain +1d\nretain-max +1000$`, shown)
	require.Equal(t, "tokens has no settings\n", s.ok("topic", "unset", "tokens", "retain", "retain-max"))

	shown = s.ok("topic", "set", "tokens", "--index-headers", "order,customer")
	require.Regexp(t, `(?m)^index-headers +order,customer$`, shown)
	require.Equal(t, "tokens has no settings\n", s.ok("topic", "unset", "tokens", "index-headers"))

	shown = s.ok("topic", "set", "tokens", "--description", `mail to "VIPs"`)
	require.Regexp(t, `(?m)^description +mail to "VIPs"$`, shown)
	require.Equal(t, "tokens has no settings\n", s.ok("topic", "unset", "tokens", "description"))

	for _, args := range [][]string{
		{"topic", "set", "mail"}, {"topic", "set", "mail", "--ttr", "0"}, {"topic", "set", "mail", "--max-attempts", "-1"}, {"topic", "set", "mail", "--max-pending", "-1"}, {"topic", "unset", "mail", "max_pending"}, {"topic", "nothing"},
	} {
		code, _, errs := s.run(args...)
		require.Equal(t, exitUsage, code, args)
		require.NotEmpty(t, errs)
	}
}

func TestATopicIsPausedFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	s.ok("add", "--topic", "mail", "one")
	require.Equal(t, "mail is paused\n", s.ok("pause", "mail"))
	code, _, _ := s.run("reserve", "--topic", "mail")
	require.Equal(t, exitNothing, code)
	require.Regexp(t, `^mail is paused; ends in 10m\n$`, s.ok("pause", "mail", "--for", "10m"))
	require.Equal(t, "mail is paused; ends 2040-01-01T00:00:00.000Z\n", s.ok("pause", "mail", "--until", "2040-01-01T00:00:00Z", "--absolute"))
	require.Regexp(t, `(?m)^mail .*paused; ends 2040-01-01T00:00:00.000Z$`, s.ok("topics", "--absolute"))
	require.Equal(t, "mail is not paused\n", s.ok("resume", "mail"))
	require.Contains(t, s.ok("reserve", "--topic", "mail"), "one")
	for _, args := range [][]string{{"pause", "mail", "--for", "0"}, {"pause", "mail", "--for", "1s", "--until", "2040-01-01T00:00:00Z"}, {"pause"}} {
		code, _, _ := s.run(args...)
		require.Equal(t, exitUsage, code, args)
	}
}

func TestHistoryFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	require.Regexp(t, `(?m)^retain +1h$`, s.ok("topic", "set", "mail", "--retain", "1h"))
	s.ok("add", "--topic", "mail", "x", "--id", "a")
	s.ok("reserve", "--topic", "mail", "--consumer", "worker-1")
	s.ok("release", "a", "--reason", "two\nlines", "--delay", "0")
	s.ok("delete", "a")
	shown := s.ok("history", "a", "--absolute")
	require.Regexp(t, `(?m)^20\S+Z +added +ready +20\S+Z$`, shown)
	require.Regexp(t, `(?m)^20\S+Z +reserved +reserved +1 +worker-1$`, shown)
	require.Contains(t, shown, `"two\nlines"`)
	require.Regexp(t, `(?m)^deleted +20`, s.ok("get", "a", "--absolute"))
	require.Regexp(t, `(?m)^mail +0 +0 +0 +0 +- +1 +not paused$`, s.ok("topics", "mail"))
	require.Contains(t, s.ok("history", "a", "--json"), `"event":"deleted"`)
	s.ok("add", "--topic", "text", "x", "--id", "c")
	s.ok("reserve", "--topic", "text")
	code, shown, errs := s.run("history", "c")
	require.Zero(t, code)
	require.NotContains(t, shown, "reserved")
	require.Contains(t, errs, "this is not all: the job is reserved.", "its topic retains no jobs")
	code, _, errs = s.run("history", "b")
	require.Equal(t, exitNotFound, code)
	require.Contains(t, errs, "b")
	code, _, _ = s.run("topic", "set", "mail", "--retain", "soon")
	require.Equal(t, exitUsage, code)
}
