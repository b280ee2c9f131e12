package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const configurationPage = "../../docs/configuration.md"

// Between these lines docs/configuration.md is made from the flags.
const (
	flagsBegin = "<!-- flags: written by go test ./cmd/tarry -run TestTheReference -update -->\n"
	flagsEnd   = "<!-- end of flags -->\n"
)

func defaultOf(f *flag.Flag, s setting) string {
	switch {
	case s.byDefault != "":
		return s.byDefault
	case f.DefValue == "":
		return "none"
	}
	return "`" + f.DefValue + "`"
}

func valuesText(s setting) string {
	words := s.words
	if _, ok := s.to.(*bool); ok {
		words = []string{"true", "false"}
	}
	if s.values != "" || words == nil {
		return s.values
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return oneOf(quoted)
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
func flagsReference(c *serverConfig) string {
	fs := c.flags()
	var table, sections strings.Builder
	table.WriteString("| flag | environment | default |\n|---|---|---|\n")
	for _, g := range c.settingGroups() {
		fmt.Fprintf(&sections, "\n## %s\n", g.title)
		for _, s := range g.flags {
			f := fs.Lookup(s.name)
			fmt.Fprintf(&table, "| [`--%s`](#--%s) | `%s` | %s |\n", s.name, s.name, envOf(s.name), defaultOf(f, s))
			key := "`" + s.name + ":`"
			if s.name == "config" {
				key = "none"
			}
			fmt.Fprintf(&sections, "\n### `--%s`\n\n%s\n\n| environment | key in the file | values | default |\n|---|---|---|---|\n| `%s` | %s | %s | %s |\n\nWhy this default: %s\n",
				s.name, helpOf(f), envOf(s.name), key, valuesText(s), defaultOf(f, s), s.why)
		}
	}
	return table.String() + sections.String()
}

func TestTheReferenceOfFlagsIsWrittenFromTheSource(t *testing.T) {
	c := &serverConfig{}
	for _, s := range c.allSettings() {
		require.NotEmpty(t, valuesText(s), s.name)
		require.NotEmpty(t, s.why, s.name)
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

// The file of settings on the page is one that a node takes.
func TestTheExampleOfAConfigurationFileIsValid(t *testing.T) {
	text, err := os.ReadFile(configurationPage)
	require.NoError(t, err)
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, m)
	file := t.TempDir() + "/tarry.yaml"
	require.NoError(t, os.WriteFile(file, m[1], 0o600))
	c, err := parseServerConfig([]string{"--config", file}, noEnv)
	require.NoError(t, err)
	require.Equal(t, "n1", c.AdvertiseHost)
	require.Len(t, c.seeds(), 3)
	require.True(t, c.Insecure)
}
