package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/internal/sleep"
	"tarry/job"
)

// The leader of a data group makes its configuration that of group 0, as the state of group 0 has it,
// one change at a time. It acts on a state that is as new as that of group 0's leader: with an older one it
// would take in again what was removed.

// followMembers makes the changes that are due now.
func (g *Group) followMembers(ctx context.Context, l *groupLeadership) error {
	g.noteCaughtUp(ctx, l)
	if len(g.changes(l)) == 0 {
		return nil
	}
	if err := g.m.cfg.CatchUp(ctx); err != nil {
		return err
	}
	for list := g.changes(l); len(list) > 0; list = g.changes(l) {
		var errs []error
		for _, c := range list {
			err := g.change(ctx, c)
			if err == nil {
				errs = nil // the others may be possible now
				break
			}
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// memberChange is a change of a configuration by one server.
type memberChange struct {
	kind   changeKind
	server raft.Server
}

type changeKind string

const (
	removes  changeKind = "remove"
	moves    changeKind = "change the address of"
	adds     changeKind = "add"
	promotes changeKind = "promote"
)

func (g *Group) changes(l *groupLeadership) []memberChange {
	return changesTo(g.m.cfg.Committed(), g.configuration(), func(id raft.ServerID) bool {
		since, ok := l.caughtUp[id]
		return ok && time.Since(since) >= g.m.cfg.Timing.Stabilize
	})
}

// changesTo returns the changes by which a configuration becomes the wanted one, in the order in which
// to try them. Those that leave come first, because Raft takes an address only once.
func changesTo(want, have raft.Configuration, caughtUp func(raft.ServerID) bool) (list []memberChange) {
	if len(want.Servers) == 0 || len(have.Servers) == 0 {
		return nil
	}
	wanted := make(map[raft.ServerID]raft.Server)
	for _, s := range want.Servers {
		wanted[s.ID] = s
	}
	for _, s := range have.Servers {
		if !raftconfig.Contains(want, s.ID) {
			list = append(list, memberChange{removes, s})
		}
	}
	there := make(map[raft.ServerID]raft.Server)
	for _, s := range have.Servers {
		there[s.ID] = s
	}
	for _, w := range want.Servers {
		switch h, ok := there[w.ID]; {
		case !ok:
			list = append(list, memberChange{adds, w})
		case h.Address != w.Address:
			list = append(list, memberChange{moves, w})
		case h.Suffrage != raft.Voter && w.Suffrage == raft.Voter && caughtUp(w.ID):
			list = append(list, memberChange{promotes, w})
		}
	}
	return list
}

// change makes one change, and waits until it is committed.
func (g *Group) change(ctx context.Context, c memberChange) (err error) {
	r, node := g.cfg.Raft(), raftconfig.NodeID(c.server.ID)
	switch c.kind {
	case removes:
		have := g.configuration()
		if c.server.ID == g.m.self() {
			return nil // giveWay lets another node remove this one
		}
		if err := checkRemoval(have, g.m.aliveServers(ctx, have), c.server.ID); err != nil {
			return err
		}
		err = r.RemoveServer(c.server.ID, 0, changeTimeout).Error()
	case adds, moves:
		if err = g.freeAddress(c.server); err == nil {
			err = r.AddNonvoter(c.server.ID, c.server.Address, 0, changeTimeout).Error() // keeps a voter a voter
		}
	case promotes:
		err = r.AddVoter(c.server.ID, c.server.Address, 0, changeTimeout).Error()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.kind, node, err)
	}
	g.cfg.Logger.Info("the group follows the members", "change", string(c.kind), "member", node)
	return nil
}

// freeAddress gives another member that has the address a placeholder for one: members may have
// exchanged their addresses.
func (g *Group) freeAddress(of raft.Server) error {
	for _, s := range g.configuration().Servers {
		if s.Address == of.Address && s.ID != of.ID {
			return g.cfg.Raft().AddNonvoter(s.ID, unknownAddress(s.ID), 0, changeTimeout).Error()
		}
	}
	return nil
}

// noteCaughtUp notes which servers without a vote have all that the leader has, but for lagLimit
// entries. What they have is known from their acknowledgements, without a question.
func (g *Group) noteCaughtUp(ctx context.Context, l *groupLeadership) {
	r := g.cfg.Raft()
	term, last := r.CurrentTerm(), r.LastIndex()
	var replies map[raft.ServerID]*memberpb.StatusResponse
	for _, s := range g.configuration().Servers {
		if s.Suffrage == raft.Voter {
			delete(l.caughtUp, s.ID)
			continue
		}
		if replies == nil {
			replies = g.m.round(ctx)
		}
		ack := g.cfg.Acked(string(s.ID))
		if ack.Term != term || ack.Index+lagLimit < last || replies[s.ID] == nil {
			delete(l.caughtUp, s.ID)
		} else if _, known := l.caughtUp[s.ID]; !known {
			l.caughtUp[s.ID] = time.Now()
		}
	}
}

// mayRemove returns an error if the removal of a server leaves group 0, whose configuration is c, or a
// data group without a quorum of live voters. Data groups follow later, so they may have others.
func (m *Membership) mayRemove(ctx context.Context, c raft.Configuration, id raft.ServerID) error {
	if err := checkRemoval(c, m.aliveServers(ctx, c), id); err != nil {
		return err
	}
	for _, g := range m.groups {
		c := g.cfg.Committed()
		if err := checkRemoval(c, m.aliveServers(ctx, c), id); err != nil {
			return job.Errorf(job.CodeOf(err), "shard %d: %w", g.cfg.Number-1, err)
		}
	}
	return nil
}

// awaitRemoval waits until no data group has the servers any more: until then their process must go
// on running, because a group may need its vote.
func (m *Membership) awaitRemoval(ctx context.Context, ids []raft.ServerID) error {
	for _, g := range m.groups {
		has := func(id raft.ServerID) bool { return raftconfig.Contains(g.cfg.Committed(), id) }
		for slices.ContainsFunc(ids, has) {
			if !sleep.For(ctx, m.cfg.Timing.Poll/10) {
				return job.Unknown("%s was removed from the cluster, but shard %d still has it: let its process run until the cluster's health says nothing of it any more", raftconfig.NodeID(ids[0]), g.cfg.Number-1)
			}
		}
	}
	return nil
}

// groupProblems returns which data groups do not have the members of group 0.
func (m *Membership) groupProblems() (list []*report.Problem) {
	for _, g := range m.groups {
		changes := changesTo(m.cfg.Committed(), g.cfg.Committed(), func(raft.ServerID) bool { return true })
		if len(changes) == 0 {
			continue
		}
		c := changes[0]
		list = append(list, report.NewProblem(report.ShardMembers, raftconfig.NodeID(c.server.ID), "shard %d does not have the cluster's members yet: its leader has to %s %s", g.cfg.Number-1, c.kind, raftconfig.NodeID(c.server.ID)))
	}
	return list
}
