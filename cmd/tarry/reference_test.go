package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

var (
	update = flag.Bool("update", false, "write docs/cli.md anew")
	manDir = flag.String("man", "", "keep the man pages in this folder; SOURCE_DATE_EPOCH is their date")
)

const (
	cliPage = "../../docs/cli.md"
	// madeHere separates what is written by hand from what the commands say.
	madeHere = "<!-- From here on written by: go test ./cmd/tarry -run TestTheReference -update -->\n"
)

// documented is the tree as a user has it, whatever the environment.
func documented(t *testing.T) *cobra.Command {
	t.Setenv(cli.AddrEnv, "")
	root := newRoot()
	root.DisableAutoGenTag = true
	return root
}

// reference is the part of docs/cli.md that the commands say.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, c := range cli.ExitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Code, c.Meaning)
	}
	b.WriteString("\n## Flags of all commands that call a node\n\n```\n" + cli.CommonFlags().FlagUsages() + "```\n")
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
			if !client || cli.CommonFlags().Lookup(f.Name) == nil {
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

// TestManPages makes them; a release keeps what -man names.
func TestManPages(t *testing.T) {
	folder := *manDir
	if folder == "" {
		folder = t.TempDir()
	}
	require.NoError(t, doc.GenManTree(documented(t), &doc.GenManHeader{Section: "1", Source: "tarry", Manual: "Tarry"}, folder))
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 40)
	add, err := os.ReadFile(filepath.Join(folder, "tarry-add.1"))
	require.NoError(t, err)
	require.Contains(t, string(add), `\fB--topic\fP`)
}
