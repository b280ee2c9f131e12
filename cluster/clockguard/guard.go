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
	"tarry/cluster/report"
	"tarry/internal/sleep"
)

// DefaultMaxOffset is far above the offsets of clocks with NTP and the error of a call
// between nodes, so that a healthy clock never counts as wrong. A clock without NTP drifts
// about as much in a day. Most delays are much longer.
const DefaultMaxOffset = 5 * time.Second

const (
	// confirmTimeout bounds a new leader's wait for the voters' clocks.
	confirmTimeout = time.Second
	// askAgain is the time after which it asks the voters again.
	askAgain = 50 * time.Millisecond
)

// errClockOff is returned on a node that must not lead because its clock is off.
var errClockOff = errors.New("this node's clock is off the majority's: it does not lead")

// Clocks has the clocks of a node. No method blocks.
type Clocks interface {
	Wall() time.Time  // this node's
	Queue() time.Time // the queue's, on the leader
	// Confirmed receives, on a leader, the earliest time that the majority's clocks may have at an
	// instant of the monotonic clock.
	Confirmed(at, majority time.Time)
}

// Config has the settings and callbacks of a Guard. No callback except Ask and Transfer
// may block.
type Config struct {
	ServerID  raft.ServerID // this node's
	MaxOffset time.Duration // how far a clock may be off for its node to lead
	KeepFor   time.Duration // how long a reading counts
	Logger    *slog.Logger

	Clocks Clocks
	// Configuration returns Raft's latest configuration.
	Configuration func() raft.Configuration
	// Ask asks a server for its status. Before it returns it passes the time in the reply
	// to Record.
	Ask func(ctx context.Context, id raft.ServerID) error
	// Transfer transfers leadership to a voter.
	Transfer func(to raft.ServerID) error
}

// Guard compares a node's clock with the voters'. None of its goroutines outlives a call.
// All methods may be called from many goroutines at once.
type Guard struct {
	cfg      Config
	readings *readings // may be shared with other Guards
	warned   atomic.Pointer[warning]
	// last is the verdict of the leader's last Check; nil: none in this leadership.
	last atomic.Pointer[verdict]

	mu             sync.Mutex // protects the fields below
	own            reading    // of this node's clock at the last Check
	loggedVerdict  string     // the clocks that were logged as off last
	loggedTransfer string     // the last logged failure of a transfer
}

// New returns a Guard without readings.
func New(cfg Config) *Guard { return &Guard{cfg: cfg, readings: new(readings)} }

// With returns a Guard of the same node for another Raft group. Both use the readings that either
// takes.
func (g *Guard) With(cfg Config) *Guard { return &Guard{cfg: cfg, readings: g.readings} }

// Wall returns this node's clock without a monotonic reading, so that steps of it count.
func (g *Guard) Wall() time.Time { return g.cfg.Clocks.Wall().Round(0) }

// Record stores the time in another server's reply to a call. The call lasted from one
// instant of this node's monotonic clock to another.
func (g *Guard) Record(id raft.ServerID, wall, from, to time.Time) {
	g.readings.record(id, wall, from, to)
}

// Forget drops the verdict of the last Check. It is called when leadership begins and
// ends.
func (g *Guard) Forget() { g.last.Store(nil) }

// Confirm asks the voters for the time, on a leader that is not established yet, and
// passes the result to Config.Confirmed. It returns as soon as a majority agrees, or after
// a second. It returns an error if no majority replies, or if this node's clock is off the
// majority's. In the latter case it tries to transfer leadership to a voter whose clock is
// right.
func (g *Guard) Confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	v := g.ask(ctx, g.voters(), agreed)
	for v.majority.IsZero() { // the first calls may fail after a start or a network failure
		if !sleep.For(ctx, askAgain) {
			return fmt.Errorf("no majority of the voters has reported its time within %v", confirmTimeout)
		}
		v = g.ask(ctx, g.voters(), agreed)
	}
	g.cfg.Clocks.Confirmed(v.at, v.earliest())
	g.log(v)
	if !v.off(g.cfg.ServerID) {
		return nil
	}
	g.transfer(v, g.voters())
	return errClockOff
}

// Check compares the latest readings, on the leader. candidates returns the voters that
// could lead. If this node's clock is off, or was set since the last Check, Check asks the
// voters again before it acts, because the machine may have been suspended since the
// readings, or its clock now agrees with one that was wrong then. It blocks for a second
// at most, and for as long as Transfer does.
func (g *Guard) Check(ctx context.Context, candidates func() []raft.ServerID) {
	v := g.compareNow(time.Now().Add(-g.cfg.KeepFor))
	stepped := g.stepped()
	if stepped || v.majority.IsZero() || !v.right(g.cfg.ServerID) {
		v = g.ask(ctx, g.voters(), agreed)
	}
	if v.majority.IsZero() {
		return // Raft steps down if no majority is left
	}
	v.ahead = g.queueAhead(v)
	g.last.Store(&v)
	g.cfg.Clocks.Confirmed(v.at, v.earliest())
	g.log(v)
	if v.off(g.cfg.ServerID) {
		g.transfer(v, candidates())
	}
}

// stepped reports whether this node's clock was set since the last call.
func (g *Guard) stepped() bool {
	now := reading{wall: g.Wall(), at: time.Now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.own
	g.own = now
	return !before.at.IsZero() && (now.wall.Sub(before.wall)-now.at.Sub(before.at)).Abs() > g.cfg.MaxOffset
}

// Off reports whether a server's clock was off the majority's at the leader's last Check,
// and by how much it is ahead. It is false on other nodes.
func (g *Guard) Off(id raft.ServerID) (by time.Duration, off bool) {
	v := g.last.Load()
	if v == nil || !v.off(id) {
		return 0, false
	}
	return v.offsets[id].by, true
}

// warning is the leader's last warning about this node's clock.
type warning struct {
	by time.Duration
	at time.Time
}

// RecordWarning records the leader's warning that this node's clock is off, and how far
// it is ahead.
func (g *Guard) RecordWarning(by time.Duration) { g.warned.Store(&warning{by, time.Now()}) }

// Warning returns a sentence for operators if the leader has recently reported that
// this node's clock is off the majority's; otherwise it is empty.
func (g *Guard) Warning() string {
	w := g.warned.Load()
	if w == nil || time.Since(w.at) > g.cfg.KeepFor {
		return ""
	}
	return fmt.Sprintf("this node's clock is %s the majority's; more than %v keeps it from leading: set it right", aheadOf(w.by), g.cfg.MaxOffset)
}

func (g *Guard) voters() []raft.ServerID { return raftconfig.Voters(g.cfg.Configuration()) }

// compareNow compares the readings since oldest and this node's clock.
func (g *Guard) compareNow(oldest time.Time) verdict {
	at := time.Now()
	readings := g.readings.since(oldest)
	readings[g.cfg.ServerID] = reading{wall: g.Wall(), at: at}
	return compare(g.voters(), readings, at, g.cfg.MaxOffset)
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
	replied := make(chan struct{})
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
			case replied <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}
	for {
		v := g.compareNow(began)
		if enough(v) || left == 0 {
			return v
		}
		select {
		case <-replied:
			left--
		case <-ctx.Done():
			return g.compareNow(began)
		}
	}
}

// transfer transfers leadership to the first of the candidates whose clock is right. If
// there is none, the next Check tries again.
func (g *Guard) transfer(v verdict, candidates []raft.ServerID) {
	i := slices.IndexFunc(candidates, func(id raft.ServerID) bool { return id != g.cfg.ServerID && v.right(id) })
	if i < 0 {
		return
	}
	err := g.cfg.Transfer(candidates[i])
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	to := raftconfig.NodeID(candidates[i])
	if why := to + ": " + err.Error(); why != g.loggedTransfer {
		g.loggedTransfer = why
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
	if why := report.Texts(v.problems()); why != "" {
		g.cfg.Logger.Warn("clocks are off", "because", why)
		return
	}
	g.cfg.Logger.Info("the clocks of all members that reply are right again")
}
