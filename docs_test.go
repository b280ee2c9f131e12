package tarry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, file string) string {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

// A target that is the name of a folder, as chaos is, does nothing unless it is
// declared phony.
func TestEveryTargetOfTheMakefileIsPhony(t *testing.T) {
	text := read(t, "Makefile")
	phony := regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindStringSubmatch(text)
	require.Len(t, phony, 2)
	targets := regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, targets)
	for _, target := range targets {
		require.Contains(t, strings.Fields(phony[1]), target[1])
	}
}

func TestTheArchitectureSaysWhyEachDependencyIsThere(t *testing.T) {
	text := read(t, "docs/architecture.md")
	direct, _, _ := strings.Cut(read(t, "go.mod"), "\n)")
	modules := regexp.MustCompile(`(?m)^\t(\S+) v`).FindAllStringSubmatch(direct, -1)
	require.NotEmpty(t, modules)
	for _, m := range modules {
		name := regexp.QuoteMeta(strings.TrimPrefix(m[1], "github.com/"))
		row := regexp.MustCompile(`(?m)^\| ([^|]*, )?` + name + `(,[^|]*)? \|`)
		require.True(t, row.MatchString(text), "the table of dependencies has no row for %s", m[1])
	}
}

// anchor is the name that GitHub gives a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// deadLink says what is wrong with a link of a page to a file of the project.
func deadLink(page, link string) error {
	file, part, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	if part == "" {
		return nil
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(data), -1) {
		if anchor(m[1]) == part {
			return nil
		}
	}
	return fmt.Errorf("%s has no heading #%s", target, part)
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range append(pages, "README.md", "CHANGELOG.md") {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			require.NoError(t, deadLink(page, m[1]), "%s links to %s", page, m[1])
		}
	}
	require.Error(t, deadLink("README.md", "docs/nothing.md"))
	require.Error(t, deadLink("README.md", "docs/limits.md#nothing"))
}
