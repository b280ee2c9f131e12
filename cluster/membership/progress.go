package membership

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// applyLimit is how long a server may apply nothing while the leader has applied more. Heartbeats
// do not show it: they are answered beside Raft's main loop.
const applyLimit = 5 * time.Second

// memberProgress holds what the members last reported of their own work.
type memberProgress struct {
	mu sync.Mutex
	of map[raft.ServerID]*progress
}

type progress struct {
	trouble string    // that the server sees itself; empty: none
	applied uint64    // index
	behind  uint64    // how many entries more the leader had applied
	since   time.Time // of the first report with this applied index while it was behind
}

// record takes a report, and what the leader had applied before it asked.
func (p *memberProgress) record(id raft.ServerID, trouble string, applied, leader uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[raft.ServerID]*progress)
	}
	s := p.of[id]
	if s == nil {
		s = &progress{since: now}
		p.of[id] = s
	}
	if applied != s.applied || s.behind == 0 {
		s.since = now
	}
	s.trouble, s.applied, s.behind = trouble, applied, leader-min(leader, applied)
}

// forget drops what a server has reported: it does not reply, and may be busy with catching up when
// it does again.
func (p *memberProgress) forget(id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, id)
}

// stands returns why a server does not take part although it replies; empty: it does.
func (p *memberProgress) stands(id raft.ServerID, now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[id]
	switch {
	case s == nil:
		return ""
	case s.trouble != "":
		return s.trouble
	case s.behind > 0 && now.Sub(s.since) > applyLimit:
		return fmt.Sprintf("it has applied nothing for %s, and is %d log entries behind", now.Sub(s.since).Round(time.Second), s.behind)
	}
	return ""
}
