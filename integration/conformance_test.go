package integration

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// language is a client and its driver; clients/conformance/README.md says what a
// driver does.
type language struct {
	name     string
	packages string   // of Debian, for who lacks the interpreter
	present  []string // fails without the interpreter
	driver   []string // the command, from this directory; nil: Go's, which is built
}

var languages = []language{
	{"Go", "golang", []string{"go", "version"}, nil},
	{"Node", "nodejs", []string{"node", "--version"}, []string{"node", "../clients/node/conformance/driver.mjs"}},
	{"PHP", "php-cli php-curl", []string{"php", "-r", "exit(extension_loaded('curl') ? 0 : 1);"}, []string{"php", "../clients/php/conformance/driver.php"}},
	{"Python", "python3", []string{"python3", "--version"}, []string{"python3", "../clients/python/conformance/driver.py"}},
	{"Python asyncio", "python3", []string{"python3", "--version"}, []string{"python3", "../clients/python/conformance/driver.py", "--asyncio"}},
}

// TestClientConformance holds the client of each language to the same cases, against
// three real nodes.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	cases := loadCases(t, filepath.Join("..", "clients", "conformance", "cases.yaml"))
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.require(t)
			h := newHarness(t, startCluster(t, 3, "--push-allow", "hooks.example.com"))
			h.run(t, l.command(t), 0, cases, func(*caseRun) {})
		})
	}
}

// require skips a test without the interpreter, or fails it in CI.
func (l *language) require(t *testing.T) {
	out, err := exec.Command(l.present[0], l.present[1:]...).CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("this machine has no %s (apt-get install %s): %v %.200s", l.name, l.packages, err, out)
	}
	t.Skipf("SKIPPED: the client for %s is NOT TESTED: this machine has no interpreter (apt-get install %s): %v %.200s", l.name, l.packages, err, out)
}

// command is what starts the driver.
func (l *language) command(t *testing.T) []string {
	if l.driver != nil {
		return l.driver
	}
	driver := filepath.Join(t.TempDir(), "driver")
	out, err := exec.Command("go", "build", "-o", driver, "tarry/client/conformance").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return []string{driver}
}

// conformanceHarness is a cluster and the proxies before it.
type conformanceHarness struct {
	cluster   *cluster
	front     *front
	secure    map[string]*front
	authority *authority
}

func newHarness(t *testing.T, c *cluster) *conformanceHarness {
	a := newAuthority(t)
	return &conformanceHarness{c, newFront(t, c, nil), map[string]*front{"tls": newFront(t, c, a.server(false)), "mutual": newFront(t, c, a.server(true))}, a}
}

// run runs the cases one after the other on the cluster, which is whole at the start of each.
// Their names are numbered from first. prepare may add variables to a case.
func (h *conformanceHarness) run(t *testing.T, driver []string, first int, cases []conformanceCase, prepare func(*caseRun)) {
	for i, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			r := newCaseRun(t, h.cluster, h.front, driver, first+i)
			r.secure = h.secure
			maps.Copy(r.vars, h.authority.files)
			prepare(r)
			r.open(one.open)
			for _, s := range one.steps {
				r.step(s)
			}
			r.end()
		})
		h.front.restore(t)
	}
}
