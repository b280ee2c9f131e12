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
	// unexpected begins the line of a node that is pinged under the name of its earlier
	// run: each start has a name of its own in gossip. It goes on until the others have
	// noticed the restart.
	unexpected = []byte("Got ping for unexpected node")
	// rejected is the line of the node that sent such a ping over TCP. Something at the
	// address has accepted the connection and closed it; nodes that do not respond or
	// cannot be reached make other lines.
	rejected = []byte("Failed fallback TCP ping: EOF")
	// stopped ends the line about a socket that this node has just closed.
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
	if bytes.HasPrefix(text, unexpected) || bytes.Equal(text, rejected) || bytes.HasSuffix(text, stopped) {
		level = slog.LevelDebug
	}
	// What it says names addresses and what came from them, so it is an attribute: the
	// message is the same each time, and the log can tell a repetition.
	l.to.Log(context.Background(), level, "memberlist", "text", string(text))
	return len(line), nil
}
