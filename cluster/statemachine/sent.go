package statemachine

import (
	"io"
	"slices"
	"time"
)

// sent is a state that this node sends, or has sent. While it is under way the log
// goes on, and its receiver needs all of that next; with a large state and much load
// it would be cut, and the receiver would need the next state as soon as it had this
// one. So what it needs is known for as long again as the sending took.
type sent struct {
	io.ReadCloser
	of    *snapshots
	index uint64 // the last entry in it
	began time.Time
	ended time.Time // zero: it is under way
}

// send notes that stream is on its way to a follower until it is closed.
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

// forget drops what was sent long ago; it needs s.mu.
func (s *snapshots) forget(now time.Time) {
	s.sent = slices.DeleteFunc(s.sent, func(t *sent) bool {
		return !t.ended.IsZero() && now.Sub(t.ended) > t.ended.Sub(t.began)
	})
}

// OldestSent returns the last entry in the oldest of the states that are being sent
// now, or whose receivers still catch up: they need the entries behind it.
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
