package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func variables(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, set := m[name]; return v, set }
}

// notifySocket is the end of a supervisor.
func notifySocket(t *testing.T) (path string, next func() string) {
	path = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		buf := make([]byte, 4096)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := conn.Read(buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
}

func TestVariablesOfASupervisor(t *testing.T) {
	path, _ := notifySocket(t)
	for name, c := range map[string]struct {
		env      map[string]string
		watchdog time.Duration
		refused  string
	}{
		"none":                       {map[string]string{"WATCHDOG_USEC": "5"}, 0, ""},
		"without a watchdog":         {map[string]string{"NOTIFY_SOCKET": path}, 0, ""},
		"with one":                   {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000000"}, time.Minute, ""},
		"for this process":           {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}, time.Minute, ""},
		"for another process":        {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"}, 0, ""},
		"a socket that is no path":   {map[string]string{"NOTIFY_SOCKET": "vsock:2:1"}, 0, "NOTIFY_SOCKET is"},
		"a socket that is not there": {map[string]string{"NOTIFY_SOCKET": path + "x"}, 0, "NOTIFY_SOCKET"},
		"a time that is no number":   {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1s"}, 0, "WATCHDOG_USEC is"},
		"a negative time":            {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "-1"}, 0, "WATCHDOG_USEC is"},
		"a time that is too long":    {map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "9223372036854775807"}, 0, "WATCHDOG_USEC is"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openSupervisor(variables(c.env), 7, slog.New(slog.DiscardHandler))
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			defer s.close()
			require.Equal(t, c.watchdog, s.watchdog)
		})
	}
}

func TestAServerTellsItsSupervisor(t *testing.T) {
	path, next := notifySocket(t)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "40000000")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log, out logBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"server", "--data-dir", t.TempDir(), "--http-addr", freeAddr(t), "--cluster-addr", freeAddr(t), "--gossip-addr", freeAddr(t), "--beanstalk-addr", "off",
		}, nil, &out, &log)
	}()
	require.Equal(t, notifyReady, next(), log.String())
	require.Equal(t, notifyAlive, next(), log.String())
	stop()
	last := next()
	for last == notifyAlive { // of a slow machine
		last = next()
	}
	require.Equal(t, notifyStopping, last)
	require.Equal(t, exitOK, <-ended, log.String())
}

// A node that does not respond gets no sign of life sent, and one that responds again does.
func TestTheWatchdogIsFedOnlyWhileTheNodeResponds(t *testing.T) {
	path, next := notifySocket(t)
	var log logBuffer
	s, err := openSupervisor(variables(map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "60000000"}), 1, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer s.close()
	s.check(t.Context(), time.Minute, func(context.Context) error { return errors.New("stuck") })
	require.Contains(t, log.String(), "error=stuck")
	s.check(t.Context(), 0, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // it never responds
	require.Equal(t, 2, strings.Count(log.String(), "does not respond to itself"))
	s.check(t.Context(), time.Minute, func(context.Context) error { return nil })
	s.say("end")
	require.Equal(t, notifyAlive, next(), "the first thing that was sent")
	require.Equal(t, "end", next())
}

func TestTheWatchdogIsFedInTime(t *testing.T) {
	path, next := notifySocket(t)
	s, err := openSupervisor(variables(map[string]string{"NOTIFY_SOCKET": path}), 1, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	defer s.close()
	synctest.Test(t, func(t *testing.T) {
		s.watchdog = time.Minute
		began, checks := time.Now(), 0
		stop := s.feed(t.Context(), func(context.Context) error { checks++; return errors.New("no sign is sent in this test") })
		time.Sleep(time.Minute - time.Second)
		stop()
		require.Equal(t, watchdogShare, checks, "in %v", time.Since(began))
	})
	s.say("end")
	require.Equal(t, "end", next())
}
