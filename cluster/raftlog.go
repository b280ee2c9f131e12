package cluster

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

// raftLogger passes Raft's log lines to slog. Raft's info lines are frequent and not
// meant for operators, so everything below a warning becomes debug. So do warnings that
// every node causes when it starts or stops. While a peer is down Raft logs every
// attempt to reach it, so the handler must suppress repetitions.
type raftLogger struct {
	to   *slog.Logger
	name string
}

func newRaftLogger(to *slog.Logger) hclog.Logger {
	return &raftLogger{to: to.With("part", "raft")}
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case level < hclog.Warn || harmless(msg, args):
	case level == hclog.Warn || valueOf(args, "peer") != nil || valueOf(args, "target") != nil: // a failure of another node is temporary
		to = slog.LevelWarn
	default:
		to = slog.LevelError
	}
	l.to.Log(context.Background(), to, msg, nodeNames(args)...)
}

// nodeNames returns args with the names of nodes in place of their Raft ids.
func nodeNames(args []any) []any {
	named := slices.Clone(args)
	for i, arg := range named {
		switch v := arg.(type) {
		case raft.Server:
			named[i] = raftconfig.NodeID(v.ID)
		case raft.ServerID:
			named[i] = raftconfig.NodeID(v)
		}
	}
	return named
}

// harmless reports whether a message is about the normal start or end of a healthy
// node.
func harmless(msg string, args []any) bool {
	switch msg {
	case "no known peers, aborting election", // it is in no cluster yet
		"skipping application of old log",                   // its state is ahead of the log that it replays
		"rejecting pre-vote request since we have a leader", // a restarted node asks before it knows the leader
		"peer has newer term, stopping replication":         // it has transferred leadership
		return true
	case "heartbeat timeout reached, starting election": // no leader was known yet
		return fmt.Sprint(valueOf(args, "last-leader-id")) == ""
	case "failed to get previous log": // its log is empty
		return fmt.Sprint(valueOf(args, "last-index")) == "0"
	case "appendEntries rejected, sending older logs": // the peer's log is empty
		return fmt.Sprint(valueOf(args, "next")) == "1"
	}
	return false
}

// valueOf returns the value of a name in a line; nil: there is none.
func valueOf(args []any, name string) any {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == name {
			return args[i+1]
		}
	}
	return nil
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
	return &raftLogger{to: l.to.With(args...), name: l.name}
}
func (l *raftLogger) Name() string { return l.name }
func (l *raftLogger) Named(name string) hclog.Logger {
	return &raftLogger{to: l.to, name: name}
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
