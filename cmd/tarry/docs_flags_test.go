package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

// otherFlags are flags in the docs that belong to other programs: chaos, docker, artisan, pip.
var otherFlags = map[string]bool{"nodes": true, "seed": true, "mutant": true, "ulimit": true, "tries": true, "no-build-isolation": true}

// commandOf returns the command that words name, which may have flags in front; nil: they are
// no command.
func commandOf(root *cobra.Command, words []string) *cobra.Command {
	c := root
	for i := 0; i < len(words); i++ {
		if strings.HasPrefix(words[i], "-") && c == root {
			i++ // its value
			continue
		}
		at := slices.IndexFunc(c.Commands(), func(below *cobra.Command) bool { return below.Name() == words[i] })
		if at < 0 {
			break
		}
		c = c.Commands()[at]
	}
	if c == root {
		return nil
	}
	return c
}

// A flag that the docs name is one of tarry; in a command, one of that command.
func TestFlagsInTheDocsExist(t *testing.T) {
	flags := map[string]bool{"help": true, "version": true}
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		for _, below := range c.Commands() {
			collect(below)
		}
	}
	root := documented(t)
	collect(root)
	cli.CommonFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })

	pages := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guides/*.md", "../../client/*.md", "../../clients/*.md", "../../clients/*/*.md", "../../deploy/prometheus/*.yml",
		"../../api/ui/templates/*.html", "../../api/ui/*.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	alone := regexp.MustCompile("`--([a-z][a-z0-9-]*)[^`]*`")
	inCommand := regexp.MustCompile(`(?m)(?:^|[ (/">` + "`" + `])tarry ([^|)#<\n` + "`" + `]*)`)
	atBegin := regexp.MustCompile("(?m)(?:^|`)(?:\\./)?tarry ([a-z][a-z-]*)")
	named := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		check := func(flag, where string) {
			if !flags[flag] && !otherFlags[flag] {
				t.Errorf("%s: %s: there is no flag --%s", page, strings.TrimSpace(where), flag)
			}
			named++
		}
		for _, m := range alone.FindAllStringSubmatch(string(text), -1) {
			check(m[1], m[0])
		}
		for _, m := range atBegin.FindAllStringSubmatch(string(text), -1) {
			if commandOf(root, m[1:]) == nil && m[1] != "help" && m[1] != "completion" { // cobra's own
				t.Errorf("%s: %s: there is no such command", page, m[0])
			}
		}
		for _, m := range inCommand.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			for part := range strings.SplitSeq(strings.NewReplacer(" && tarry ", "\n", "; tarry ", "\n").Replace(m[1]), "\n") {
				c := commandOf(root, strings.Fields(part))
				for _, f := range regexp.MustCompile(`(?:^| )--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(part, -1) {
					check(f[1], m[0])
					if c != nil && c.Flag(f[1]) == nil && cli.CommonFlags().Lookup(f[1]) == nil && f[1] != "help" {
						t.Errorf("%s: %s: %s has no flag --%s", page, strings.TrimSpace(m[0]), c.CommandPath(), f[1])
					}
				}
			}
		}
	}
	require.Greater(t, named, 150)
}
