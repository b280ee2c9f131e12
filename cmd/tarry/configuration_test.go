package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/server"
)

const configurationPage = "../../docs/configuration.md"

// Between these lines docs/configuration.md is made from the flags.
const (
	flagsBegin = "<!-- flags: written by go test ./cmd/tarry -run TestTheReference -update -->\n"
	flagsEnd   = "<!-- end of flags -->\n"
)

func defaultOf(f *flag.Flag, s server.Setting) string {
	switch {
	case s.ByDefault != "":
		return s.ByDefault
	case f.DefValue == "":
		return "none"
	}
	return "`" + f.DefValue + "`"
}

func valuesText(s server.Setting) string {
	words := s.Words
	if _, ok := s.To.(*bool); ok {
		words = []string{"true", "false"}
	}
	if s.Values != "" || words == nil {
		return s.Values
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return server.OneOf(quoted)
}

func envOf(name string) string {
	return "TARRY_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// helpOf is the help of a flag as Markdown, without what the page shows beside it.
func helpOf(f *flag.Flag) string {
	_, help := flag.UnquoteUsage(f)
	help = regexp.MustCompile(`; default: .*$|; off by default$`).ReplaceAllString(help, "")
	help = regexp.MustCompile(` \(docs/([a-z]+\.md)\)`).ReplaceAllString(help, " ([$1]($1))")
	help = regexp.MustCompile(`--[a-z-]+`).ReplaceAllString(help, "`$0`")
	help = strings.ReplaceAll(help, "*", `\*`) + "."
	if strings.HasPrefix(help, "host:port") {
		return "The `host:port`" + strings.TrimPrefix(help, "host:port")
	}
	return strings.ToUpper(help[:1]) + help[1:]
}

// flagsReference is a table of all flags, and a section for each.
func flagsReference(c *server.Config) string {
	fs := c.Flags()
	var table, sections strings.Builder
	table.WriteString("| flag | environment | default |\n|---|---|---|\n")
	for _, g := range c.SettingGroups() {
		fmt.Fprintf(&sections, "\n## %s\n", g.Title)
		for _, s := range g.Flags {
			f := fs.Lookup(s.Name)
			fmt.Fprintf(&table, "| [`--%s`](#--%s) | `%s` | %s |\n", s.Name, s.Name, envOf(s.Name), defaultOf(f, s))
			key := "`" + s.Name + ":`"
			if s.Name == "config" {
				key = "none"
			}
			fmt.Fprintf(&sections, "\n### `--%s`\n\n%s\n\n| environment | key in the file | values | default |\n|---|---|---|---|\n| `%s` | %s | %s | %s |\n\nWhy this default: %s\n",
				s.Name, helpOf(f), envOf(s.Name), key, valuesText(s), defaultOf(f, s), s.Why)
		}
	}
	return table.String() + sections.String()
}

func TestTheReferenceOfFlagsIsWrittenFromTheSource(t *testing.T) {
	c := &server.Config{}
	for _, s := range c.AllSettings() {
		require.NotEmpty(t, valuesText(s), s.Name)
		require.NotEmpty(t, s.Why, s.Name)
	}
	text, err := os.ReadFile(configurationPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), flagsBegin)
	require.True(t, found, "%s has the line %q", configurationPage, flagsBegin)
	made, after, found := strings.Cut(rest, flagsEnd)
	require.True(t, found, "%s has the line %q", configurationPage, flagsEnd)
	want := flagsReference(c)
	if *update {
		require.NoError(t, os.WriteFile(configurationPage, []byte(before+flagsBegin+want+flagsEnd+after), 0o644))
		return
	}
	require.Equal(t, want, made, "write it anew with -update")
}
