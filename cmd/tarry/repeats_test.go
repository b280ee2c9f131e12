package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

// TestGarbageDoesNotFloodTheLog sends garbage to every port over many connections.
func TestGarbageDoesNotFloodTheLog(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ports := map[string]string{"--http-addr": clitest.FreeAddr(t), "--cluster-addr": clitest.FreeAddr(t), "--gossip-addr": clitest.FreeAddr(t), "--beanstalk-addr": clitest.FreeAddr(t)}
	args := []string{"server", "--data-dir", t.TempDir(), "--disk-low-water", "1"}
	for flag, addr := range ports {
		args = append(args, flag, addr)
	}
	var log, out clitest.LogBuffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, nil, &out, &log) }()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "msg=leading") }, 30*time.Second, 10*time.Millisecond, log.String())
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", ports["--beanstalk-addr"]) // it opens last
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 10*time.Millisecond, log.String())
	before := strings.Count(log.String(), "\n")
	garbage := []string{"\x00", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00", "put x\r\n", strings.Repeat("A", 400)}
	for range 50 {
		for flag, addr := range ports {
			for _, text := range append(garbage, rand.Text()) {
				if flag == "--gossip-addr" {
					if c, err := net.Dial("udp", addr); err == nil {
						fmt.Fprint(c, text)
						c.Close()
					}
				}
				c, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				fmt.Fprint(c, text)
				c.(*net.TCPConn).CloseWrite() // it may be refused already
				require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
				io.Copy(io.Discard, c) // until it is closed
				c.Close()
			}
		}
	}
	lines := strings.Count(log.String(), "\n") - before
	require.Less(t, lines, 30, log.String())
	stop()
	require.Equal(t, cli.ExitOK, <-ended)
}
