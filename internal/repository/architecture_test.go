package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport lists, for each package, the packages that its code (not its tests) may import,
// beside those below it. A directory that is not listed belongs to the nearest listed one
// above it. Everything else is forbidden, so a new package starts with its row here. A row must
// not allow an import that no code has. If a rule stands in the way, change it, and say why.
var mayImport = map[string][]string{
	"job":       {},
	"timer":     {},
	"dispatch":  {"job"},
	"auth":      {"job"},
	"fsm":       {"job", "auth"}, // and what is below it
	"fsm/store": {"internal/durable"},

	// What is on disk knows no operation, no transaction and no machine.
	"fsm/internal/record": {"job", "auth", "fsm/configlog"},
	"fsm/internal/window": {"fsm/internal/record"},
	"fsm/view":            {"job", "auth", "fsm/internal/record"},
	"fsm/check":           {"job", "fsm/configlog", "fsm/internal/record", "fsm/view"},
	"fsm/configlog":       {}, // rules: an explorer drives them

	"schedule": {"job"},
	"api":      {"job", "auth", "internal/invitation", "cluster/report", "schedule", "internal/rates", "internal/addrlimit", "internal/certs", "internal/replay", "internal/secretkeys", "internal/sleep", "internal/tokenbucket"},
	// Every call with its types; what is made of that.
	"api/wire":    {"job", "auth", "api/access"},
	"api/openapi": {"job", "api/wire"},
	// HTTP that knows no call.
	"api/httpx": {"job", "api/access", "api/wire", "internal/addrlimit"},
	// A client of the API of its own node, in the same process. By auth it reads the rules that the
	// API says a person has.
	"api/ui": {"job", "client", "auth"},
	// The queue of the borders' tests is the real state machine.
	"api/apitest": {"job", "auth", "cluster/report", "fsm", "schedule", "internal/rates"},
	"push":        {"job", "auth", "cluster/report", "internal/hook", "internal/secretkeys", "internal/sleep"},
	// A module of its own: it knows nothing of the product but its HTTP API.
	"client":          {},
	"examples/unpaid": {"client"},
	// A module of its own that builds the rest.
	"deploy/release":             {},
	"cluster":                    {"job", "auth", "internal/invitation", "timer", "dispatch", "fsm", "schedule", "internal/rates", "internal/hook", "internal/s3", "internal/sleep", "internal/tokenbucket"},
	"bench":                      {"internal/freeport", "internal/sleep"},
	"bench/peers":                {"bench", "internal/freeport", "internal/sleep"},
	"cmd/tarry":                  {}, // the tree of commands, which are below it
	"cmd/tarry/internal/cli":     {"client", "cluster", "internal/s3", "job"},
	"cmd/tarry/internal/server":  {"api", "auth", "client", "cluster", "cmd/tarry/internal/cli", "cmd/tarry/internal/logtail", "cmd/tarry/internal/tracing", "internal/certs", "internal/s3", "internal/secretkeys", "internal/sleep", "job", "push", "schedule"},
	"cmd/tarry/internal/archive": {"api", "client", "cluster", "cmd/tarry/internal/cli", "cmd/tarry/internal/server", "internal/durable", "internal/s3", "job"},
	"cmd/tarry/internal/jobs":    {"client", "cmd/tarry/internal/archive", "cmd/tarry/internal/cli", "internal/sleep", "job"},
	"cmd/tarry/internal/ops":     {"api", "bench", "client", "cluster", "cmd/tarry/internal/archive", "cmd/tarry/internal/cli", "cmd/tarry/internal/server", "internal/certs", "internal/secretkeys", "internal/sleep", "job"},
	"cmd/tarry/internal/clitest": {"api", "api/apitest", "auth", "cmd/tarry/internal/cli", "internal/freeport"}, // of tests only
	// It wraps the queue that api and push use.
	"cmd/tarry/internal/tracing": {"job", "api", "push"},
	"cmd/tarry/internal/logtail": {},

	// The judge and the load share nothing with what they judge. Faults touch
	// nodes from outside: processes, files, network.
	"chaos":       {"bench/localcluster", "internal/sleep"},
	"integration": {},
	"chaos/disk":  {}, // a file system knows nothing of queues

	"internal/addrlimit":   {},
	"internal/certs":       {},
	"internal/invitation":  {"job", "internal/keyfile"},
	"internal/rates":       {"job"},
	"internal/golden":      {},
	"internal/keyfile":     {},
	"internal/secretkeys":  {"internal/keyfile"},
	"internal/s3":          {"internal/keyfile"},
	"internal/durable":     {},
	"internal/freeport":    {},
	"internal/smalldisk":   {}, // of tests only: it mounts
	"internal/replay":      {},
	"internal/sleep":       {},
	"internal/testseed":    {}, // of tests only
	"internal/tokenbucket": {},

	// Empty functions, unless a binary is built for the fault harness.
	"internal/hook": {},

	// What operators are told: messages, and nothing else.
	"cluster/report": {"job"},

	// Parts of a node that know less than the node does.
	"cluster/logstore":     {"internal/durable", "internal/hook"},
	"cluster/transport":    {"internal/addrlimit", "cluster/nodetls", "cluster/raftconfig", "cluster/report"},
	"cluster/nodetls":      {"cluster/report", "internal/certs", "internal/hook", "internal/replay"},
	"cluster/membership":   {"job", "internal/invitation", "cluster/leaderrpc", "cluster/ackguard", "cluster/clockguard", "cluster/diskpolicy", "cluster/transport", "cluster/raftconfig", "cluster/report", "internal/addrlimit", "internal/hook", "internal/sleep"},
	"cluster/clockguard":   {"job", "cluster/raftconfig", "cluster/report", "internal/sleep"},
	"cluster/diskpolicy":   {"cluster/raftconfig", "cluster/report"},
	"cluster/ackguard":     {"cluster/transport", "cluster/raftconfig", "cluster/raftwire"},
	"cluster/raftwire":     {},
	"cluster/alarm":        {},
	"cluster/raftconfig":   {},
	"cluster/leaderrpc":    {"job", "cluster/framerpc", "internal/sleep"},
	"cluster/framerpc":     {},
	"cluster/noderpc":      {"job", "cluster/leaderrpc", "cluster/report"},
	"cluster/diskspace":    {},
	"cluster/events":       {"job"},
	"cluster/datadir":      {"job", "cluster/diskspace", "internal/durable"},
	"cluster/groupcommit":  {"job", "cluster/leaderrpc", "cluster/alarm"},
	"cluster/waits":        {"job", "dispatch", "cluster/noderpc", "cluster/leaderrpc", "cluster/framerpc", "internal/sleep"},
	"cluster/router":       {"job", "auth", "internal/rates"},
	"cluster/leaderprobe":  {"cluster/raftconfig", "internal/sleep"},
	"cluster/topicmetrics": {"job"},
	"cluster/statemachine": {"job", "fsm", "internal/hook"},
	"cluster/backup":       {}, // a format of files, whatever is in them
	// Files and a schedule; the node writes what is in them.
	"cluster/backupschedule": {"job", "internal/s3", "schedule", "cluster/backup", "cluster/diskspace", "internal/durable", "internal/sleep"},
	// Files and keys, no nodes.
	"cluster/membership/gossipkeys": {"internal/keyfile"},

	// The stores of a node that is stopped.
	"cluster/recovery": {"job", "fsm", "cluster/backup", "cluster/datadir", "cluster/diskspace", "cluster/logstore", "cluster/raftconfig", "cluster/statemachine"},
}

// fsmStandard is what the state machine may use of the standard library:
// nothing that reads a clock, the network, the environment or randomness. Its
// files come in through Pebble's vfs.
var fsmStandard = []string{
	"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/binary", "encoding/hex", "errors", "fmt",
	"hash/crc32", "io", "io/fs", "maps", "math", "math/bits", "regexp", "slices", "strconv",
	"strings", "sync", "sync/atomic", "unicode/utf8",
}

// fsmModules is what it may use of others.
var fsmModules = []string{"github.com/cockroachdb/pebble/v2", "google.golang.org/protobuf"}

// forbiddenNames say nothing about what a package is for.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "base"}

const (
	maxFunctionLines = 70
	maxFileLines     = 700
)

// source is one parsed file of the project.
type source struct {
	file string // path from the root, with slashes
	dir  string
	ast  *ast.File
	set  *token.FileSet
}

func (s *source) test() bool      { return strings.HasSuffix(s.file, "_test.go") }
func (s *source) generated() bool { return ast.IsGenerated(s.ast) }
func (s *source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.file, s.set.Position(n.Pos()).Line)
}

func (s *source) imports() []string {
	var list []string
	for _, i := range s.ast.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			list = append(list, name)
		}
	}
	return list
}

func sources(t *testing.T) []*source {
	stay(t)
	var list []*source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		s := &source{file: filepath.ToSlash(p), set: token.NewFileSet()}
		s.dir = path.Dir(s.file)
		s.ast, err = parser.ParseFile(s.set, p, nil, parser.ParseComments)
		list = append(list, s)
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// under reports whether dir is root or lies below it.
func under(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// listedAbove returns the row of the table that covers dir.
func listedAbove(dir string) (string, bool) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := mayImport[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

// allowance returns the narrowest of what a row allows that covers the package.
func allowance(owner, target string) (narrowest string, allowed bool) {
	for _, r := range mayImport[owner] {
		if under(target, r) && len(r) > len(narrowest) {
			narrowest = r
		}
	}
	return narrowest, narrowest != ""
}

// importFault says what is wrong with code in dir importing the package, or "".
func importFault(dir, imported string) string {
	target, ours := strings.CutPrefix(imported, "tarry/")
	if !ours || target == dir {
		return ""
	}
	owner, ok := listedAbove(dir)
	if !ok {
		return fmt.Sprintf("the directory %s has no row in mayImport", dir)
	}
	if _, allowed := allowance(owner, target); under(target, owner) || allowed {
		return ""
	}
	return fmt.Sprintf("%s may not import %s", owner, target)
}

func TestImportsGoDownwards(t *testing.T) {
	used := map[[2]string]bool{} // row, and what it allows
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, imported := range s.imports() {
			if fault := importFault(s.dir, imported); fault != "" {
				t.Errorf("%s: %s", s.file, fault)
			}
			owner, _ := listedAbove(s.dir)
			if target, ours := strings.CutPrefix(imported, "tarry/"); ours && !under(target, owner) {
				of, _ := allowance(owner, target)
				used[[2]string{owner, of}] = true
			}
		}
	}
	for owner, allowed := range mayImport {
		if _, err := os.Stat(owner); err != nil {
			t.Errorf("mayImport has a row of %s: %v", owner, err)
		}
		for _, of := range allowed {
			if !used[[2]string{owner, of}] {
				t.Errorf("%s may import %s, which nothing in it does", owner, of)
			}
		}
	}
}

// The page is the map of the packages, so it has all of them, and no others.
func TestTheArchitectureListsEachPackage(t *testing.T) {
	_, tree, _ := strings.Cut(read(t, "docs/architecture.md"), "\n## Packages\n\n```\n")
	tree, _, found := strings.Cut(tree, "\n```\n")
	require.True(t, found)
	var above []string
	listed := map[string]bool{}
	for line := range strings.Lines(tree) {
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		name, _, _ = strings.Cut(name, "/ ")
		above = append(above[:depth:depth], name)
		dir := path.Join(above...)
		listed[dir] = true
		require.DirExists(t, filepath.FromSlash(dir))
	}
	for _, s := range sources(t) {
		if !under(s.dir, "examples") && !under(s.dir, "client/examples") {
			require.True(t, listed[s.dir], "%s is not in the list", s.dir)
		}
	}
}

func TestImportRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		dir, imported string
		fine          bool
	}{
		{"api", "tarry/fsm", false},
		{"api", "tarry/cluster", false},
		{"fsm", "tarry/cluster", false},
		{"fsm/internal/record", "tarry/fsm", false},
		{"fsm/view", "tarry/fsm", false},
		{"fsm/view", "tarry/fsm/check", false},
		{"timer", "tarry/fsm", false},
		{"cluster", "tarry/api", false},
		{"cluster/transport", "tarry/cluster", false},
		{"chaos/history", "tarry/job", false},
		{"newpackage", "tarry/job", false},
		{"cluster", "tarry/fsm", true},
		{"cluster/membership", "tarry/cluster/membership/gossip", true},
		{"cluster/membership/gossip", "tarry/job", true},
		{"fsm", "tarry/job/jobpb", true},
		{"cmd/tarry/internal/cli", "tarry/api", false},
		{"cmd/tarry/internal/server", "tarry/api", true},
		{"api", "net/http", true},
	} {
		require.Equal(t, c.fine, importFault(c.dir, c.imported) == "", "%s imports %s", c.dir, c.imported)
	}
}

// fsmFault says why the state machine may not import a package, or "".
func fsmFault(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case first == "tarry":
		return "" // judged by mayImport
	case slices.Contains(fsmStandard, imported):
		return ""
	case slices.ContainsFunc(fsmModules, func(m string) bool { return under(imported, m) }):
		return ""
	}
	return "the state machine is pure and may not import " + imported
}

func TestStateMachineIsPure(t *testing.T) {
	seen, used := 0, map[string]bool{}
	for _, s := range sources(t) {
		if !under(s.dir, "fsm") && s.dir != "internal/durable" || s.test() {
			continue
		}
		seen++
		for _, imported := range s.imports() {
			if fault := fsmFault(imported); fault != "" {
				t.Errorf("%s: %s", s.file, fault)
			}
			for _, of := range slices.Concat(fsmStandard, fsmModules) {
				used[of] = used[of] || imported == of || slices.Contains(fsmModules, of) && under(imported, of)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: the state machine starts no goroutine", s.at(g))
			}
			return true
		})
	}
	require.NotZero(t, seen, "no file of fsm was read")
	for _, of := range slices.Concat(fsmStandard, fsmModules) {
		if !used[of] {
			t.Errorf("the state machine may import %s, and does not", of)
		}
	}
	for _, impure := range []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "os", "context", "runtime", "github.com/hashicorp/raft"} {
		require.NotEmpty(t, fsmFault(impure), "the rule must refuse %s", impure)
	}
}

// calls lists the places where a file calls function name of the package that it
// imports under pkg.
func (s *source) calls(pkg, name string) []string {
	var places []string
	ast.Inspect(s.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == name {
			if x, ok := f.X.(*ast.Ident); ok && x.Name == pkg {
				places = append(places, s.at(call))
			}
		}
		return true
	})
	return places
}

func TestSharedWordsReadNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if !under(s.dir, "job") || s.test() {
			continue
		}
		for _, f := range []string{"Now", "Since", "Until", "After", "NewTimer", "Sleep"} {
			for _, place := range s.calls("time", f) {
				t.Errorf("%s: package job reads no clock, but calls time.%s", place, f)
			}
		}
	}
}

// In a bubble of testing/synctest time is fake, and sleeping is how it passes.
func TestTestsSleepOnlyInFakeTime(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() || slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		for _, place := range s.calls("time", "Sleep") {
			t.Errorf("%s: a test polls with a deadline and does not sleep", place)
		}
	}
}

func TestFunctionsAndFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		// Tables of cases make test functions long without making them hard.
		limit := maxFunctionLines
		if s.test() {
			limit *= 3
		}
		if lines := s.set.Position(s.ast.FileEnd).Line; lines > maxFileLines {
			t.Errorf("%s has %d lines; the limit is %d", s.file, lines, maxFileLines)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; lines > limit {
				t.Errorf("%s: function %s has %d lines; the limit is %d", s.at(f), f.Name.Name, lines, limit)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	described := map[string]bool{}
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		described[s.dir] = described[s.dir] || s.ast.Doc != nil
		name := strings.TrimSuffix(s.ast.Name.Name, "_test")
		if slices.Contains(forbiddenNames, name) {
			t.Errorf("%s: the package name %s says nothing about what it is for", s.file, name)
		}
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}
