package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/cmd/tarry/internal/server"
)

func TestASingleNodeThatIsWellLogsNoWarning(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args := []string{
		"--data-dir", t.TempDir(), "--http-addr", clitest.FreeAddr(t), "--cluster-addr", clitest.FreeAddr(t),
		"--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", clitest.FreeAddr(t),
		"--disk-low-water", "0", // that of the machine that runs the test
	}
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=leading") }, 30*time.Second, 10*time.Millisecond)
	stop()
	require.Equal(t, cli.ExitOK, <-ended, log.String())
	text := strings.TrimSpace(log.String())
	for line := range strings.Lines(text) {
		require.Contains(t, line, "level=INFO", text)
	}
	require.Contains(t, text[strings.LastIndex(text, "\n")+1:], "msg=stopped", "nothing is done after that: %s", text)
}

func TestAnAddressInUseIsToldWithItsFlag(t *testing.T) {
	taken := clitest.FreeAddr(t)
	first, err := net.Listen("tcp", taken)
	require.NoError(t, err)
	defer first.Close()
	for flag, args := range map[string][]string{
		"--http-addr":      {"--http-addr", taken, "--beanstalk-addr", "off"},
		"--beanstalk-addr": {"--http-addr", clitest.FreeAddr(t), "--beanstalk-addr", taken},
	} {
		var log, out clitest.LogBuffer
		require.Equal(t, cli.ExitFailed, run(t.Context(), append([]string{"server"}, append(args, "--data-dir", t.TempDir())...), nil, &out, &log))
		require.Contains(t, log.String(), flag)
	}
}

func TestDashboardIsServedUnlessItIsOff(t *testing.T) {
	for mode, want := range map[string]int{server.UIOn: http.StatusOK, server.UIReadOnly: http.StatusOK, server.UIOff: http.StatusNotFound} {
		t.Run(mode, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			addr := clitest.FreeAddr(t)
			args := []string{
				"--ui", mode, "--data-dir", t.TempDir(), "--http-addr", addr, "--cluster-addr", clitest.FreeAddr(t),
				"--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", "off",
			}
			var log, out clitest.LogBuffer
			ended := make(chan int, 1)
			go func() { ended <- run(ctx, append([]string{"server"}, args...), nil, &out, &log) }()
			defer func() {
				stop()
				require.Equal(t, cli.ExitOK, <-ended, log.String())
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
				require.Equal(t, mode == server.UIReadOnly, strings.Contains(string(page), "read-only"))
			}
		})
	}
}
