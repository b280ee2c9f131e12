package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestAServerTellsItsSupervisor(t *testing.T) {
	path, next := clitest.NotifySocket(t)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "40000000")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"server", "--data-dir", t.TempDir(), "--http-addr", clitest.FreeAddr(t), "--cluster-addr", clitest.FreeAddr(t), "--gossip-addr", clitest.FreeAddr(t), "--beanstalk-addr", "off",
		}, nil, &out, &log)
	}()
	require.Equal(t, "READY=1", next(), log.String())
	require.Equal(t, "WATCHDOG=1", next(), log.String())
	stop()
	last := next()
	for last == "WATCHDOG=1" { // of a slow machine
		last = next()
	}
	require.Equal(t, "STOPPING=1", last)
	require.Equal(t, cli.ExitOK, <-ended, log.String())
}
