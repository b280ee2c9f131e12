package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/clitest"
)

func variables(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, set := m[name]; return v, set }
}

func TestVariablesOfASupervisor(t *testing.T) {
	path, _ := clitest.NotifySocket(t)
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

// A node that does not respond gets no sign of life sent, and one that responds again does.
func TestTheWatchdogIsFedOnlyWhileTheNodeResponds(t *testing.T) {
	path, next := clitest.NotifySocket(t)
	var log clitest.LogBuffer
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
	path, next := clitest.NotifySocket(t)
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
