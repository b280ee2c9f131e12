package cluster

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives Raft's log lines to slog. Raft's "info" is chatty and its
// words are not an operator's, so everything below a warning becomes debug.
type raftLogger struct {
	to   *slog.Logger
	name string
}

func newRaftLogger(to *slog.Logger) hclog.Logger { return &raftLogger{to: to.With("part", "raft")} }

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	}
	l.to.Log(context.Background(), to, msg, args...)
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
func (l *raftLogger) Name() string                        { return l.name }
func (l *raftLogger) Named(name string) hclog.Logger      { return &raftLogger{to: l.to, name: name} }
func (l *raftLogger) ResetNamed(name string) hclog.Logger { return l.Named(name) }
func (l *raftLogger) SetLevel(hclog.Level)                {} // the slog handler decides
func (l *raftLogger) GetLevel() hclog.Level               { return hclog.Debug }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.to.Handler(), slog.LevelDebug)
}

func (l *raftLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
