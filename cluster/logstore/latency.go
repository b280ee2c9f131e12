package logstore

import (
	"sync"
	"time"
)

// latencyWindow is the number of the last writes that count. It is small, so that a
// change of the disk's speed shows within seconds at any rate of writes.
const latencyWindow = 8

// latency measures the last appends to the log. Each includes a sync.
type latency struct {
	mu     sync.Mutex
	took   [latencyWindow]time.Duration
	count  int       // appends so far
	flight time.Time // start of the append under way; zero: none is
}

// begin starts an append at now. Raft makes one at a time.
func (l *latency) begin(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flight = now
}

func (l *latency) end(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[l.count%latencyWindow] = now.Sub(l.flight)
	l.count++
	l.flight = time.Time{}
}

// mean returns the mean time of the last appends. It includes the append under way once
// that has taken longer than the mean. It is 0 before the first append.
func (l *latency) mean(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.count, latencyWindow)
	var sum time.Duration
	for _, d := range l.took[:n] {
		sum += d
	}
	if !l.flight.IsZero() {
		if age := now.Sub(l.flight); n == 0 || age > sum/time.Duration(n) {
			sum += age
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}

// WriteTime returns the mean time of the last appends to the log; see latency. It is
// cheap.
func (s *Stores) WriteTime() time.Duration { return s.latency.mean(time.Now()) }
