package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/cli.md and docs/man anew")

const (
	cliPage  = "../../docs/cli.md"
	manPages = "../../docs/man"
	// madeHere separates what is written by hand from what the commands say.
	madeHere = "<!-- From here on written by: go test ./cmd/tarry -run TestTheReference -update -->\n"
)

// documented is the tree as a user has it, whatever the environment.
func documented(t *testing.T) *cobra.Command {
	t.Setenv(addrEnv, "")
	root := newRoot()
	root.DisableAutoGenTag = true
	return root
}

// reference is the part of docs/cli.md that the commands say.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", c.code, c.meaning)
	}
	b.WriteString("\n## Flags of all commands that call a node\n\n```\n" + commonFlags().FlagUsages() + "```\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID {
				describe(&b, c)
			}
		}
	}
	return b.String()
}

// describe writes the section of a command, and those of the commands below it.
func describe(b *strings.Builder, c *cobra.Command) {
	if c.Runnable() && !c.DisableFlagsInUseLine {
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n```sh\n%s\n```\n", c.CommandPath(), page(c), unindented(c.Example))
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		client := c.Flags().Lookup("patience") != nil
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !client || commonFlags().Lookup(f.Name) == nil {
				flags.AddFlag(f)
			}
		})
		if usages := flags.FlagUsages(); usages != "" {
			b.WriteString("\n```\n" + usages + "```\n")
		}
	}
	for _, below := range c.Commands() {
		describe(b, below)
	}
}

// page is what a command says of itself, with its use in front.
func page(c *cobra.Command) string {
	text := c.Long
	if text == "" {
		text = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	return "`" + c.UseLine() + "`\n\n```\n" + text + "\n```"
}

func unindented(example string) string {
	lines := strings.Split(example, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func TestTheReferenceSaysWhatTheCommandsSay(t *testing.T) {
	text, err := os.ReadFile(cliPage)
	require.NoError(t, err)
	byHand, made, found := strings.Cut(string(text), madeHere)
	require.True(t, found, "%s has the line %q", cliPage, madeHere)
	want := reference(documented(t))
	if *update {
		require.NoError(t, os.WriteFile(cliPage, []byte(byHand+madeHere+want), 0o644))
		return
	}
	require.Equal(t, want, made, "write it anew with -update")
}

func TestTheReferencePagesForManSayWhatTheCommandsSay(t *testing.T) {
	folder := t.TempDir()
	if *update {
		require.NoError(t, os.RemoveAll(manPages))
		require.NoError(t, os.MkdirAll(manPages, 0o755))
		folder = manPages
	}
	date := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	require.NoError(t, doc.GenManTree(documented(t), &doc.GenManHeader{Section: "1", Date: &date, Source: "tarry", Manual: "Tarry"}, folder))
	want, err := filepath.Glob(filepath.Join(folder, "*.1"))
	require.NoError(t, err)
	have, err := filepath.Glob(filepath.Join(manPages, "*.1"))
	require.NoError(t, err)
	require.Greater(t, len(want), 40)
	require.Len(t, have, len(want), "write them anew with -update")
	for _, page := range want {
		made, err := os.ReadFile(page)
		require.NoError(t, err)
		kept, err := os.ReadFile(filepath.Join(manPages, filepath.Base(page)))
		require.NoError(t, err)
		require.Equal(t, string(made), string(kept), "%s: write it anew with -update", filepath.Base(page))
	}
}
