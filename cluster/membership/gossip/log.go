package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net"
)

// stdLogger returns a logger for memberlist. Its errors are temporary failures of one
// peer, which it retries, so they become warnings. Everything else becomes debug.
func stdLogger(to *slog.Logger) *log.Logger {
	return log.New(&lineLogger{to}, "", 0)
}

type lineLogger struct{ to *slog.Logger }

var levelPrefixes = []struct {
	prefix []byte
	level  slog.Level
}{
	{[]byte("[ERR] "), slog.LevelWarn},
	{[]byte("[WARN] "), slog.LevelWarn},
	{[]byte("[INFO] "), slog.LevelDebug},
	{[]byte("[DEBUG] "), slog.LevelDebug},
}

var (
	// restarted begins what memberlist says for as long as others have not noticed
	// that a node came back: each start has a name of its own in gossip.
	restarted = []byte("Got ping for unexpected node")
	// stopped ends what it says of a socket that this node has just closed.
	stopped = []byte(net.ErrClosed.Error())
)

// Write takes one line, "[LEVEL] memberlist: text".
func (l *lineLogger) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, bytes.TrimSpace(line)
	for _, p := range levelPrefixes {
		if rest, ok := bytes.CutPrefix(text, p.prefix); ok {
			level, text = p.level, rest
			break
		}
	}
	text = bytes.TrimPrefix(text, []byte("memberlist: "))
	if bytes.HasPrefix(text, restarted) || bytes.HasSuffix(text, stopped) {
		level = slog.LevelDebug
	}
	// What it says names addresses and what came from them, so it is an attribute: the
	// message is the same each time, and the log can tell a repetition.
	l.to.Log(context.Background(), level, "memberlist", "text", string(text))
	return len(line), nil
}
