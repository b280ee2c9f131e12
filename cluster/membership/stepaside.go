package membership

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// A leader whose disk is low or slow holds up everyone: each entry is on its disk
// before it is sent. It hands leadership to a voter that does better, and these
// rules see to it that leadership then stays there:
//
//   - Room comes before speed, and only a much faster voter counts as faster. So
//     each move is towards a better one, and when all are alike nobody moves.
//   - The reason must have lasted for several looks.
//   - A leader leads for a while before it thinks of it, and again after each
//     attempt. So disks whose pace changes move leadership once in that time.
const (
	// slowWrite is a mean append time that holds up the queue: some hundred
	// times that of a disk that is well.
	slowWrite = 500 * time.Millisecond
	// muchFaster is how many times faster a voter must be.
	muchFaster = 4
	// looksForReason is how many looks in a row must see the reason.
	looksForReason = 3
	// conditionLooks is for how many looks a report of a condition counts.
	conditionLooks = 5
)

// judge follows the conditions of the voters until ctx ends.
func (m *Membership) judge(ctx context.Context, g *reign) {
	m.lookAtClocks(ctx, g)
	begin := time.Now()
	seen := 0
	tick := time.NewTicker(m.cfg.Timing.Health)
	defer tick.Stop()
	for {
		timed := false
		select {
		case <-ctx.Done():
			return
		case <-m.toJudge:
		case <-tick.C:
			timed = true
		}
		m.lookAtClocks(ctx, g)
		conditions := m.conditions(g)
		m.judgeRoom(g, conditions)
		if !timed {
			continue
		}
		to, why := m.betterLeader(g, conditions)
		if to == "" {
			seen = 0
			continue
		}
		if seen++; seen < looksForReason || time.Since(begin) < m.cfg.Timing.Settle {
			continue
		}
		begin, seen = time.Now(), 0
		m.gaveWay.Add(1)
		m.cfg.Logger.Warn("handing leadership over", "to", nodeIDOf(string(to)), "because", why)
		if err := m.handOver(nodeIDOf(string(to))); err != nil {
			m.cfg.Logger.Warn("could not hand leadership over; trying again later", "error", err)
		}
	}
}

// GaveWay is how often this node, leading, tried to hand leadership to a voter
// with a better disk or a right clock.
func (m *Membership) GaveWay() uint64 { return m.gaveWay.Load() }

// conditions are those known now; this node's own is always fresh.
func (m *Membership) conditions(g *reign) map[raft.ServerID]Condition {
	c := g.reports.since(time.Now().Add(-conditionLooks * m.cfg.Timing.Health))
	c[raft.ServerID(m.cfg.ServerID)] = m.cfg.Condition()
	return c
}

func (m *Membership) judgeRoom(g *reign, conditions map[raft.ServerID]Condition) {
	why := noRoom(votersOf(m.configuration()), conditions)
	old := g.noRoom.Swap(&why)
	switch before := old != nil && *old != ""; {
	case why != "" && !before:
		m.cfg.Logger.Warn("refusing adds; everything else goes on", "because", why)
	case why == "" && before:
		m.cfg.Logger.Info("taking adds again")
	}
}

// betterLeader is the voter that should lead instead of this node, and why;
// empty when there is none.
func (m *Membership) betterLeader(g *reign, conditions map[raft.ServerID]Condition) (raft.ServerID, string) {
	fit := m.fitToLead(g)
	if v := g.clocks.Load(); v != nil {
		fit = slices.DeleteFunc(fit, v.off)
	}
	return better(m.self(), fit, conditions)
}

// fitToLead are the voters that are alive and keep up.
func (m *Membership) fitToLead(g *reign) (fit []raft.ServerID) {
	state := g.pilot.GetState()
	for _, id := range votersOf(m.configuration()) {
		if s := state.Servers[id]; s != nil && s.Health.Healthy && s.Server.NodeStatus == autopilot.NodeAlive {
			fit = append(fit, id)
		}
	}
	return fit
}

// better picks among the voters that are fit to lead.
func better(self raft.ServerID, fit []raft.ServerID, conditions map[raft.ServerID]Condition) (to raft.ServerID, why string) {
	own := conditions[self]
	for _, id := range fit {
		c, known := conditions[id]
		if id == self || !known || c.DiskLow {
			continue
		}
		// One that has written nothing lately is taken for as slow as this one.
		faster := c.LogWrite > 0 && c.LogWrite <= own.LogWrite/muchFaster
		slow := own.LogWrite >= slowWrite && faster
		if (own.DiskLow || slow) && (to == "" || c.LogWrite < conditions[to].LogWrite) {
			to = id
		}
	}
	switch {
	case to == "":
		return "", ""
	case own.DiskLow:
		return to, fmt.Sprintf("the disk of this node is low (%d MiB free)", own.DiskFree>>20)
	}
	return to, fmt.Sprintf("the disk of this node is slow: a write to the log takes %v, on the other %v",
		own.LogWrite.Round(time.Millisecond), conditions[to].LogWrite.Round(time.Microsecond))
}
