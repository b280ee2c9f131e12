package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
)

// notRun is a command of a page that no passage runs, or a heading with all that is below it,
// and what makes up for that.
type notRun struct{ text, reason string }

// passage is what an operator does who follows a section of a page: bash, in which {} is the next
// command of the section's blocks. The rest is what the text between the blocks asks for, and a
// look at what came of it.
type passage struct{ heading, script string }

// pageSection is a section of a page, without those below it.
type pageSection struct {
	heading string
	lines   []string // commands of its blocks
	inline  []string // commands of tarry in its text
}

var (
	pageBlock    = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")
	inlineTarry  = regexp.MustCompile("`((?:sudo -u tarry )?tarry\\s[^`]+)`")
	continuation = regexp.MustCompile(`\\\n\s*`)
	placeholder  = regexp.MustCompile(`\b[A-Z]{2,}\b`)
)

// pageSections splits a page. A block of a language other than sh has nothing to run; one without
// a language could have, so there is none.
func pageSections(page string) (sections []pageSection, err error) {
	// A comment in a block looks like a heading.
	page = pageBlock.ReplaceAllStringFunc(page, func(block string) string { return strings.ReplaceAll(block, "\n#", "\n\x00") })
	for part := range strings.SplitSeq(page, "\n#") {
		heading, body, _ := strings.Cut(part, "\n")
		s := pageSection{heading: strings.TrimLeft(heading, "# ")}
		for _, block := range pageBlock.FindAllStringSubmatch(body, -1) {
			if block[1] == "" {
				return nil, fmt.Errorf("below %q is a block of no language; commands are sh:\n%s", s.heading, block[2])
			}
			if block[1] != "sh" {
				continue
			}
			for line := range strings.Lines(continuation.ReplaceAllString(block[2], "")) {
				if line = strings.TrimSpace(line); line != "" && line[0] != 0 && line[0] != '#' {
					s.lines = append(s.lines, line)
				}
			}
		}
		for _, m := range inlineTarry.FindAllStringSubmatch(pageBlock.ReplaceAllString(body, ""), -1) {
			s.inline = append(s.inline, strings.TrimPrefix(strings.Join(strings.Fields(m[1]), " "), "sudo -u tarry "))
		}
		sections = append(sections, s)
	}
	return sections, nil
}

// followPage puts the commands of a page into passages, and returns those in its text as well. It
// fails for a command that is neither in a passage nor among those that are not run, and for one
// of the latter that the page does not have.
func followPage(page string, passages []passage, skipped []notRun) (script string, inline []string, err error) {
	onPage := map[string]bool{}
	for _, s := range skipped {
		onPage[s.text] = false
	}
	skip := func(text string) bool {
		_, ok := onPage[text]
		if ok {
			onPage[text] = true
		}
		return ok
	}
	sections, err := pageSections(page)
	if err != nil {
		return "", nil, err
	}
	var out strings.Builder
	for _, s := range sections {
		if skip(s.heading) {
			continue
		}
		lines := withoutSkipped(s.lines, skip)
		inline = append(inline, withoutSkipped(s.inline, skip)...)
		parts := []string{""}
		if len(passages) > 0 && passages[0].heading == s.heading {
			parts = strings.Split(passages[0].script, "{}")
			passages = passages[1:]
			out.WriteString("echo \"== " + s.heading + "\"\n")
		}
		if len(lines) != len(parts)-1 {
			return "", nil, fmt.Errorf("below %q the page has the commands %q, and the test runs %d", s.heading, lines, len(parts)-1)
		}
		out.WriteString(parts[0])
		for i, line := range lines {
			out.WriteString(line + parts[i+1])
		}
	}
	if len(passages) > 0 {
		return "", nil, fmt.Errorf("the page has no section %q, or not in this order", passages[0].heading)
	}
	for text, found := range onPage {
		if !found {
			return "", nil, fmt.Errorf("%q, which is not run, is not on the page any more", text)
		}
	}
	return out.String(), inline, nil
}

// withoutSkipped returns the commands that are to be run. A comment behind a command is no part of it.
func withoutSkipped(lines []string, skip func(string) bool) (kept []string) {
	for _, line := range lines {
		command, _, _ := strings.Cut(line, " #")
		if !skip(strings.TrimSpace(command)) {
			kept = append(kept, line)
		}
	}
	return kept
}

// operatorsMachines makes directories of machines, which are addresses of the loopback network. on
// starts the node of one, stop sends it SIGTERM. tarry keeps a record of its commands.
const operatorsMachines = `set -eu -o pipefail
exec 2>&1 3>&1
here=$PWD
trap 'status=$?; cd "$here"; kill -9 $(cat */pid) 2>/dev/null; [ $status = 0 ] || tail -n 20 *.log' EXIT
trap 'exit 1' TERM
mkdir n1 n2 n3 n4 n5
tarry() {
  local code=0
  echo "\$ tarry $*" >&3
  command tarry "$@" || code=$?
  [ $code = 2 ] || echo "$*" >>"$here/record" # 2: not a command line of tarry
  return $code
}
await() {
  echo "... $1"
  until eval "$1"; do sleep 0.2; done >/dev/null 2>&1 3>&1
}
voters() { command tarry cluster members | grep -c ' yes  *yes ' || true; }
on() {
  (
    host=$1 command=${2//-id n1/-id $1}
    command=${command//-host n1/-host $host}
    cd "$host"
    unset TARRY_ADDR
    export TARRY_BEANSTALK_ADDR=off
    eval "${command/#tarry /exec tarry }"
  ) >>"$1.log" 2>&1 </dev/null 3>&- &
  echo $! >"$1/pid"
  disown # bash says nothing of its end
}
lose() {
  kill -9 "$(cat "$1/pid")"
  gone "$1"
  rm -r "$1/data"
}
gone() { while kill -0 "$(cat "$1/pid")" 2>/dev/null; do sleep 0.1; done; }
stop() { kill "$(cat "$1/pid")"; gone "$1"; }
`

// runPage runs the commands of a page on machines that are directories, after preparations, and
// requires that those in its text were among them.
func runPage(t *testing.T, page, preparations string, passages []passage, skipped []notRun) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	script, inline, err := followPage(string(text), passages, skipped)
	require.NoError(t, err, page)
	var pairs []string
	for _, name := range []string{":7300", ":7301", ":7302"} {
		port, err := freeport.Take()
		require.NoError(t, err)
		pairs = append(pairs, name, fmt.Sprint(":", port))
	}
	pairs = append(pairs, "0.0.0.0", "$host", "/var/lib/tarry", "data", "/etc/tarry", "etc")
	here := func(text string) string {
		text = regexp.MustCompile(`\bn([1-5])\b`).ReplaceAllString(text, "127.0.0.$1")
		return strings.NewReplacer(pairs...).Replace(text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := shellOfGuide(ctx, t, here(operatorsMachines+preparations+script))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that its trap ends the nodes
	cmd.Env = append(cmd.Env, "TARRY_ADDR="+here("n1:7300"))
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
	record, err := os.ReadFile(filepath.Join(cmd.Dir, "record"))
	require.NoError(t, err)
	for _, command := range inline {
		pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(here(command)), `\S+`)
		require.Regexp(t, "(?m)^"+strings.TrimPrefix(pattern, "tarry ")+"( |$)", string(record), "the text of the page has a command that the test does not run")
	}
}

var operationsNotRun = []notRun{
	{"Three nodes on one machine", "TestThreeNodesOnOneMachineAsOperationsSays runs it"},
	{"In containers", "TestNothingIsLostInContainers has the containers; the section was run by hand"},
	{"tarry cluster admission invited", "nodes need certificates for it; TestAnInvitationLetsInOneNode runs it"},
	{"tarry cluster invite --node n4 -o n4.invitation", "the same"},
	{"tarry check --data-dir DIR", "it reads the directory of a node that refuses to start; the tests of cluster/recovery do that"},
	{"tarry recover --as-only-voter --discard-damaged-end", "the same; cluster/recovery has its tests"},
}

var operationsPassages = []passage{
	{"Start a cluster", `
tarry server --check-config
START='{}'
JOIN=${START/ --bootstrap-expect 3/}
for host in n1 n2 n3; do on $host "$START"; done
await 'tarry cluster health'
`},
	{"Grow", `
on n4 "$JOIN"
await 'tarry cluster members | grep "^n4 .* no  *yes "'
tarry cluster join --addr n4:7300 n1:7302 n2:7302 # again changes nothing
`},
	{"Shrink, replace", `
tarry cluster replace n3 n4 --yes
await '! tarry ready --addr n3:7300'
tarry cluster leave --addr n4:7300 --yes
gone n4
tarry cluster removed | grep n4
stop n3
for host in n3 n4; do
  tarry cluster admit $host
  mv $host/data $host/away
  on $host "$JOIN"
done
await '[ "$(voters)" = 4 ]'
kill -9 "$(cat n4/pid)"
tarry cluster remove n4 --yes
[ "$(voters)" = 3 ]
`},
	{"Drain a node", `
{}
await 'tarry cluster members | grep "^n2 *follower, drained "'
await '{ tarry cluster health || true; } | grep drained'
{}
`},
	{"Stop", `
await 'tarry cluster health'
tarry cluster transfer-leadership n2
stop n2
tarry cluster members | grep '^n2 '
on n2 "$START"
tarry cluster health --wait 10m
`},
	{"Upgrade", `
tarry cluster upgrade --check
tarry cluster version
tarry cluster log-level debug --addr n2:7300
`},
	{"Pause a topic", `
{}
{}
{}
`},
	{"Health", `
tarry ready
tarry cluster health
tarry stats
tarry topics
tarry top --rounds 1
tarry cluster verify
`},
	{"When something is wrong and you do not know what", `
cd n1
host=n1
mkdir /etc/tarry
cat >/etc/tarry/tarry.yaml <<END
node-id: n1
advertise-host: n1
data-dir: /var/lib/tarry
http-addr: 0.0.0.0:7300
cluster-addr: 0.0.0.0:7301
gossip-addr: 0.0.0.0:7302
beanstalk-addr: off
join: [n1:7302, n2:7302, n3:7302]
END
{}
{}
{}
{}
tar -tzf tarry-debug.tar.gz
cd ..
`},
	{"Events", `
{}
{}
env {} >followed & follower=$!
tarry cluster transfer-leadership n1
await 'grep leader followed'
kill $follower
`},
	{"A lost majority", `
tarry add --topic mail --id kept --delay 1h 'hello ann'
tarry cluster verify # n1 has all
for host in n2 n3; do lose $host; done
stop n1
cd n1
{}
{} --yes
cd ..
on n1 "$START"
await 'tarry stats'
tarry stats
tarry cluster members
for host in n2 n3; do on $host "$JOIN"; done
await '[ "$(voters)" = 3 ]'
tarry get kept | grep 'hello ann'
`},
	{"When several nodes are left", `
for host in n1 n2 n3; do lose $host; done
rm -r n4/data
for host in n1 n2 n3 n4 n5; do on $host "${START/expect 3/expect 5}"; done
await 'tarry cluster health'
tarry add --topic mail --id kept --delay 1h 'hello bob'
tarry cluster verify
for host in n1 n2 n3; do lose $host; done
for host in n4 n5; do stop $host; done
INSPECT='{}'
( cd n4; eval "$INSPECT"; mv n4.json .. )
( cd n5; eval "${INSPECT/n4.json/n5.json}"; mv n5.json .. )
{}
RECOVER='{}'
for host in n4 n5; do
  cp peers.json $host
  ( cd $host; eval "$RECOVER --yes" )
done
for host in n4 n5; do on $host "${START/n3:7302/n4:7302}"; done
await 'tarry ready --addr n4:7300'
for host in n1 n2 n3; do on $host "${JOIN/n3:7302/n4:7302}"; done
await 'tarry ready'
tarry get kept | grep 'hello bob'
`},
	{"Clocks", `
{}
`},
	{"When the queue's clock is far ahead", `
tarry cluster clock
code=0
tarry cluster clock reset || code=$?
[ $code = 6 ] # it is not ahead
`},
}

func TestTheOperationsPageDoesWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it takes 40 s, most of them until nodes vote")
	}
	t.Parallel()
	runPage(t, "../docs/operations.md", "", operationsPassages, operationsNotRun)
}

const (
	underSystemd = "make test-packages installs the package under systemd"
	ofARelease   = "make release-check makes releases and compares them, which takes minutes"
)

var installNotRun = []notRun{
	{"make packages", "the tests of deploy/release make both packages"},
	{"apt-get install ./tarry_VERSION_amd64.deb", underSystemd},
	{"dnf install ./tarry_VERSION_amd64.rpm", "nothing here has dnf; make test-packages installs the package with rpm"},
	{"editor /etc/tarry/tarry.yaml", "sed edits the file of the package"},
	{"systemctl enable --now tarry", underSystemd},
	{"install -d -m 0750 -o root -g tarry /etc/tarry/tls", "the package makes the group"},
	{"install -m 0640 -o root -g tarry ca.crt node-n1.crt node-n1.key /etc/tarry/tls/", "the package makes the group"},
	{"tarry server", "the text names its flags"},
	{"tarry keyring", "a link to its page"},
	{"systemd", underSystemd},
	{"make release", ofARelease},
	{"make release-check", ofARelease},
	{"sha256sum --check SHA256SUMS", ofARelease},
	{"diff SHA256SUMS .bin/release/SHA256SUMS", ofARelease},
	{"Container", "it needs Docker and the image; TestNothingIsLostInContainers runs that"},
	{"systemctl restart tarry", underSystemd},
	{"apt-get remove tarry", underSystemd},
	{"apt-get purge tarry", underSystemd},
	{"rm -r /var/lib/tarry && userdel tarry", "it removes a user of the machine"},
}

var installPassages = []passage{
	{"Packages", `
for host in n1 n2 n3; do
  cd $host
  mkdir /etc/tarry
  sed -E -e 's/^# (node-id|advertise-host|join|bootstrap-expect|(http|cluster|gossip)-addr):/\1:/' \
    -e "s/^(node-id|advertise-host): [^ ]*/\1: $host/" -e 's/\.example//g' -e "s/[$]host/$host/" ../package.yaml >/etc/tarry/tarry.yaml
  cd ..
  on $host 'tarry server --config /etc/tarry/tarry.yaml'
done
await 'tarry cluster health'
tarry ready
{}
`},
	{"Upgrade", `
stop n2
( cd n2; tarry recover --data-dir /var/lib/tarry )
on n2 'tarry server --config /etc/tarry/tarry.yaml'
await 'tarry cluster health'
{}
`},
	{"Removal", `
tarry cluster leave --addr n3:7300 --yes
gone n3
`},
}

// The nodes have the file of the package.
func TestTheInstallPageDoesWhatItSays(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../deploy/package/tarry.yaml")
	require.NoError(t, err)
	runPage(t, "../docs/install.md", "cat >package.yaml <<'END'\n"+string(file)+"END\n", installPassages, installNotRun)
}

// A reason that names a test which is gone is none.
func TestWhatMakesUpForACommandThatIsNotRunExists(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		source.Write(data)
	}
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, s := range slices.Concat(operationsNotRun, installNotRun) {
		require.NotEmpty(t, s.reason, s.text)
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(s.reason, -1) {
			require.Contains(t, source.String(), "\nfunc "+name+"(t *testing.T) {")
		}
		for _, m := range regexp.MustCompile(`\bmake (test-\w+|release-\w+)`).FindAllStringSubmatch(s.reason, -1) {
			require.Contains(t, string(makefile), "\n"+m[1]+":")
		}
	}
}

func TestACommandOfAPageThatNobodyRunsIsNoticed(t *testing.T) {
	const page = "# Page\n\n## One\n\n```sh\n# a comment\ntarry stats   # why\nsystemctl stop tarry\n```\n\nand `tarry\ntopics`\n\n## Two\n\n   ```sh\n   tarry add \\\n     x\n   ```\n"
	one, two := passage{"One", "<{}\n>"}, passage{"Two", "<{} --yes>"}
	systemctl := notRun{"systemctl stop tarry", "here is none"}
	script, inline, err := followPage(page, []passage{one, two}, []notRun{systemctl})
	require.NoError(t, err)
	require.Equal(t, "echo \"== One\"\n<tarry stats   # why\n>echo \"== Two\"\n<tarry add x --yes>", script)
	require.Equal(t, []string{"tarry topics"}, inline)

	for says, of := range map[string]struct {
		page     string
		passages []passage
		skipped  []notRun
	}{
		`"systemctl stop tarry"`: {page, []passage{one, two}, nil},
		`"tarry add x"`:          {page, []passage{one}, []notRun{systemctl}},
		`no section "Three"`:     {page, []passage{one, two, {"Three", ""}}, []notRun{systemctl}},
		`not on the page`:        {page, []passage{one, two}, []notRun{systemctl, {"Three", "gone"}}},
		`no language`:            {page + "\n```\ntarry stats\n```\n", []passage{one, two}, []notRun{systemctl}},
	} {
		_, _, err := followPage(of.page, of.passages, of.skipped)
		require.ErrorContains(t, err, says)
	}
}
