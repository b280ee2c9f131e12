package logtail

import (
	"strings"
	"sync"
)

// Tail is a writer that keeps the last lines that were written to it, up to a number of bytes.
// It may be used from several goroutines.
type Tail struct {
	most int // bytes

	mu    sync.Mutex
	lines []string // the oldest first
	bytes int      // of lines
}

// New returns a Tail that keeps up to most bytes.
func New(most int) *Tail { return &Tail{most: most} }

// Write keeps one line, as slog's handlers write it: each with a call of its own. It never fails.
func (t *Tail) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line[:min(len(line), t.most)]), "\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, text)
	t.bytes += len(text)
	drop := 0
	for ; t.bytes > t.most; drop++ {
		t.bytes -= len(t.lines[drop])
		t.lines[drop] = "" // else it stays in memory until the list is copied
	}
	t.lines = t.lines[drop:]
	return len(line), nil
}

// Lines returns the lines that are kept, the oldest first.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.lines...)
}
