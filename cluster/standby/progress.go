package standby

import (
	"sync"
	"time"

	"tarry/cluster/report"
	"tarry/job/jobpb"
)

// progress is how far the standby is behind. What the primary had applied when it sent a message
// is here once the position has reached it. When that was is known by the primary's clock: the
// message may have waited behind others for long. The clocks of the two clusters need not agree:
// the difference is the smallest one between the sending and the arrival of a message, which
// includes the time that the fastest message took.
type progress struct {
	mu        sync.Mutex
	source    string // the node that sends the log; empty: none
	problem   string
	reseed    bool
	seenIndex uint64    // how far the primary is
	seen      time.Time // when that was known
	caughtUp  time.Time
	offset    time.Duration // this clock's lead over the primary's, as above
	measured  bool          // offset was measured in this session
	// next is what the position has to reach for caughtUp to become nextAt; 0: nothing.
	next   uint64
	nextAt time.Time
}

// begin takes over what an earlier leader has recorded.
func (p *progress) begin(s *jobpb.StandbyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seenIndex = max(p.seenIndex, s.SeenIndex)
	if at := time.UnixMilli(s.SeenMs); s.SeenMs != 0 && at.After(p.seen) {
		p.seen = at
	}
	if at := time.UnixMilli(s.CaughtUpMs); s.CaughtUpMs != 0 && at.After(p.caughtUp) {
		p.caughtUp = at
	}
	p.source, p.next = "", 0
}

// saw records how far the primary was when its clock was sent.
func (p *progress) saw(index, position uint64, sent, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := now.Sub(sent); !p.measured || took < p.offset {
		p.offset, p.measured = took, true
	}
	p.seenIndex, p.seen = max(p.seenIndex, index), now
	if p.next == 0 {
		p.next, p.nextAt = index, sent.Add(p.offset)
	}
	p.reached(position)
}

// applied records the position.
func (p *progress) applied(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached(position)
}

func (p *progress) reached(position uint64) {
	if p.next != 0 && position >= p.next {
		p.caughtUp, p.next = p.nextAt, 0
	}
}

// connected records the node that sends the log.
func (p *progress) connected(source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source, p.problem, p.reseed, p.next, p.measured = source, "", false, 0, false
}

// failed records why nothing sends the log, and reports whether that is new.
func (p *progress) failed(problem string, reseed bool) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = p.problem != problem
	p.source, p.problem, p.reseed = "", problem, reseed
	return news
}

// known returns how far the primary was, when, and the last instant up to which everything is
// here, for the log.
func (p *progress) known() (index uint64, seenMS, caughtUpMS int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seenIndex, millis(p.seen), millis(p.caughtUp)
}

// fill adds what is known to the status.
func (p *progress) fill(s *report.Standby) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.PrimaryIndex = max(s.PrimaryIndex, p.seenIndex)
	s.LastContactMs, s.CaughtUpMs = max(s.LastContactMs, millis(p.seen)), max(s.CaughtUpMs, millis(p.caughtUp))
	s.Connected, s.Source, s.Problem, s.Reseed = p.source != "", p.source, p.problem, p.reseed
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
