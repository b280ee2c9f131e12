package membership

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"tarry/cluster/clockguard"
	"tarry/cluster/diskpolicy"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
)

// keepReports is the number of health intervals for which a node's report of its disk or
// clock counts.
const keepReports = 5

func (m *Membership) newClockGuard() *clockguard.Guard {
	return clockguard.New(clockguard.Config{
		ServerID: m.self(), MaxOffset: m.cfg.MaxClockOffset, KeepFor: keepReports * m.cfg.Timing.Health, Logger: m.cfg.Logger,
		Clocks:        m.cfg.Clocks,
		Configuration: m.configuration, Ask: m.askClock, Transfer: m.transferAway,
	})
}

func (m *Membership) newDiskPolicy() *diskpolicy.Policy {
	return diskpolicy.New(diskpolicy.Config{
		ServerID: m.self(), Own: m.cfg.Condition.Disk, KeepFor: keepReports * m.cfg.Timing.Health,
		MinLead: m.cfg.Timing.MinLead, Logger: m.cfg.Logger,
	}, time.Now())
}

// evaluate checks the voters' clocks and disks until ctx ends. It decides whether adds
// are refused, and whether another voter should lead.
func (m *Membership) evaluate(ctx context.Context, l *leadership) {
	candidates := func() []raft.ServerID { return m.candidates(l) }
	m.clocks.Check(ctx, candidates)
	tick := time.NewTicker(m.cfg.Timing.Health)
	defer tick.Stop()
	for {
		timed := false
		select {
		case <-ctx.Done():
			return
		case <-m.toEvaluator:
		case <-tick.C:
			timed = true
		}
		m.clocks.Check(ctx, candidates)
		l.disks.Evaluate(raftconfig.Voters(m.configuration()), time.Now())
		if !timed {
			continue
		}
		to, why := l.disks.BetterLeader(candidates(), time.Now())
		if to == "" {
			continue
		}
		m.cfg.Logger.Warn("transferring leadership", "to", raftconfig.NodeID(to), "because", why)
		if err := m.transferAway(to); err != nil {
			m.cfg.Logger.Warn("could not transfer leadership; trying again later", "error", err)
		}
	}
}

// Evaluate makes a leader check disks and clocks now. The node calls it when its disk
// becomes low or is no longer low, or when its clock is off. It does not block. Without
// it the change is noticed within seconds.
func (m *Membership) Evaluate() { poke(m.toEvaluator) }

// candidates returns the voters that could lead: they are alive and keep up, and their
// clocks are not known to be off.
func (m *Membership) candidates(l *leadership) (list []raft.ServerID) {
	state := l.autopilot.GetState()
	for _, id := range raftconfig.Voters(m.configuration()) {
		_, off := m.clocks.Off(id)
		if s := state.Servers[id]; s != nil && !off && s.Health.Healthy && s.Server.NodeStatus == autopilot.NodeAlive {
			list = append(list, id)
		}
	}
	return list
}

// transferAway transfers leadership to a voter with a better disk or a right clock.
func (m *Membership) transferAway(to raft.ServerID) error {
	m.transferAttempts.Add(1)
	return m.handOver(raftconfig.NodeID(to))
}

// TransferAttempts returns how often this node, as the leader, tried to transfer leadership to a
// voter with a better disk or a right clock.
func (m *Membership) TransferAttempts() uint64 { return m.transferAttempts.Load() }

// ClockGuard compares this node's clock with the voters'.
func (m *Membership) ClockGuard() *clockguard.Guard { return m.clocks }

// AddsRefused returns, on the leader, why adds are to be refused now; empty: they are
// accepted. On other nodes it is always empty with one shard; with several it is what the leader of
// group 0 has said last. It is cheap.
func (m *Membership) AddsRefused() string {
	if l := m.leadership.Load(); l != nil {
		return l.disks.AddsRefused()
	}
	if r := m.refused.Load(); r != nil && time.Since(r.at) < keepReports*m.cfg.Timing.Health {
		return r.why
	}
	return ""
}

// refusedAdds is what the leader of group 0 says of adds.
type refusedAdds struct {
	why string
	at  time.Time
}

// recordRefusedAdds records that if the request comes from that leader.
func (m *Membership) recordRefusedAdds(req *memberpb.StatusRequest) {
	if m.cfg.Shards == 1 {
		return
	}
	if l, ok := m.Leader(); ok && l.ServerID == req.GetServerId() {
		m.refused.Store(&refusedAdds{req.GetAddsRefused(), time.Now()})
	}
}
