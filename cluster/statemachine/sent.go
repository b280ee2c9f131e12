package statemachine

import (
	"io"
	"slices"
	"time"
)

// sent is a state that this node sends or has sent. The receiver needs the entries
// that were written meanwhile. With a large state and much load the log would be
// truncated before that, and the receiver would need another snapshot at once. So those
// entries are kept for as long again as the transfer took.
type sent struct {
	io.ReadCloser
	of    *snapshots
	index uint64 // the last entry in it
	began time.Time
	ended time.Time // zero: it is under way
}

// send records that stream is being sent to a follower until it is closed.
func (s *snapshots) send(stream io.ReadCloser, index uint64) *sent {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	out := &sent{ReadCloser: stream, of: s, index: index, began: now}
	s.sent = append(s.sent, out)
	return out
}

// Close ends the sending.
func (t *sent) Close() error {
	t.of.mu.Lock()
	if t.ended.IsZero() {
		t.ended = time.Now()
	}
	t.of.mu.Unlock()
	return t.ReadCloser.Close()
}

// forget drops states that were sent long ago. It is called with s.mu held.
func (s *snapshots) forget(now time.Time) {
	s.sent = slices.DeleteFunc(s.sent, func(t *sent) bool {
		return !t.ended.IsZero() && now.Sub(t.ended) > t.ended.Sub(t.began)
	})
}

// OldestSent returns the last entry in the oldest of the states that are being sent
// now, or whose receivers still catch up: they need the entries after it.
func (a *Adapter) OldestSent(now time.Time) (index uint64, ok bool) {
	s := a.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	for _, t := range s.sent {
		if !ok || t.index < index {
			index, ok = t.index, true
		}
	}
	return index, ok
}
