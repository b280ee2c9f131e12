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

// defaultWords are the defaults that the flag itself does not show: it depends, or is a
// number that is hard to read.
var defaultWords = map[string]string{
	"advertise-host":   "the host of `--cluster-addr`, or the machine's name if that is 0.0.0.0",
	"bootstrap-expect": "1 without `--join`, 0 with it",
	"log-store":        "`raft-wal` for a new data directory",
	"cache-bytes":      "`67108864` (64 MiB)",
	"max-body-bytes":   "`1048576` (1 MiB)",
	"log-level":        "`info`",
	"otlp-endpoint":    "that of `OTEL_EXPORTER_OTLP_ENDPOINT`, or none",
	"trace-sample":     "as `OTEL_TRACES_SAMPLER` says, or all",
}

func defaultOf(f *flag.Flag) string {
	words := defaultWords[f.Name]
	switch {
	case words != "":
		return words
	case f.DefValue == "":
		return "none"
	}
	return "`" + f.DefValue + "`"
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
func flagsReference(fs *flag.FlagSet) string {
	var table, sections strings.Builder
	table.WriteString("| flag | environment | default |\n|---|---|---|\n")
	for _, g := range flagGroups {
		fmt.Fprintf(&sections, "\n## %s\n", g.title)
		for _, r := range g.flags {
			f := fs.Lookup(r.flag)
			fmt.Fprintf(&table, "| [`--%s`](#--%s) | `%s` | %s |\n", r.flag, r.flag, envOf(r.flag), defaultOf(f))
			key := "`" + r.flag + ":`"
			if r.flag == "config" {
				key = "none"
			}
			fmt.Fprintf(&sections, "\n### `--%s`\n\n%s\n\n| environment | key in the file | values | default |\n|---|---|---|---|\n| `%s` | %s | %s | %s |\n\nWhy this default: %s\n",
				r.flag, helpOf(f), envOf(r.flag), key, r.values, defaultOf(f), r.why)
		}
	}
	return table.String() + sections.String()
}

func TestTheReferenceOfFlagsIsWrittenFromTheSource(t *testing.T) {
	fs := (&serverConfig{}).flags()
	listed := map[string]bool{}
	for _, g := range flagGroups {
		for _, r := range g.flags {
			require.NotNil(t, fs.Lookup(r.flag), "config_reasons.go has --%s, which is no flag", r.flag)
			require.False(t, listed[r.flag], "config_reasons.go has --%s twice", r.flag)
			require.NotEmpty(t, r.values, r.flag)
			require.NotEmpty(t, r.why, r.flag)
			listed[r.flag] = true
		}
	}
	fs.VisitAll(func(f *flag.Flag) {
		require.True(t, listed[f.Name], "config_reasons.go has no row for --%s", f.Name)
	})

	text, err := os.ReadFile(configurationPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), flagsBegin)
	require.True(t, found, "%s has the line %q", configurationPage, flagsBegin)
	made, after, found := strings.Cut(rest, flagsEnd)
	require.True(t, found, "%s has the line %q", configurationPage, flagsEnd)
	want := flagsReference(fs)
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
