package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
	"tarry/internal/sleep"
)

// closingMachines makes directories of machines, which are addresses of the loopback network,
// with a node on each. ssh and sudo do what the guide needs of them. Blocks of the guide come as
// files, by their names on descriptor 3.
const closingMachines = `set -eu
trap 'kill -9 $(cat */pid) 2>/dev/null || true' EXIT
tarry() {
  case $1 in # an election may take long on a busy machine
  auth | token) command tarry "$@" --patience 60s ;;
  *) command tarry "$@" ;;
  esac
}
start() {
  ( cd "$1"; exec env -u TARRY_ADDR -u TARRY_TLS_CA -u TARRY_TOKEN_FILE tarry server --config /etc/tarry/tarry.yaml ) >>"$1/log" 2>&1 </dev/null 3<&- &
  echo $! >"$1/pid"
}
ssh() {
  case "$*" in
  *"sudo systemctl restart tarry") kill "$(cat "$1/pid")"; wait "$(cat "$1/pid")" || true; start "$1" ;;
  *) ( cd "$1"; shift; eval "$*" ) ;;
  esac
}
sudo() {
  [ "$1" != -u ] || shift 2
  "$@"
}
install() { mkdir -p "${@: -1}"; }
sleep() { command sleep 0.2; }
for host in n1 n2 n3; do
  mkdir -p $host
  ( cd $host; mkdir -p /etc/tarry; cat >/etc/tarry/tarry.yaml ) <<END
node-id: $host
advertise-host: $host
data-dir: /var/lib/tarry
http-addr: $host:7300
cluster-addr: $host:7301
gossip-addr: $host:7302
beanstalk-addr: $host:11300
insecure: true
join: [n1:7302, n2:7302, n3:7302]
bootstrap-expect: 3
END
  start $host
done
until TARRY_ADDR=n1:7300 command tarry cluster health >/dev/null 2>&1; do sleep; done
echo ====
while read -r -u 3 block; do
  . "./$block"
  echo ====
done
`

// closingShell is a shell in which one block of the guide runs after the other.
type closingShell struct {
	t      *testing.T
	dir    string
	here   func(text string) string // the guide's names and ports in the test
	blocks *os.File                 // names of files with what it shall run
	out    *bufio.Reader
	errs   *bytes.Buffer // read after its end
	end    func() error
}

func newClosingShell(t *testing.T) *closingShell {
	var pairs []string
	for _, name := range []string{":7300", ":7301", ":7302", ":11300"} {
		port, err := freeport.Take()
		require.NoError(t, err)
		pairs = append(pairs, name, fmt.Sprint(":", port))
	}
	pairs = append(pairs, "/etc/tarry", "etc", "/var/lib/tarry", "data")
	s := &closingShell{t: t, errs: &bytes.Buffer{}, here: func(text string) string {
		return strings.NewReplacer(pairs...).Replace(regexp.MustCompile(`\bn([1-3])\b`).ReplaceAllString(text, "127.0.0.$1"))
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	cmd := shellOfGuide(ctx, t, s.here(closingMachines))
	s.dir = cmd.Dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that its trap ends the nodes
	cmd.WaitDelay = patience
	blocks, names, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles, s.blocks, cmd.Stderr = []*os.File{blocks}, names, s.errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	s.out = bufio.NewReader(out)
	require.NoError(t, cmd.Start())
	blocks.Close()
	s.end = sync.OnceValue(func() error {
		names.Close()
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = s.end() // the test has failed, or has ended it
		if t.Failed() {
			for _, node := range []string{"n1", "n2", "n3"} {
				t.Logf("end of the log of %s:\n%s", node, tail(filepath.Join(s.dir, s.here(node), "log")))
			}
			t.Logf("errors of the commands:\n%s", s.errs)
		}
	})
	s.read()
	return s
}

// read returns what a block prints.
func (s *closingShell) read() string {
	s.t.Helper()
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(s.t, err, "the commands failed after printing %q", printed.String())
		if line == "====\n" {
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// run runs commands as they stand in the guide.
func (s *closingShell) run(commands string) string {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "block"), []byte(s.here(commands)), 0o600))
	_, err := s.blocks.WriteString("block\n")
	require.NoError(s.t, err)
	return s.read()
}

// closingClients add and work off jobs all the while, as clients that retry do: a call may take
// long, and none may fail.
type closingClients struct {
	t   *testing.T
	dir string // has clients.env, their settings

	settings                   []string // as they were at the last start: the guide writes the file in between
	stopProducers, stopWorkers context.CancelFunc
	producers, workers         sync.WaitGroup

	mu     sync.Mutex
	tried  int
	acked  []string
	failed []string
}

// call runs a command with the settings; SIGTERM ends it when ctx ends.
func (c *closingClients) call(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, binary, append(args, "--patience", patience.String())...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.settings...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() <= 0) {
		return nil // it ended well, or was stopped before it handled signals
	}
	if err != nil {
		err = fmt.Errorf("tarry %v: %w: %s", args, err, &out)
	}
	return err
}

func (c *closingClients) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, err.Error())
}

// start starts producers and workers with the settings of the moment. They have contexts of
// their own, so that all end before the nodes.
func (c *closingClients) start() {
	settings, err := os.ReadFile(filepath.Join(c.dir, "clients.env"))
	require.NoError(c.t, err)
	c.settings = strings.Fields(string(settings))
	producing, stopProducers := context.WithCancel(context.Background())
	working, stopWorkers := context.WithCancel(context.Background())
	c.stopProducers, c.stopWorkers = stopProducers, stopWorkers
	for range 2 {
		c.producers.Go(func() { c.produce(producing) })
		c.workers.Go(func() {
			if err := c.call(working, "work", "--topic", "orders", "--exec", "./order.sh"); err != nil {
				c.fail(err)
			}
		})
	}
}

// halt lets all of them end what they have begun.
func (c *closingClients) halt() {
	c.stopProducers()
	c.producers.Wait()
	c.stopWorkers()
	c.workers.Wait()
}

// restart is what the guide asks for when settings of clients have changed.
func (c *closingClients) restart() {
	c.halt()
	c.start()
}

func (c *closingClients) produce(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		c.tried++
		id := fmt.Sprint("order-", c.tried)
		c.mu.Unlock()
		// Not with ctx: a call that has begun is completed.
		if err := c.call(context.Background(), "add", "--topic", "orders", "--id", id, "--ttr", "10s", id); err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		c.acked = append(c.acked, id)
		c.mu.Unlock()
		sleep.For(ctx, 50*time.Millisecond)
	}
}

// worked returns the ids that the workers have had.
func (c *closingClients) worked() map[string]bool {
	data, err := os.ReadFile(filepath.Join(c.dir, "worked"))
	require.NoError(c.t, err)
	ids := map[string]bool{}
	for _, id := range strings.Fields(string(data)) {
		ids[id] = true
	}
	return ids
}

// progress waits until jobs that were added from now on have been worked off, and none of the
// calls has failed.
func (c *closingClients) progress() {
	c.t.Helper()
	c.mu.Lock()
	from := len(c.acked)
	c.mu.Unlock()
	waitUntil(c.t, func() error {
		c.mu.Lock()
		failed, acked := c.failed, c.acked[from:]
		c.mu.Unlock()
		require.Empty(c.t, failed)
		worked := c.worked()
		for _, id := range acked[:min(5, len(acked))] {
			if !worked[id] {
				return fmt.Errorf("%s has not been worked off", id)
			}
		}
		if len(acked) < 5 {
			return fmt.Errorf("%d jobs were added", len(acked))
		}
		return nil
	})
}

// judge ends the clients when all that was acknowledged is worked off.
func (c *closingClients) judge() {
	c.t.Helper()
	c.stopProducers()
	c.producers.Wait()
	waitUntil(c.t, func() error {
		worked := c.worked()
		for _, id := range c.acked {
			if !worked[id] {
				return fmt.Errorf("%s was acknowledged and not worked off", id)
			}
		}
		return nil
	})
	c.halt()
	require.Empty(c.t, c.failed)
	c.t.Logf("%d jobs were added in %d calls", len(c.acked), c.tried)
}

// status is what a node replies to a client without a token.
func (s *closingShell) status(scheme string) int {
	s.t.Helper()
	ca, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	require.NoError(s.t, err)
	pool := x509.NewCertPool()
	require.True(s.t, pool.AppendCertsFromPEM(ca))
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err := client.Get(s.here(scheme + "://n1:7300/v1/topics/orders"))
	require.NoError(s.t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// The commands of the guide close a cluster and open it again, while clients use it.
func TestGuideToClosing(t *testing.T) {
	t.Parallel()
	s := newClosingShell(t)
	blocks := guideBlocks(t, "close-a-running-cluster.md")
	require.Len(t, blocks, 12)
	run := func(i int) string {
		t.Helper()
		came := s.run(blocks[i].commands)
		require.True(t, blocks[i].output == "" || sameOutput(blocks[i].output, came), "%s\nprints\n%s", blocks[i].commands, came)
		return came
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "clients.env"), []byte(s.here("TARRY_ADDR=n1:7300,n2:7300,n3:7300\n")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "order.sh"), []byte("#!/bin/sh\necho $TARRY_ID >>worked\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "worked"), nil, 0o600))
	c := &closingClients{t: t, dir: s.dir}
	c.start()
	t.Cleanup(c.halt)
	c.progress()

	for i := range 3 { // functions, keys, and what nodes say to each other
		require.Empty(t, run(i))
	}
	c.progress()
	run(3)
	c.restart()
	run(4)
	run(5)
	waitUntil(t, func() error { // the clients have no token yet
		if run(7) == "denials: 0\n" {
			return fmt.Errorf("no denial was counted")
		}
		return nil
	})
	run(6)
	c.restart()
	denials := run(7)
	c.progress()
	require.Equal(t, denials, run(7))

	run(8)
	c.progress()
	require.Equal(t, http.StatusBadRequest, s.status("http"))
	require.Equal(t, http.StatusUnauthorized, s.status("https"))

	run(9)
	run(10)
	c.restart()
	require.Empty(t, run(11))
	c.judge()
	require.Equal(t, http.StatusOK, s.status("http"))
	s.run("tarry cluster verify")
	require.NoError(t, s.end())
}
