package conformance

import (
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Real is a beanstalkd process, which ends with its test.
type Real struct {
	Version string // such as "1.12"

	addr string
	args []string
	cmd  *exec.Cmd
}

// StartReal starts the beanstalkd of this machine. Without one the test is
// skipped, with the reason why that is a loss.
func StartReal(t *testing.T, s Settings) *Real {
	t.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		t.Skip("SKIPPED: there is no beanstalkd on this machine (apt-get install beanstalkd), so nothing shows that Tarry behaves as it does")
	}
	out, err := exec.Command(path, "-v").Output()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &Real{Version: strings.TrimPrefix(strings.TrimSpace(string(out)), "beanstalkd "), addr: l.Addr().String()}
	require.NoError(t, l.Close())
	host, port, err := net.SplitHostPort(r.addr)
	require.NoError(t, err)
	r.args = []string{path, "-l", host, "-p", port}
	if s.MaxJobSize > 0 {
		r.args = append(r.args, "-z", strconv.Itoa(s.MaxJobSize))
	}
	if s.Dir == "" && s.Durable {
		s.Dir = t.TempDir()
	}
	if s.Dir != "" {
		r.args = append(r.args, "-b", s.Dir, "-f", "0", "-s", strconv.Itoa(1<<20))
	}
	t.Cleanup(r.kill)
	require.NoError(t, r.start())
	return r
}

func (r *Real) start() error {
	r.cmd = exec.Command(r.args[0], r.args[1:]...)
	if err := r.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return errors.Join(errors.New("beanstalkd does not come up"), err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (r *Real) kill() {
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill() // it may have ended
		_ = r.cmd.Wait()         // killed
	}
}

// Addr implements Server.
func (r *Real) Addr() string { return r.addr }

// Drain implements Server.
func (r *Real) Drain() error { return r.cmd.Process.Signal(syscall.SIGUSR1) }

// Restart implements Server.
func (r *Real) Restart() error {
	r.kill()
	return r.start()
}
