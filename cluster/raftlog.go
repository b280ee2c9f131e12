package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives Raft's log lines to slog. Raft's "info" is chatty and its
// words are not an operator's, so everything below a warning becomes debug, and so
// do the complaints about what every node goes through when it starts or stops. A
// peer that is down makes Raft complain at every attempt to reach it; the same
// complaint is passed on once in repeatAfter.
type raftLogger struct {
	to      *slog.Logger
	name    string
	repeats *repeats
}

func newRaftLogger(to *slog.Logger) hclog.Logger {
	return &raftLogger{to: to.With("part", "raft"), repeats: &repeats{last: map[string]repeat{}}}
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case level < hclog.Warn || harmless(msg, args):
	case level == hclog.Warn:
		to = slog.LevelWarn
	default:
		to = slog.LevelError
	}
	if to >= slog.LevelWarn {
		pass, left := l.repeats.pass(msg+peerOf(args), time.Now())
		if !pass {
			return
		}
		if left > 0 {
			args = append(args[:len(args):len(args)], "repeated", left)
		}
	}
	l.to.Log(context.Background(), to, msg, args...)
}

// harmless says that a complaint is about the beginning or the end of a node that
// is well.
func harmless(msg string, args []any) bool {
	switch msg {
	case "no known peers, aborting election", // it is in no cluster yet
		"peer has newer term, stopping replication": // it has handed leadership over
		return true
	case "heartbeat timeout reached, starting election": // it has known no leader yet
		return fmt.Sprint(valueOf(args, "last-leader-id")) == ""
	case "failed to get previous log": // its log is empty
		return fmt.Sprint(valueOf(args, "last-index")) == "0"
	case "appendEntries rejected, sending older logs": // the peer's is
		return fmt.Sprint(valueOf(args, "next")) == "1"
	case "failed to decode incoming command": // this node has closed the connection
		err, _ := valueOf(args, "error").(error)
		return errors.Is(err, net.ErrClosed)
	}
	return false
}

// valueOf finds what a line says under a name, nil if nothing.
func valueOf(args []any, name string) any {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == name {
			return args[i+1]
		}
	}
	return nil
}

// repeatAfter is how long the same complaint is kept back, maxRepeats how many
// complaints are told apart.
const (
	repeatAfter = 10 * time.Second
	maxRepeats  = 100
)

// repeats remembers which complaints were made lately.
type repeats struct {
	mu   sync.Mutex
	last map[string]repeat
}

type repeat struct {
	at   time.Time
	kept int // kept back since
}

// pass says whether a complaint is to be made now, and how often it was kept
// back since the last time.
func (r *repeats) pass(key string, now time.Time) (pass bool, kept int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.last[key]
	if known && now.Sub(old.at) < repeatAfter {
		old.kept++
		r.last[key] = old
		return false, 0
	}
	if len(r.last) >= maxRepeats {
		clear(r.last)
	}
	r.last[key] = repeat{at: now}
	return true, old.kept
}

// peerOf finds the peer that a complaint is about.
func peerOf(args []any) string {
	for _, name := range []string{"peer", "server-id", "id"} {
		if peer := valueOf(args, name); peer != nil {
			return fmt.Sprint(" ", peer)
		}
	}
	return ""
}

func (l *raftLogger) Trace(msg string, args ...any) {}
func (l *raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *raftLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) enabled(level slog.Level) bool {
	return l.to.Enabled(context.Background(), level)
}
func (l *raftLogger) IsTrace() bool { return false }
func (l *raftLogger) IsDebug() bool { return l.enabled(slog.LevelDebug) }
func (l *raftLogger) IsInfo() bool  { return l.enabled(slog.LevelDebug) }
func (l *raftLogger) IsWarn() bool  { return l.enabled(slog.LevelWarn) }
func (l *raftLogger) IsError() bool { return l.enabled(slog.LevelError) }

func (l *raftLogger) ImpliedArgs() []any { return nil }
func (l *raftLogger) With(args ...any) hclog.Logger {
	return &raftLogger{to: l.to.With(args...), name: l.name, repeats: l.repeats}
}
func (l *raftLogger) Name() string { return l.name }
func (l *raftLogger) Named(name string) hclog.Logger {
	return &raftLogger{to: l.to, name: name, repeats: l.repeats}
}
func (l *raftLogger) ResetNamed(name string) hclog.Logger { return l.Named(name) }
func (l *raftLogger) SetLevel(hclog.Level)                {} // the slog handler decides
func (l *raftLogger) GetLevel() hclog.Level               { return hclog.Debug }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.to.Handler(), slog.LevelDebug)
}

func (l *raftLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
