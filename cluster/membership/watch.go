package membership

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

// watch runs on every node until ctx ends. It updates the node's gossip record, looks
// for missing members, and detects that the node was removed.
func (m *Membership) watch(ctx context.Context) {
	// The first try is at once, the others at intervals that differ between nodes.
	next := time.Now()
	spread := m.recordState()
	logged := map[raft.ServerID]bool{}
	duplicates := map[string]string{}
	var renamed time.Time
	for {
		m.objectAnew(ctx, &renamed)
		m.fetchKeys(ctx)
		m.logAlive(logged)
		m.warnOfDuplicates(ctx, duplicates)
		m.seekVouchers(ctx)
		m.closeRemoved()
		if s := m.recordState(); s != spread {
			if m.updateRecord() {
				spread = s
			}
		}
		if now := time.Now(); !now.Before(next) {
			m.followAdvertisedIP(ctx)
			m.lookForKeys(ctx)
			m.fetchKeys(ctx)
			m.rejoin(ctx)
			m.checkRemoved(ctx)
			again := m.cfg.Timing.Rejoin
			if !m.hasState() {
				again = m.cfg.Timing.Poll // nodes that start together miss each other at first
			}
			next = time.Now().Add(again*3/4 + rand.N(again/2))
		}
		if !sleep.Until(ctx, m.cfg.Timing.Poll, m.toWatcher) {
			return
		}
	}
}

// logAlive logs which members have become alive and which are no longer. Only members
// in Raft's configuration count: gossip may be forged. logged has the last logged state.
func (m *Membership) logAlive(logged map[raft.ServerID]bool) {
	member := map[raft.ServerID]bool{}
	for _, s := range m.configuration().Servers {
		member[s.ID] = true
		_, now := m.PeerByServerID(string(s.ID))
		before, known := logged[s.ID]
		logged[s.ID] = now
		switch node := raftconfig.NodeID(s.ID); {
		case now && !known:
			m.cfg.Logger.Info("member is alive", "member", node, "address", s.Address)
		case now && !before:
			m.cfg.Logger.Info("member is back", "member", node, "address", s.Address)
		case !now && before:
			m.cfg.Logger.Warn("member has stopped or cannot be reached", "member", node, "address", s.Address)
		}
	}
	for id := range logged {
		if !member[id] {
			delete(logged, id)
			m.cfg.Logger.Info("member has left the cluster", "member", raftconfig.NodeID(id))
		}
	}
}

// recordState is the part of the gossip record that changes.
type recordState struct {
	cluster string
	fresh   bool
}

func (m *Membership) recordState() recordState {
	fresh := !m.hasState()
	if fresh {
		m.keepBinding()
	}
	return recordState{m.ClusterID(), fresh}
}

func (m *Membership) updateRecord() bool {
	p := m.pool.Load()
	if p == nil {
		return false
	}
	if err := p.Update(); err != nil {
		m.cfg.Logger.Debug("no other node has taken the changed record yet", "error", err)
	}
	return true
}

// keepBinding renews the binding to a cluster while one of its members is alive, and
// ends it a minute after the last was.
func (m *Membership) keepBinding() {
	id := m.binding.id()
	if id == "" {
		return
	}
	now := time.Now()
	for _, n := range m.others() {
		if n.ClusterID == id && !n.Fresh {
			m.binding.bind(id, now)
			return
		}
	}
	if m.binding.lapse(now) {
		m.cfg.Logger.Warn("no member of the cluster to join is alive any more; this node may join any cluster", "cluster", id)
	}
}

// checkRemoved asks the others when this node has reason to think that it is no longer
// a member. One answer is enough: a forgotten server stays forgotten, and its id is
// unique.
func (m *Membership) checkRemoved(ctx context.Context) {
	r := m.raft.Load()
	if m.removed.Load() || !m.hasState() {
		return
	}
	if _, leader := r.LeaderWithID(); leader != "" && m.Configured(m.cfg.ServerID) {
		return
	}
	for _, a := range m.askAll(ctx, m.toAsk(m.others())) {
		if a != nil && a.AskerForgotten {
			m.removed.Store(true)
			m.cfg.Logger.Error("this node was removed from the cluster; to bring it back, stop it, run tarry cluster admit on another node, move its data directory away and restart it")
			return
		}
	}
}
