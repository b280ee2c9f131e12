package logstore

import (
	"sync"
	"time"
)

// latencyWindow is how many of the last writes count. Few, so that a disk that
// has become slow, or fast again, is known after some seconds at any pace.
const latencyWindow = 8

// latency measures the last appends to the log, each of which ends with a sync.
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

// mean is over the last appends, and over the one in flight once that has taken
// longer; 0: there was none yet.
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

// WriteTime is how long the last appends to the log took on average, the one
// under way included; 0 before the first. It is cheap.
func (s *Stores) WriteTime() time.Duration { return s.latency.mean(time.Now()) }
