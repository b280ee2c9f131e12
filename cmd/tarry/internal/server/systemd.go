package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// supervisor tells systemd, or another supervisor that speaks its protocol (sd_notify), what the
// node does. Without one it does nothing. See sd_notify(3) and sd_watchdog_enabled(3).
type supervisor struct {
	conn     *net.UnixConn // nil: there is no supervisor
	watchdog time.Duration // after which the supervisor ends a silent node; 0: never
	log      *slog.Logger
}

// What is sent.
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
	notifyAlive    = "WATCHDOG=1"
)

// watchdogShare is how many checks of the node there are in the time after which it is ended:
// one that is late or fails is no reason.
const watchdogShare = 4

// openSupervisor reads the variables that a supervisor sets.
func openSupervisor(env func(string) (string, bool), pid int, log *slog.Logger) (*supervisor, error) {
	s := &supervisor{log: log}
	path, _ := env("NOTIFY_SOCKET")
	if path == "" {
		return s, nil
	}
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q; it must be an absolute path, or a name that begins with @", path)
	}
	if text, set := env("WATCHDOG_USEC"); set {
		us, err := strconv.ParseInt(text, 10, 64)
		if err != nil || us <= 0 || us > int64(time.Hour*24*365/time.Microsecond) {
			return nil, fmt.Errorf("WATCHDOG_USEC is %q; it must be a number of microseconds, up to a year", text)
		}
		if of, set := env("WATCHDOG_PID"); !set || of == strconv.Itoa(pid) {
			s.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	s.conn = conn
	return s, nil
}

// say sends one state. A supervisor that cannot be reached does not end the node.
func (s *supervisor) say(state string) {
	if s.conn == nil {
		return
	}
	if _, err := s.conn.Write([]byte(state)); err != nil {
		s.log.Warn("the supervisor (NOTIFY_SOCKET) cannot be told", "state", state, "error", err)
	}
}

// feed sends signs of life for as long as responds says that the node's main loops respond,
// until the returned function is called. So a node that hangs is ended and started again.
func (s *supervisor) feed(ctx context.Context, responds func(context.Context) error) (stop func()) {
	if s.conn == nil || s.watchdog == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := s.watchdog / watchdogShare
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			s.check(ctx, every, responds)
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// check asks the node once.
func (s *supervisor) check(ctx context.Context, within time.Duration, responds func(context.Context) error) {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := responds(bounded)
	switch {
	case ctx.Err() != nil: // the node stops
	case err != nil:
		s.log.Error("the node does not respond to itself; the supervisor's watchdog will end it", "error", err)
	default:
		s.say(notifyAlive)
	}
}

func (s *supervisor) close() {
	if s.conn != nil {
		s.conn.Close()
	}
}

// ownSupervisor is that of this process.
func ownSupervisor(log *slog.Logger) (*supervisor, error) {
	return openSupervisor(os.LookupEnv, os.Getpid(), log)
}
