package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestNamespacesOfTheCommandLine(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "namespace billing made\n", s.OK("namespace", "create", "billing", "--topic-prefix", "billing.", "--jobs", "1", "--rate", "0.5"))
	require.Equal(t, "namespace billing is so already\n", s.OK("namespace", "create", "billing", "--topic-prefix", "billing.", "--jobs", "1", "--rate", "0.5"))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"create", "mail"}, "--topic-prefix is missing"},
		{[]string{"create", "billing", "--topic-prefix", "billing."}, "namespace \"billing\" exists already, with revision 1; change it with tarry namespace update billing"},
		{[]string{"create", "mail", "--topic-prefix", "bill"}, `namespace "billing" has "billing."`},
		{[]string{"create", "mail", "--topic-prefix", "mail.", "--jobs", "many"}, `"many" is neither a whole number nor none`},
		{[]string{"create", "mail", "--topic-prefix", "mail.", "--topics", "1.5"}, `"1.5" is neither a whole number nor none`},
		{[]string{"create", "mail", "--topic-prefix", "mail.", "--rate", "fast"}, `"fast" is neither a number nor none`},
		{[]string{"create", "mail", "--topic-prefix", "mail.", "--rate", "0.0001"}, "between 0.001 and 1000000 adds a second"},
		{[]string{"show", "mail"}, "no namespace"},
		{[]string{"update", "mail", "--jobs", "1"}, "no namespace"},
		{[]string{"delete", "mail", "--yes"}, "does not exist"},
	} {
		code, _, errs := s.Run(append([]string{"namespace"}, c.args...)...)
		require.NotEqual(t, cli.ExitOK, code, c.args)
		require.Contains(t, errs, c.says, c.args)
	}
	s.OK("add", "--topic", "billing.a", "hello")
	code, _, errs := s.Run("add", "--topic", "billing.a", "hello")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "its quota, jobs, is 1")
	require.Equal(t, "NAME     TOPICS     JOBS    BYTES  NUMBER OF TOPICS  RATE\nbilling  billing.*  1 of 1  5      1                 0.5/s\n", s.OK("namespace", "list"))
	require.Equal(t, "namespace billing changed\n", s.OK("namespace", "update", "billing", "--jobs", "none", "--bytes", "10", "--description", "the shop"))
	require.JSONEq(t, `{"name":"billing","revision":3,"topic_prefix":"billing.","description":"the shop","quotas":{"bytes":10,"rate":0.5},"use":{"jobs":1,"bytes":5,"topics":1}}`,
		s.OK("namespace", "show", "billing", "--json"))
	require.Contains(t, s.OK("namespace", "show", "billing"), "5 of 10")
	require.Contains(t, s.OK("namespace", "delete", "billing", "--dry-run"), "Its topics and 1 job remain")
	s.OK("namespace", "delete", "billing", "--yes")
	require.Empty(t, s.OK("namespace", "list", "--json"))
}

// The commands of docs/namespaces.md do what it says.
func TestThePageAboutNamespaces(t *testing.T) {
	page, err := os.ReadFile("../../docs/namespaces.md")
	require.NoError(t, err)
	s := closedShell(t)
	s.OK("auth", "bootstrap", "-o", "root.token")
	t.Setenv(cli.TokenFileEnv, "root.token")
	commands := 0
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		printed := ""
		for line := range strings.Lines(m[1]) {
			words := shellWords(strings.TrimSpace(line))
			require.Equal(t, "tarry", words[0], line)
			printed += s.OK(words[1:]...)
			commands++
		}
		if m[2] != "" {
			require.Equal(t, m[2], printed, m[1])
		}
	}
	require.Equal(t, 7, commands)
}
