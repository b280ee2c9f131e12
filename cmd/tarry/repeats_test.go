package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSameComplaintIsMadeOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		log := slog.New(newOnceInAWhile(slog.NewTextHandler(&out, nil)))
		lines := func() int { return strings.Count(out.String(), "\n") }
		for i := range 50 {
			log.With("node", "n1").Warn("refused", "from", i)
			log.Error("no heartbeat", "peer", "n2")
			log.Error("no heartbeat", "peer", "n3")
		}
		require.Equal(t, 3, lines(), "at once, and each peer has its own")
		time.Sleep(repeatAfter)
		synctest.Wait()
		require.Equal(t, 6, lines())
		require.Contains(t, out.String(), "msg=refused node=n1 from=49 repeated=49")
		last := out.String()[strings.LastIndexByte(strings.TrimSpace(out.String()), '\n')+1:]
		require.True(t, strings.HasPrefix(last, "time="+time.Now().Format("2006-01-02T15:04:05")), "the time of the line, not of the event: %s", last)
		time.Sleep(10 * repeatAfter)
		synctest.Wait()
		require.Equal(t, 6, lines(), "nothing more was kept back")
		log.Warn("refused", "from", 51)
		require.Equal(t, 7, lines(), "the next is made at once")
		for i := range 1000 {
			log.Warn("refused", "topic", i)
			log.Info("purged", "topic", i)
		}
		require.Less(t, lines(), 7+maxComplaints+2+1000)
		require.Equal(t, 1000, strings.Count(out.String(), "msg=purged"), "what was asked for has its line")
		time.Sleep(10 * repeatAfter)
	})
}

// TestGarbageDoesNotFloodTheLog sends garbage to every port over many connections.
func TestGarbageDoesNotFloodTheLog(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ports := map[string]string{"--http-addr": freeAddr(t), "--cluster-addr": freeAddr(t), "--gossip-addr": freeAddr(t), "--beanstalk-addr": freeAddr(t)}
	args := []string{"server", "--data-dir", t.TempDir(), "--disk-low-water", "1"}
	for flag, addr := range ports {
		args = append(args, flag, addr)
	}
	var log, out logBuffer
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
	require.Equal(t, exitOK, <-ended)
}
