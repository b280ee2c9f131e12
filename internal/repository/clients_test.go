package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// clientSources are the columns of the table in clients/README.md: where the calls of a client
// are declared, and which of the declared names are no calls.
var clientSources = []struct {
	language string
	files    []string
	declared string
	others   []string
}{
	{"Go", []string{"client/*.go"}, `(?m)^func \(c (?:\*Client|(\w+))\) ([A-Z]\w*)\(ctx `, nil},
	{"Python", []string{"clients/python/src/tarry/client.py"}, `(?m)^    def ([a-z]\w*)\(`, []string{"close", "within"}},
	{"PHP", []string{"clients/php/src/Client.php", "clients/php/src/*Calls.php"}, `(?m)^    public function ([a-z]\w*)\(`, []string{"withDeadline", "withStop"}},
	{"Node", []string{"clients/node/src/client.js"}, `(?m)^  (?:async )?([a-z]\w*)\(.*\{$`, []string{"constructor"}},
}

// noCalls are routes that no client calls: they are for browsers, probes and what collects metrics.
var noCalls = []string{"POST /", "GET /v1/openapi.json", "GET /livez", "GET /readyz", "GET /metrics"}

// Nobody should have to read four clients to see which can do something.
func TestTheTableOfClientsHasAllCalls(t *testing.T) {
	_, table, found := strings.Cut(read(t, "clients/README.md"), "\n|---|---|---|---|---|\n")
	require.True(t, found)
	columns := make([][]string, 1+len(clientSources))
	quoted := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		require.Len(t, cells, len(columns), row)
		calls, _, _ := strings.Cut(cells[0], " with ")
		cells[0] = calls
		for i, cell := range cells {
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				columns[i] = append(columns[i], m[1])
			}
		}
	}

	var routes []string
	for _, m := range regexp.MustCompile("(?m)^### `([^`]+)`$").FindAllStringSubmatch(read(t, "docs/http-reference.md"), -1) {
		if !slices.Contains(noCalls, m[1]) {
			routes = append(routes, m[1])
		}
	}
	require.ElementsMatch(t, routes, unique(columns[0]), "HTTP")
	for i, c := range clientSources {
		var files, declared []string
		for _, pattern := range c.files {
			found, err := filepath.Glob(pattern)
			require.NoError(t, err)
			files = append(files, found...)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(c.declared).FindAllStringSubmatch(read(t, file), -1) {
				if call := strings.TrimPrefix(strings.Join(m[1:], "."), "."); !slices.Contains(c.others, call) {
					declared = append(declared, call)
				}
			}
		}
		require.ElementsMatch(t, unique(declared), unique(columns[i+1]), c.language)
	}
}

// Type checkers of Python and TypeScript know all settings of a topic, and no others.
func TestClientsHaveTypesOfAllSettings(t *testing.T) {
	var names []string
	for _, s := range job.Settings {
		names = append(names, s.Name)
	}
	member := regexp.MustCompile(`(?m)^ +(\w+)\??:`)
	for _, c := range []struct{ file, begin, end string }{
		{"clients/python/src/tarry/_settings.py", "class Settings(TypedDict, total=False):\n", "\n\n\n"},
		{"clients/python/src/tarry/client.py", "def change_settings(\n        self,\n        topic: str,\n", ") ->"},
	} {
		_, block, found := strings.Cut(read(t, c.file), c.begin)
		require.True(t, found, c.file)
		block, _, _ = strings.Cut(block, c.end)
		var has []string
		for _, m := range member.FindAllStringSubmatch(block, -1) {
			has = append(has, regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(m[1], func(c string) string { return "_" + strings.ToLower(c) }))
		}
		require.ElementsMatch(t, names, has, c.file)
	}
}

func unique(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// Pebble, Raft, a replaced module and the newest Go are the server's.
func TestAUserOfTheClientGetsNothingOfTheServer(t *testing.T) {
	client, err := filepath.Abs("client")
	require.NoError(t, err)
	dir := t.TempDir()
	mod := "module example\n\ngo 1.26.0\n\nrequire tarry/client v0.0.0\n\nreplace tarry/client => " + client + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))
	program := "package main\n\nimport \"tarry/client\"\n\nfunc main() { _, _ = client.New(nil) }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	command := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOSUMDB=off", "GOTOOLCHAIN=local")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	command("build", "-o", filepath.Join(dir, "program"), ".")
	used := strings.Fields(command("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	require.ElementsMatch(t, []string{"example", "tarry/client", "github.com/go-json-experiment/json"}, unique(used))
	require.NotRegexp(t, `(?m)tarry@|pebble|raft|metrics`, command("mod", "graph"))
}
