package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
)

// logBuffer is written by the server and read by the test.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// freeAddr is an address that nobody listens at.
func freeAddr(t *testing.T) string {
	port, err := freeport.Take()
	require.NoError(t, err)
	return fmt.Sprint("127.0.0.1:", port)
}

func TestASingleNodeThatIsWellLogsNoWarning(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args := []string{
		"--data-dir", t.TempDir(), "--http-addr", freeAddr(t), "--cluster-addr", freeAddr(t),
		"--gossip-addr", freeAddr(t), "--beanstalk-addr", freeAddr(t),
		"--disk-low-water", "0", // that of the machine that runs the test
	}
	var log, out logBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=leading") }, 30*time.Second, 10*time.Millisecond)
	stop()
	require.Equal(t, exitOK, <-ended, log.String())
	text := strings.TrimSpace(log.String())
	for line := range strings.Lines(text) {
		require.Contains(t, line, "level=INFO", text)
	}
	require.Contains(t, text[strings.LastIndex(text, "\n")+1:], "msg=stopped", "nothing is done after that: %s", text)
}

func TestAnAddressInUseIsToldWithItsFlag(t *testing.T) {
	taken := freeAddr(t)
	first, err := net.Listen("tcp", taken)
	require.NoError(t, err)
	defer first.Close()
	for flag, args := range map[string][]string{
		"--http-addr":      {"--http-addr", taken, "--beanstalk-addr", "off"},
		"--beanstalk-addr": {"--http-addr", freeAddr(t), "--beanstalk-addr", taken},
	} {
		var log, out logBuffer
		require.Equal(t, exitFailed, run(t.Context(), append([]string{"server"}, append(args, "--data-dir", t.TempDir())...), nil, &out, &log))
		require.Contains(t, log.String(), flag)
	}
}

func TestDashboardIsServedUnlessItIsOff(t *testing.T) {
	for mode, want := range map[string]int{uiOn: http.StatusOK, uiReadOnly: http.StatusOK, uiOff: http.StatusNotFound} {
		t.Run(mode, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			addr := freeAddr(t)
			args := []string{
				"--ui", mode, "--data-dir", t.TempDir(), "--http-addr", addr, "--cluster-addr", freeAddr(t),
				"--gossip-addr", freeAddr(t), "--beanstalk-addr", "off",
			}
			var log, out logBuffer
			ended := make(chan int, 1)
			go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
			defer func() {
				stop()
				require.Equal(t, exitOK, <-ended, log.String())
			}()
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=serving") }, 30*time.Second, 10*time.Millisecond)
			answer, err := http.Get("http://" + addr + "/ui/")
			require.NoError(t, err)
			defer answer.Body.Close()
			page, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, want, answer.StatusCode, string(page))
			if want == http.StatusOK {
				require.Contains(t, string(page), "node <b>n1</b>")
				require.Equal(t, mode == uiReadOnly, strings.Contains(string(page), "read-only"))
			}
		})
	}
}
