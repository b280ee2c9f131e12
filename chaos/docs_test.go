package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarantees is the page that operators read.
const guarantees = "../docs/guarantees.md"

func TestEveryFaultOfTheMixIsInTheGuarantees(t *testing.T) {
	text, err := os.ReadFile(guarantees)
	require.NoError(t, err)
	var patterns []string
	for _, m := range regexp.MustCompile("`([a-z*-]+)`").FindAllStringSubmatch(string(text), -1) {
		patterns = append(patterns, m[1])
	}
	require.NotEmpty(t, patterns)
	for _, f := range catalogue() {
		if f.Weight > 0 {
			require.True(t, matches(t, patterns, f.Name), "the fault %s is not in docs/guarantees.md", f.Name)
		}
	}
}

func matches(t *testing.T, patterns []string, name string) bool {
	for _, p := range patterns {
		ok, err := filepath.Match(p, name)
		require.NoError(t, err)
		if ok {
			return true
		}
	}
	return false
}

// TestTheLinesOfTheGuaranteesNameTests: a line that reproduces a bug is worth
// nothing when its test has another name by now.
func TestTheLinesOfTheGuaranteesNameTests(t *testing.T) {
	text, err := os.ReadFile(guarantees)
	require.NoError(t, err)
	lines := regexp.MustCompile(`go test (\./[a-z/]+) -run '?([A-Za-z]+)(?:/([a-z_]+)/([a-z_]+))?`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(lines), 10)
	for _, line := range lines {
		if line[2] == "xxx" {
			continue // no test: the line runs benchmarks
		}
		if line[3] != "" { // a story in a script
			script, err := os.ReadFile(filepath.Join("..", line[1], "testdata/scripts", line[3]+".txt"))
			require.NoError(t, err, line[0])
			require.Contains(t, string(script), "\nsubtest "+line[4]+"\n", line[0])
		}
		files, err := filepath.Glob(filepath.Join("..", line[1], "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, f := range files {
			source, err := os.ReadFile(f)
			require.NoError(t, err)
			found = found || regexp.MustCompile(`(?m)^func (Test|Fuzz)\w*`+strings.TrimPrefix(strings.TrimPrefix(line[2], "Test"), "Fuzz")).Match(source)
		}
		require.True(t, found, line[0])
	}
}
