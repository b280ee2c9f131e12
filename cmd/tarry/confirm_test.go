package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestWhatCannotBeUndoneIsAskedBefore(t *testing.T) {
	for line, question := range map[string]string{
		"purge mail --state ready --all":                  "Delete 2 ready jobs of mail for good? [y/N] ",
		"purge mail --state ready --max 1":                "Delete 1 ready job of mail for good? [y/N] ",
		"purge mail --state ready --all --id-prefix keep": "Delete 1 ready job of mail for good? [y/N] ",
		"topic delete mail":                               "Delete mail with 2 jobs, for good? [y/N] ",
		"cluster leave":                                   "for good, and stop? [y/N] ",
		"cluster remove n3":                               "Remove n3 from the cluster of 3 nodes for good? [y/N] ",
	} {
		s := newShell(t)
		s.OK("add", "-t", "mail", "-i", "keep", "x")
		s.OK("add", "-t", "mail", "-i", "b", "x")
		untouched := func() {
			require.Regexp(t, `(?m)^mail +0 +2 `, s.OK("topics"), line)
			require.Empty(t, s.Operator.Calls(), line)
		}
		code, out, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Empty(t, out)
		require.Contains(t, errs, "say --yes. Nothing was done")
		untouched()
		for _, no := range []string{"", "\n", "n\n", "yesterday\n"} {
			code, out, errs = s.Answer(no, strings.Fields(line)...)
			require.Equal(t, cli.ExitUsage, code, line)
			require.Empty(t, out)
			require.Contains(t, errs, question)
			require.Contains(t, errs, "nothing was done")
			untouched()
		}
		code, out, _ = s.Answer("Yes\n", strings.Fields(line)...)
		require.Equal(t, cli.ExitOK, code, line)
		require.NotEmpty(t, out)
		if !strings.HasPrefix(line, "cluster") {
			require.NotRegexp(t, `(?m)^mail +0 +2 `, s.OK("topics"), line)
		} else {
			require.NotEmpty(t, s.Operator.Calls(), line)
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	s := newShell(t)
	s.Bury("mail", "a1", "no route")
	s.Bury("mail", "b1", "too big")
	s.OK("add", "-t", "mail", "-i", "later", "-d", "1d", "x")
	before := s.OK("list", "mail", "--json")
	for line, says := range map[string]string{
		"kick -t mail --all --dry-run":                          "2 would be kicked\n",
		"kick -t mail --max 1 --dry-run":                        "1 would be kicked\n",
		"kick -t mail --all --reason route --dry-run":           "1 would be kicked\n",
		"purge mail --state dead --all --dry-run":               "2 would be deleted\n",
		"purge mail --state delayed --all --dry-run --json":     "{\"would_be_deleted\":1}\n",
		"purge mail --state dead --all --id-prefix b --dry-run": "1 would be deleted\n",
		"move -t mail --to post --dry-run":                      "3 would be moved\n",
		"move -t mail --to post --states dead --dry-run":        "2 would be moved\n",
		"move -t mail --to post --max 2 --dry-run":              "2 would be moved\n",
		"move -t mail --to post --id-prefix b --dry-run":        "1 would be moved\n",
		"topic delete mail --dry-run":                           "3 would be deleted\n",
		"cluster remove n3 --dry-run":                           "it would ask: Remove n3 from the cluster of 3 nodes for good? Nothing was done.\n",
		"cluster remove n3 --dry-run --json":                    "{\"dry_run\":true,\"question\":\"Remove n3 from the cluster of 3 nodes for good?\"}\n",
	} {
		require.Equal(t, says, s.OK(strings.Fields(line)...), line)
	}
	require.Contains(t, s.OK("cluster", "leave", "--dry-run"), "for good, and stop? Nothing was done.\n")
	require.Empty(t, s.Operator.Calls())
	code, _, errs := s.Run("cluster", "remove", "n9", "--dry-run")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, `"n9" is not a member`)
	require.Equal(t, before, s.OK("list", "mail", "--json"))
	code, _, errs = s.Run("kick", "a1", "--dry-run")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--dry-run needs --topic")
}

func TestATopicIsDeleted(t *testing.T) {
	s := newShell(t)
	s.Bury("mail", "dead", "no route")
	for _, id := range []string{"r1", "r2"} {
		s.OK("add", "-t", "mail", "-i", id, "x")
	}
	s.OK("reserve", "-t", "mail", "-n", "2")
	s.OK("add", "-t", "mail", "-i", "ready", "x")
	s.OK("add", "-t", "mail", "-i", "later", "-d", "1d", "x")
	s.OK("add", "-t", "sms", "-i", "other", "x")
	s.OK("topic", "set", "mail", "--ttr", "5s")
	_, _, errs := s.Answer("n\n", "topic", "delete", "mail")
	require.Contains(t, errs, "Delete mail with 5 jobs, of which 2 are reserved, and its settings, for good?")
	require.Equal(t, "{\"topic\":\"mail\",\"deleted\":5,\"settings\":true}\n", s.OK("topic", "delete", "mail", "--yes", "--json"))
	require.Equal(t, "mail has no settings\n", s.OK("topic", "get", "mail"))
	code, _, errs := s.Run("topic", "delete", "mail", "--yes")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, `topic "mail" has had no jobs, and has no settings`)
	s.OK("get", "other")
	s.OK("delete", "other")
	require.Contains(t, s.OK("topics"), "sms", "it stays for an hour")
	require.Equal(t, "sms is deleted, with 0 jobs\n", s.OK("topic", "delete", "sms", "--yes"))
	require.NotContains(t, s.OK("topics"), "sms")

	s.OK("topic", "set", "mail", "--ttr", "5s")
	require.Equal(t, "mail is deleted, with 0 jobs\n", s.OK("topic", "delete", "mail", "--yes"))
}

func TestSeveralJobsByTheirIDs(t *testing.T) {
	s := newShell(t)
	for _, id := range []string{"a", "b", "c"} {
		s.OK("add", "-t", "mail", "-i", id, "-d", "1h", "x")
	}
	require.Equal(t, "a is delayed; due in 2d\nb is delayed; due in 2d\n", s.OK("update", "a", "b", "--delay", "2d"))
	code, out, errs := s.Run("kick", "a", "none", "b")
	require.Equal(t, []any{cli.ExitNotFound, "a is ready\nb is ready\n"}, []any{code, out})
	require.Equal(t, "tarry kick: job \"none\" does not exist; it may have been finished or deleted\n", errs)
	require.Equal(t, "a is gone\nc is gone\n", s.OK("delete", "a", "c"))
	require.Contains(t, s.OK("delete", "b", "--if-state", "ready"), "b is gone")
	for _, line := range []string{"delete a b --token 0-1-1", "delete a b --if-state ready", "update a b --delay 1s --if-revision 1", "kick a b --to-topic sms", "delete a b --where order=5"} {
		code, _, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, errs, " ID", line)
	}
}
