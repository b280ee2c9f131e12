package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/cmd/tarry/internal/server"
)

// runNode runs a server with the arguments and ends it with the test, or by stop.
func runNode(t *testing.T, args ...string) (httpAddr string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	httpAddr = clitest.FreeAddr(t)
	args = append([]string{
		"--data-dir", t.TempDir(), "--http-addr", httpAddr, "--cluster-addr", clitest.FreeAddr(t), "--gossip-addr", clitest.FreeAddr(t),
		"--disk-low-water", "0",
	}, args...)
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.Equal(t, cli.ExitOK, <-ended, log.String())
		}
	}
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return status(httpAddr, "/livez") == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
	return httpAddr, stop
}

// status is that of the answer to a GET; 0: there was none.
func status(addr, path string) int {
	a, err := http.Get("http://" + addr + path)
	if err != nil {
		return 0
	}
	defer a.Body.Close()
	return a.StatusCode
}

// say sends a command to a server of beanstalkd's protocol and gives the first line
// of its reply.
func say(t *testing.T, c net.Conn, command string) string {
	t.Helper()
	_, err := io.WriteString(c, command)
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(line, "\r\n")
}

// A client that finds the port open can put a job at once: while the cluster cannot
// serve there is no port, so that the client tries another node.
func TestThePortForBeanstalkdClientsOpensWhenTheNodeCanServe(t *testing.T) {
	t.Run("no majority", func(t *testing.T) {
		tubes := clitest.FreeAddr(t)
		addr, _ := runNode(t, "--beanstalk-addr", tubes, "--bootstrap-expect", "3", "--join", clitest.FreeAddr(t))
		_, err := net.Dial("tcp", tubes)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, http.StatusServiceUnavailable, status(addr, "/readyz"))
		if runtime.GOOS == "linux" {
			_, err := net.Listen("tcp", tubes)
			require.ErrorIs(t, err, syscall.EADDRINUSE, "nobody takes it while the node waits for others, or it would end when it can serve")
		}
	})
	t.Run("ready", func(t *testing.T) {
		tubes := clitest.FreeAddr(t)
		addr, _ := runNode(t, "--beanstalk-addr", tubes)
		require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
		c, err := net.Dial("tcp", tubes)
		require.NoError(t, err, "a node that is ready serves all its clients")
		defer c.Close()
		require.Equal(t, "INSERTED 1", say(t, c, "put 0 0 10 1\r\nx\r\n"))
	})
	t.Run("again, while connections of the process before end", func(t *testing.T) {
		tubes, dir := clitest.FreeAddr(t), t.TempDir()
		for range 2 {
			addr, stop := runNode(t, "--beanstalk-addr", tubes, "--data-dir", dir)
			require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
			c, err := net.Dial("tcp", tubes)
			require.NoError(t, err)
			defer c.Close()
			require.Equal(t, "USING default", say(t, c, "list-tube-used\r\n"))
			stop() // the server closes first
		}
	})
}

func TestBeanstalkdClientsConnectByASocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tubes")
	stale, err := net.Listen("unix", path)
	require.NoError(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, stale.Close()) // as a process that was killed leaves it
	addr, stop := runNode(t, "--beanstalk-addr", "unix:"+path)
	require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660), info.Mode().Perm())
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "INSERTED 1", say(t, c, "put 0 0 10 1\r\nx\r\n"))
	require.Equal(t, "RESERVED 1 1", say(t, c, "reserve\r\n"))

	_, err = server.TakeBeanstalk(&server.Config{BeanstalkAddr: "unix:" + path}, nil)
	require.ErrorContains(t, err, "in use", "another node cannot take it")
	stop()
	require.NoFileExists(t, path)
}
