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

// A name that is gone would leave make test with less than it says.
func TestMakeTestNamesTestsThatExist(t *testing.T) {
	_, rest, found := strings.Cut(read(t, "Makefile"), "\nCORE = ")
	require.True(t, found)
	list, _, _ := strings.Cut(rest, "\n\n")
	files, err := filepath.Glob("integration/*_test.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, f := range files {
		source.WriteString(read(t, f))
	}
	names := strings.Split(strings.ReplaceAll(list, "$\\\n", ""), "|")
	require.Greater(t, len(names), 10)
	for _, name := range names {
		require.Contains(t, source.String(), "\nfunc "+name+"(t *testing.T) {")
	}
}

// go test says nothing of a test that is not there.
func TestDocsNameTestsThatExist(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	named := 0
	for _, doc := range docs {
		for _, command := range regexp.MustCompile(`go test ([^\x60|]*?)-run ('[^']+'|[^\s\x60]+)`).FindAllStringSubmatch(read(t, doc), -1) {
			var source strings.Builder
			for _, dir := range regexp.MustCompile(`\./[a-z/]+`).FindAllString(command[1], -1) {
				files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
				require.NoError(t, err)
				for _, f := range files {
					source.WriteString(read(t, f))
				}
			}
			for pattern := range strings.SplitSeq(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(command[2]), "|") {
				name, _, _ := strings.Cut(pattern, "/")
				if name == "xxx" || name == "^$" || source.Len() == 0 {
					continue // benchmarks alone, or the tests below several folders
				}
				if !regexp.MustCompile(`\nfunc \w*` + strings.TrimPrefix(name, "^")).MatchString(source.String()) {
					t.Errorf("%s: %s: there is no %s", doc, command[0], name)
				}
				named++
			}
		}
	}
	require.Greater(t, named, 100)
}

func TestTheArchitectureSaysWhyEachDependencyIsThere(t *testing.T) {
	text := read(t, "docs/architecture.md")
	for _, module := range []string{"go.mod", "chaos/go.mod", "integration/go.mod"} {
		required := regexp.MustCompile(`(?m)^(?:\t|require )(\S+) v\S+( // indirect)?`).FindAllStringSubmatch(read(t, module), -1)
		require.NotEmpty(t, required)
		for _, m := range required {
			if m[2] != "" || m[1] == "tarry" || strings.HasPrefix(m[1], "tarry/") {
				continue
			}
			name := regexp.QuoteMeta(strings.TrimPrefix(m[1], "github.com/"))
			row := regexp.MustCompile(`(?m)^\| ([^|]*, )?` + name + `(,[^|]*)? \|`)
			require.True(t, row.MatchString(text), "the table of dependencies has no row for %s of %s", m[1], module)
		}
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
