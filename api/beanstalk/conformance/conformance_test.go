package conformance

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRealBeanstalkd holds the suite itself to the real server.
func TestRealBeanstalkd(t *testing.T) {
	addr, version := startReal(t)
	Run(t, Target{Addr: addr, Version: version})
}

func startReal(t *testing.T) (addr, version string) {
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		t.Skip("SKIPPED: there is no beanstalkd on this machine (apt-get install beanstalkd), so nothing proves that the suite is right")
	}
	out, err := exec.Command(path, "-v").Output()
	require.NoError(t, err)
	version = strings.TrimPrefix(strings.TrimSpace(string(out)), "beanstalkd ")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	cmd := exec.Command(path, "-l", "127.0.0.1", "-p", fmt.Sprint(port))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, patience, 5*time.Millisecond)
	return addr, version
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
	}
}
