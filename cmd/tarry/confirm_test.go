package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// typed is a terminal at which somebody types.
type typed struct{ io.Reader }

func (typed) IsTerminal() bool { return true }

// answer runs a command at a terminal and answers its question.
func (s *shell) answer(text string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, typed{strings.NewReader(text)}, &out, &errs)
	return code, out.String(), errs.String()
}

func TestWhatCannotBeUndoneIsAskedBefore(t *testing.T) {
	for line, question := range map[string]string{
		"purge mail --state ready --all":                  "Delete 2 ready jobs of mail for good? [y/N] ",
		"purge mail --state ready --max 1":                "Delete 1 ready job of mail for good? [y/N] ",
		"purge mail --state ready --all --id-prefix keep": "Delete 1 ready job of mail for good? [y/N] ",
		"cluster leave":     "for good, and stop? [y/N] ",
		"cluster remove n3": "Remove n3 from the cluster of 3 nodes for good? [y/N] ",
	} {
		s := newShell(t)
		s.ok("add", "-t", "mail", "-i", "keep", "x")
		s.ok("add", "-t", "mail", "-i", "b", "x")
		untouched := func() {
			require.Regexp(t, `(?m)^mail +0 +2 `, s.ok("topics"), line)
			require.Empty(t, s.operator.Calls(), line)
		}
		code, out, errs := s.run(strings.Fields(line)...)
		require.Equal(t, exitUsage, code, line)
		require.Empty(t, out)
		require.Contains(t, errs, "say --yes. Nothing was done")
		untouched()
		for _, no := range []string{"", "\n", "n\n", "yesterday\n"} {
			code, out, errs = s.answer(no, strings.Fields(line)...)
			require.Equal(t, exitUsage, code, line)
			require.Empty(t, out)
			require.Contains(t, errs, question)
			require.Contains(t, errs, "nothing was done")
			untouched()
		}
		code, out, _ = s.answer("Yes\n", strings.Fields(line)...)
		require.Equal(t, exitOK, code, line)
		require.NotEmpty(t, out)
		if strings.HasPrefix(line, "purge") {
			require.NotRegexp(t, `(?m)^mail +0 +2 `, s.ok("topics"), line)
		} else {
			require.NotEmpty(t, s.operator.Calls(), line)
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	s := newShell(t)
	s.bury("mail", "a1", "no route")
	s.bury("mail", "b1", "too big")
	s.ok("add", "-t", "mail", "-i", "later", "-d", "1d", "x")
	before := s.ok("list", "mail", "--json")
	for line, says := range map[string]string{
		"kick -t mail --all --dry-run":                          "2 would be kicked\n",
		"kick -t mail --max 1 --dry-run":                        "1 would be kicked\n",
		"kick -t mail --all --reason route --dry-run":           "1 would be kicked\n",
		"purge mail --state dead --all --dry-run":               "2 would be deleted\n",
		"purge mail --state delayed --all --dry-run --json":     "{\"would_be_deleted\":1}\n",
		"purge mail --state dead --all --id-prefix b --dry-run": "1 would be deleted\n",
		"move -t mail --to post --dry-run":                      "3 would be moved\n",
		"move -t mail --to post --states dead --dry-run":        "2 would be moved\n",
	} {
		require.Equal(t, says, s.ok(strings.Fields(line)...), line)
	}
	require.Equal(t, before, s.ok("list", "mail", "--json"))
	code, _, errs := s.run("kick", "a1", "--dry-run")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--dry-run needs --topic")
}
