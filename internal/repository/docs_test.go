package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, file string) string {
	stay(t)
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

// Public CI runs what everybody can run, with the Go of the module and the whole history.
func TestTheWorkflowRunsEverything(t *testing.T) {
	var w struct {
		Jobs map[string]struct {
			Steps []struct {
				Run  string
				With map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yml")), &w))
	steps := w.Jobs["run"].Steps
	require.Len(t, steps, 3)
	require.Equal(t, "0", steps[0].With["fetch-depth"])
	require.Equal(t, "go.mod", steps[1].With["go-version-file"])
	require.Regexp(t, `PATH.* \.ci/run$`, steps[2].Run)
}

// go test says nothing of a test that is not there.
func TestDocsNameTestsThatExist(t *testing.T) {
	named := 0
	for _, doc := range pages(t) {
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

func TestTheDocsSayWhyEachDependencyIsThere(t *testing.T) {
	text := read(t, "docs/dependencies.md")
	for _, module := range []string{"go.mod", "client/go.mod", "chaos/go.mod", "integration/go.mod", "integration/s3server/go.mod", "bench/peers/go.mod", "deploy/release/go.mod"} {
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

// pages are all pages for people.
func pages(t *testing.T) (pages []string) {
	stay(t)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "client/*.md", "clients/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		pages = append(pages, found...)
	}
	return pages
}

// blocks are the blocks of code of a page, whose lines are neither headings nor links.
var blocks = regexp.MustCompile("(?ms)^```.*?^```$")

// deadLink says what is wrong with a link of a page to a file of the project.
func deadLink(page, link string) error {
	file, part, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(target); err != nil || part == "" {
		return err
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(blocks.ReplaceAllString(string(data), ""), -1) {
		if anchor(m[1]) == part {
			return nil
		}
	}
	return fmt.Errorf("%s has no heading #%s", target, part)
}

// A file that was moved is named by its new path.
func TestDocsNameFilesThatExist(t *testing.T) {
	stay(t)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var folders []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, e.Name())
		}
	}
	file, named := regexp.MustCompile("`((?:"+strings.Join(folders, "|")+")/[a-z0-9_./-]+)`"), 0
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" {
			continue // it tells of files as they were
		}
		for _, m := range file.FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
			named++
		}
	}
	require.Greater(t, named, 200)
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(blocks.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if err := deadLink(page, m[1]); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
	require.Error(t, deadLink("README.md", "docs/nothing.md"))
	require.Error(t, deadLink("README.md", "docs/limits.md#nothing"))
	require.Error(t, deadLink("README.md", "#three-nodes-http-on-ports-7300-7310-and-7320-of-127001"), "a comment in a block")
}

// Links reach only the first of two headings with one text, and a part that is there twice is changed once.
func TestAPageHasNoHeadingTwice(t *testing.T) {
	for _, page := range pages(t) {
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(blocks.ReplaceAllString(read(t, page), ""), -1) {
			require.False(t, seen[m[1]] && page != "CHANGELOG.md", "%s has the heading %q twice", page, m[1])
			seen[m[1]] = true
		}
	}
}

// A page that no other page leads to is not read.
func TestTheIndexOfDocsHasEveryPage(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		name, inDocs := strings.CutPrefix(page, "docs/")
		if inDocs && name != "README.md" {
			require.Contains(t, index, "]("+name+")")
		}
	}
}

// The tests of api hold both pages to the source; this one notices that only one of them was
// written anew.
func TestTheHTTPReferenceHasWhatOpenAPIHas(t *testing.T) {
	var d struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docs/openapi.yaml")), &d))
	page := read(t, "docs/http-reference.md")
	const remedy = "go test ./api -run OpenAPI -update"
	for path, methods := range d.Paths {
		for method := range methods {
			require.Contains(t, page, "\n### `"+strings.ToUpper(method)+" "+path+"`\n", remedy)
		}
	}
	require.Greater(t, len(d.Components.Schemas), 50)
	for name, schema := range d.Components.Schemas {
		_, section, found := strings.Cut(page, "\n### "+name+"\n")
		require.True(t, found, "%s: %s", name, remedy)
		section, _, _ = strings.Cut(section, "\n### ")
		for field := range schema.Properties {
			require.Contains(t, section, "`"+field+"`", "%s: %s", name, remedy)
		}
	}
}

// What a node logs as WARN or ERROR, and each error code, is a row of the page that a person
// searches at night.
func TestTroubleshootingHasAllCodesAndLogLines(t *testing.T) {
	page := read(t, "docs/troubleshooting.md")
	_, errors, found := strings.Cut(read(t, "docs/http-api.md"), "\n## Errors\n")
	require.True(t, found)
	errors, _, _ = strings.Cut(errors, "\n## ")
	codes := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(errors, -1)
	require.Greater(t, len(codes), 20)
	for _, code := range codes {
		require.Contains(t, page, "\n| `"+code[1]+"` |")
	}

	logged := map[string]bool{}
	line := regexp.MustCompile(`\.(?:Warn|Error)\("([^"]+)"`)
	for _, dir := range []string{"api", "cluster", "push", "cmd/tarry"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "cmd/tarry/internal/ops/bench.go" {
				return err
			}
			for _, m := range line.FindAllStringSubmatch(read(t, path), -1) {
				logged[strings.TrimSpace(m[1])] = true
				require.Contains(t, page, "\n| `"+strings.TrimSpace(m[1])+"` |", path)
			}
			return nil
		}))
	}
	_, table, found := strings.Cut(page, "\n## Log lines\n")
	require.True(t, found)
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		require.True(t, logged[m[1]], "no node logs %q", m[1])
	}
}

// Each reason that health or readiness gives is in the page, but for names and numbers.
func TestTroubleshootingHasAllReasons(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/troubleshooting.md"), "\n## Reasons\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	given := regexp.MustCompile(`(?:Reasons = append\(|list = append\(|return node \+|return fmt\.Sprintf\("%s|problems\[\w+(?:\.\w+)*\] = |trouble = fmt\.Sprintf\().*`)
	text := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	reasons := 0
	for _, file := range []string{"cluster/membership/health.go", "cluster/membership/reconcile.go", "cluster/operator.go", "cluster/diskpolicy/health.go", "cluster/clockguard/verdict.go", "cluster/backupschedule/scheduler.go", "cluster/membership/backups.go", "cluster/standby.go", "api/node.go", "cmd/tarry/internal/server/beanstalk.go"} {
		for _, line := range given.FindAllString(read(t, file), -1) {
			for _, m := range text.FindAllStringSubmatch(line, -1) {
				for part := range strings.SplitSeq(regexp.MustCompile(`%[-+.\d]*[a-z]`).ReplaceAllString(strings.ReplaceAll(m[1], `\"`, `"`), "\x00"), "\x00") {
					if part = strings.TrimSpace(part); strings.Contains(part, " ") {
						require.Contains(t, section, part, "%s: %s", file, m[1])
						reasons++
					}
				}
			}
		}
	}
	require.Greater(t, reasons, 25)
}
