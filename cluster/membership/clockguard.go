package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

const (
	// confirmTimeout bounds the wait for the voters' clocks by a new leader.
	confirmTimeout = time.Second
	// askAgain is how soon it asks those again that could not be reached.
	askAgain = 50 * time.Millisecond
)

// errClockOff keeps a node whose clock is off from leading.
var errClockOff = errors.New("this node's clock is off the majority's: it does not lead")

// ConfirmClock asks the voters for the time, for a leader that is not established
// yet, and tells what they say (Config.ClockConfirmed). It returns as soon as a
// majority agrees, else after a second. It is an error when no majority answers;
// and when this node's clock is off the majority's: then leadership was handed to a
// voter whose clock is right, if that could be done.
func (m *Membership) ConfirmClock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	v := m.askClocks(ctx, votersOf(m.configuration()), agreed)
	for v.majority.IsZero() { // the connections may be new: after a heal, or a start
		if pause(ctx, askAgain) != nil {
			return fmt.Errorf("no majority of the voters has told the time within %v", confirmTimeout)
		}
		v = m.askClocks(ctx, votersOf(m.configuration()), agreed)
	}
	m.cfg.ClockConfirmed(v.at, v.earliest())
	m.sayClocks(v)
	if !v.off(m.self()) {
		return nil
	}
	var fit []raft.ServerID
	for _, id := range votersOf(m.configuration()) {
		if id != m.self() && v.right(id) {
			fit = append(fit, id)
		}
	}
	m.giveClockAway(fit)
	return errClockOff
}

// agreed and never say when askClocks has heard enough.
func agreed(v clockVerdict) bool { return v.agreed }
func never(clockVerdict) bool    { return false }

// askClocks asks servers at once, until all have answered, what they said is enough,
// or the time is over.
func (m *Membership) askClocks(ctx context.Context, servers []raft.ServerID, enough func(clockVerdict) bool) clockVerdict {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	began := time.Now()
	answered := make(chan struct{})
	left := 0
	for _, id := range servers {
		addr, err := m.ServerAddr(id)
		if err != nil || id == m.self() {
			continue
		}
		left++
		asking.Go(func() {
			if _, err := m.ask(ctx, string(id), string(addr)); err != nil {
				m.cfg.Logger.Debug("no status", "server", id, "error", err)
			}
			select {
			case answered <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}
	for {
		v := m.clockNow(began)
		if enough(v) || left == 0 {
			return v
		}
		select {
		case <-answered:
			left--
		case <-ctx.Done():
			return m.clockNow(began)
		}
	}
}

// lookAtClocks is the leader's look at what it has heard lately. A leader that is
// off asks again before it believes it: what it goes by may have stood still with
// the machine.
func (m *Membership) lookAtClocks(ctx context.Context, g *reign) {
	v := m.clockNow(time.Now().Add(-conditionLooks * m.cfg.Timing.Health))
	if v.majority.IsZero() || !v.right(m.self()) {
		v = m.askClocks(ctx, votersOf(m.configuration()), agreed)
	}
	if v.majority.IsZero() {
		return // Raft finds out by itself whether a majority is left
	}
	v.ahead = m.queueAhead(v)
	g.clocks.Store(&v)
	m.cfg.ClockConfirmed(v.at, v.earliest())
	m.sayClocks(v)
	if !v.off(m.self()) {
		return
	}
	fit := slices.DeleteFunc(m.fitToLead(g), func(id raft.ServerID) bool { return id == m.self() || !v.right(id) })
	m.giveClockAway(fit)
}

// giveClockAway hands leadership to a voter whose clock is right.
func (m *Membership) giveClockAway(fit []raft.ServerID) {
	if len(fit) == 0 {
		return // with the next look, perhaps
	}
	m.gaveWay.Add(1)
	to := nodeIDOf(string(fit[0]))
	err := m.handOver(to)
	if err == nil {
		return
	}
	m.clocksMu.Lock()
	defer m.clocksMu.Unlock()
	if why := to + ": " + err.Error(); why != m.keptBecause {
		m.keptBecause = why
		m.cfg.Logger.Warn("could not hand leadership over; trying again", "to", to, "because", errClockOff, "error", err)
	}
}

// sayClocks logs what is wrong with the clocks when that changes.
func (m *Membership) sayClocks(v clockVerdict) {
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
	m.clocksMu.Lock()
	defer m.clocksMu.Unlock()
	if now == m.clocksSaid {
		return
	}
	m.clocksSaid = now
	if reasons := v.reasons(); len(reasons) > 0 {
		m.cfg.Logger.Warn("clocks are off", "because", strings.Join(reasons, "; "))
		return
	}
	m.cfg.Logger.Info("the clocks of all that answer are right again")
}

// checkClockOf refuses a node as the next leader whose clock is off: it would give
// leadership back. It asks the voters now.
func (m *Membership) checkClockOf(ctx context.Context, nodeID string) error {
	target, ok := findServer(m.configuration(), nodeID)
	if !ok {
		return nil // handOver says so, or chooses
	}
	v := m.askClocks(ctx, votersOf(m.configuration()), never)
	if !v.off(target.ID) {
		return nil
	}
	return job.Errorf(job.CodeConflict, "the clock of %s is %s the majority's; more than %v keeps it from leading: set it right first",
		nodeID, aheadOf(v.offsets[target.ID].by), v.most)
}

// clockTold is what a leader has last told this node about its clock.
type clockTold struct {
	by time.Duration
	at time.Time
}

// tellClock is what a request for a server's status tells it about its clock.
func (m *Membership) tellClock(id raft.ServerID, req *memberpb.StatusRequest) {
	g := m.reign.Load()
	if g == nil {
		return
	}
	if v := g.clocks.Load(); v != nil && v.off(id) {
		req.ClockOff, req.ClockOffsetUs = true, v.offsets[id].by.Microseconds()
	}
}

// hearClock takes that in, if the leader tells it.
func (m *Membership) hearClock(req *memberpb.StatusRequest) {
	if r := m.raft.Load(); r != nil && req.GetClockOff() {
		if _, leader := r.LeaderWithID(); string(leader) == req.GetServerId() {
			m.clockTold.Store(&clockTold{micros(req.ClockOffsetUs), time.Now()})
		}
	}
}

// ClockOff says that this node's clock is off the majority's, by what the leader has
// said of late; empty: it is not, as far as is known.
func (m *Membership) ClockOff() string {
	told := m.clockTold.Load()
	if told == nil || time.Since(told.at) > conditionLooks*m.cfg.Timing.Health {
		return ""
	}
	return fmt.Sprintf("this node's clock is %s the majority's; more than %v keeps it from leading: set it right", aheadOf(told.by), m.cfg.MaxClockOffset)
}

// clockReasons are the sentences of Health.
func (m *Membership) clockReasons(g *reign) []string {
	v := g.clocks.Load()
	if v == nil {
		return nil
	}
	return v.reasons()
}
