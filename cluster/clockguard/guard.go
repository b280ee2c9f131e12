package clockguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

// DefaultMaxOffset is far above the offsets that NTP leaves and the error of a call
// between nodes, so that a healthy clock never counts as wrong. It is about as much as
// a clock without NTP drifts in a day, and short compared with most delays.
const DefaultMaxOffset = 5 * time.Second

const (
	// confirmTimeout bounds the wait for the voters' clocks by a new leader.
	confirmTimeout = time.Second
	// askAgain is how soon it asks those again that could not be reached.
	askAgain = 50 * time.Millisecond
)

// errClockOff keeps a node whose clock is off from leading.
var errClockOff = errors.New("this node's clock is off the majority's: it does not lead")

// Config has what a Guard needs of its node. No callback except Ask and GiveWay may
// block.
type Config struct {
	ServerID  raft.ServerID // this node's
	MaxOffset time.Duration // how far a clock may be off for its node to lead
	KeepFor   time.Duration // how long a reading counts
	Logger    *slog.Logger

	// Now is this node's clock, ClusterClock the queue's clock on the leader.
	Now, ClusterClock func() time.Time
	// Confirmed receives, on a leader, the earliest time that the majority's clocks
	// may have at an instant of the monotonic clock.
	Confirmed func(at, majority time.Time)
	// Configuration is Raft's latest.
	Configuration func() raft.Configuration
	// Ask asks a server for its status. It hands the time in the answer to Record
	// before it returns.
	Ask func(ctx context.Context, id raft.ServerID) error
	// GiveWay hands leadership to a voter.
	GiveWay func(to raft.ServerID) error
}

// Guard is one node's. It has no goroutine of its own that outlives a call. All
// methods may be called from many goroutines at once.
type Guard struct {
	cfg      Config
	readings readings
	told     atomic.Pointer[told]
	// last is the verdict of the leader's last look; nil: none in this leadership.
	last atomic.Pointer[verdict]

	mu            sync.Mutex // of what follows
	loggedVerdict string     // what was logged of the clocks last
	loggedKept    string     // why leadership was not given away, as it was logged last
}

// New returns a Guard without readings.
func New(cfg Config) *Guard { return &Guard{cfg: cfg} }

// Wall is this node's clock without a monotonic reading, so that a step of it shows.
func (g *Guard) Wall() time.Time { return g.cfg.Now().Round(0) }

// Record stores the time in another server's reply to a call. The call lasted from one
// instant of this node's monotonic clock to another.
func (g *Guard) Record(id raft.ServerID, wall, from, to time.Time) {
	g.readings.record(id, wall, from, to)
}

// Forget drops the verdict of the last look. It is called when leadership begins and
// ends.
func (g *Guard) Forget() { g.last.Store(nil) }

// Confirm asks the voters for the time, for a leader that is not established yet, and
// passes the result to Config.Confirmed. It returns as soon as a majority agrees,
// else after a second. It returns an error if no majority replies, or if this node's
// clock is off the majority's. In the latter case it has tried to transfer leadership
// to a voter whose clock is right.
func (g *Guard) Confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	v := g.ask(ctx, g.voters(), agreed)
	for v.majority.IsZero() { // the connections may be new: after a heal, or a start
		if !sleep.For(ctx, askAgain) {
			return fmt.Errorf("no majority of the voters has told the time within %v", confirmTimeout)
		}
		v = g.ask(ctx, g.voters(), agreed)
	}
	g.cfg.Confirmed(v.at, v.earliest())
	g.log(v)
	if !v.off(g.cfg.ServerID) {
		return nil
	}
	g.giveWay(v, g.voters())
	return errClockOff
}

// Look compares the latest readings, on the leader. fit are the voters that could
// lead. If this node's clock is off, Look asks the voters once more before it acts,
// because the machine may have been suspended since the readings. It blocks for a
// second at most, and for as long as GiveWay does.
func (g *Guard) Look(ctx context.Context, fit func() []raft.ServerID) {
	v := g.now(time.Now().Add(-g.cfg.KeepFor))
	if v.majority.IsZero() || !v.right(g.cfg.ServerID) {
		v = g.ask(ctx, g.voters(), agreed)
	}
	if v.majority.IsZero() {
		return // Raft steps down if no majority is left
	}
	v.ahead = g.queueAhead(v)
	g.last.Store(&v)
	g.cfg.Confirmed(v.at, v.earliest())
	g.log(v)
	if v.off(g.cfg.ServerID) {
		g.giveWay(v, fit())
	}
}

// Off reports whether a server's clock was off the majority's at the leader's last
// look, and by how much it is ahead. It is false on other nodes.
func (g *Guard) Off(id raft.ServerID) (by time.Duration, off bool) {
	v := g.last.Load()
	if v == nil || !v.off(id) {
		return 0, false
	}
	return v.offsets[id].by, true
}

// told is the leader's last warning about this node's clock.
type told struct {
	by time.Duration
	at time.Time
}

// Told records the leader's warning that this node's clock is off, and how far ahead.
func (g *Guard) Told(by time.Duration) { g.told.Store(&told{by, time.Now()}) }

// Warning returns a sentence for operators if the leader has recently reported that
// this node's clock is off the majority's; otherwise it is empty.
func (g *Guard) Warning() string {
	t := g.told.Load()
	if t == nil || time.Since(t.at) > g.cfg.KeepFor {
		return ""
	}
	return fmt.Sprintf("this node's clock is %s the majority's; more than %v keeps it from leading: set it right", aheadOf(t.by), g.cfg.MaxOffset)
}

func (g *Guard) voters() []raft.ServerID { return raftconfig.Voters(g.cfg.Configuration()) }

// now returns the verdict on the readings since an instant. This node's own clock is
// read now.
func (g *Guard) now(oldest time.Time) verdict {
	at := time.Now()
	answers := g.readings.since(oldest)
	answers[g.cfg.ServerID] = reading{wall: g.Wall(), at: at}
	return compare(g.voters(), answers, at, g.cfg.MaxOffset)
}

// agreed and never report when ask has enough replies.
func agreed(v verdict) bool { return v.agreed }
func never(verdict) bool    { return false }

// ask asks all servers concurrently. It returns when all have replied, when enough have
// replied, or after confirmTimeout.
func (g *Guard) ask(ctx context.Context, servers []raft.ServerID, enough func(verdict) bool) verdict {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	began := time.Now()
	answered := make(chan struct{})
	left := 0
	for _, id := range servers {
		if id == g.cfg.ServerID {
			continue
		}
		left++
		asking.Go(func() {
			if err := g.cfg.Ask(ctx, id); err != nil {
				g.cfg.Logger.Debug("no status", "server", id, "error", err)
			}
			select {
			case answered <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}
	for {
		v := g.now(began)
		if enough(v) || left == 0 {
			return v
		}
		select {
		case <-answered:
			left--
		case <-ctx.Done():
			return g.now(began)
		}
	}
}

// giveWay transfers leadership to the first of the voters whose clock is right.
func (g *Guard) giveWay(v verdict, fit []raft.ServerID) {
	i := slices.IndexFunc(fit, func(id raft.ServerID) bool { return id != g.cfg.ServerID && v.right(id) })
	if i < 0 {
		return // with the next look, perhaps
	}
	err := g.cfg.GiveWay(fit[i])
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	to := raftconfig.NodeID(fit[i])
	if why := to + ": " + err.Error(); why != g.loggedKept {
		g.loggedKept = why
		g.cfg.Logger.Warn("could not transfer leadership; trying again", "to", to, "because", errClockOff, "error", err)
	}
}

// log logs what is wrong with the clocks when that changes.
func (g *Guard) log(v verdict) {
	var wrong []string
	for id := range v.offsets {
		if v.off(id) {
			wrong = append(wrong, string(id))
		}
	}
	slices.Sort(wrong)
	now := strings.Join(wrong, " ")
	if !v.agreed {
		now = "no majority agrees"
	}
	if v.ranAway() {
		now += " and the queue's"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now == g.loggedVerdict {
		return
	}
	g.loggedVerdict = now
	if reasons := v.reasons(); len(reasons) > 0 {
		g.cfg.Logger.Warn("clocks are off", "because", strings.Join(reasons, "; "))
		return
	}
	g.cfg.Logger.Info("the clocks of all members that reply are right again")
}
