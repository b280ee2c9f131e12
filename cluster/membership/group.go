package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/ackguard"
	"tarry/cluster/clockguard"
	"tarry/cluster/diskpolicy"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
	"tarry/job"
)

// In a cluster with several shards, members join and leave group 0, and the leader of each data group
// makes that group follow: its version, and its configuration (groupmembers.go). It also gives
// leadership away when its node should not lead, as the leader of group 0 does (evaluate.go).

// GroupConfig is what a data group's Group needs of the node.
type GroupConfig struct {
	Number uint32
	Raft   func() *raft.Raft // the running one
	// Version is the group's cluster version. RaiseVersion raises it, and blocks until it is raised.
	Version      func() uint32
	RaiseVersion func(ctx context.Context, to uint32) error
	// Committed is the group's configuration as far as this node has applied it.
	Committed func() raft.Configuration
	Clocks    clockguard.Clocks
	// Acked is what a server has acknowledged in the group.
	Acked  func(serverID string) ackguard.Ack
	Disk   func() diskpolicy.Health // this node's, with the group's log
	Logger *slog.Logger
}

// Group is a data group on this node.
type Group struct {
	m      *Membership
	cfg    GroupConfig
	clocks *clockguard.Guard
	// attempts is how often this node, as the leader, tried to transfer leadership because it should
	// not lead.
	attempts atomic.Uint64
}

// NewGroup adds a data group. It is called before Start.
func (m *Membership) NewGroup(cfg GroupConfig) *Group {
	g := &Group{m: m, cfg: cfg}
	g.clocks = m.clocks.With(clockguard.Config{
		ServerID: m.self(), MaxOffset: m.cfg.MaxClockOffset, KeepFor: keepReports * m.cfg.Timing.Health, Logger: cfg.Logger,
		Clocks: cfg.Clocks, Configuration: g.configuration, Ask: m.askClock, Transfer: g.transferAway,
	})
	m.groups = append(m.groups, g)
	return g
}

func (g *Group) configuration() raft.Configuration { return raftconfig.Latest(g.cfg.Raft()) }

// ClockGuard compares this node's clock with those of the group's voters.
func (g *Group) ClockGuard() *clockguard.Guard { return g.clocks }

// TransferAttempts is Membership.TransferAttempts of the group.
func (g *Group) TransferAttempts() uint64 { return g.attempts.Load() }

// groupLeadership is what exists while this node leads a data group.
type groupLeadership struct {
	disks    *diskpolicy.Policy
	caughtUp map[raft.ServerID]time.Time // since when servers that do not vote are caught up
	gaveWay  time.Time                   // when leadership was last offered to another node
	logged   string                      // the last pass's error
}

// Lead does the leader's part until ctx ends.
func (g *Group) Lead(ctx context.Context) {
	m := g.m
	l := &groupLeadership{
		disks: diskpolicy.New(diskpolicy.Config{
			ServerID: m.self(), Own: g.cfg.Disk, KeepFor: keepReports * m.cfg.Timing.Health, MinLead: m.cfg.Timing.MinLead, Logger: g.cfg.Logger,
		}, time.Now()),
		caughtUp: make(map[raft.ServerID]time.Time),
	}
	g.clocks.Forget()
	defer g.clocks.Forget()
	for {
		err := errors.Join(g.followVersion(ctx), g.followMembers(ctx, l), g.giveWay(ctx, l))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.logged = ""
		case err.Error() != l.logged:
			l.logged = err.Error()
			g.cfg.Logger.Warn("the group does not follow the cluster yet; trying again", "error", err)
		}
		if !sleep.For(ctx, m.cfg.Timing.Health) {
			return
		}
	}
}

// followVersion raises the group's version to that of group 0, of which all members run it.
func (g *Group) followVersion(ctx context.Context) error {
	present := g.cfg.Version()
	if present >= g.m.cfg.Facts.Version() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := g.cfg.RaiseVersion(ctx, present+1); err != nil {
		return fmt.Errorf("raise the version of the group to %d: %w", present+1, err)
	}
	return nil
}

// giveWay transfers leadership if this node should not lead: it was removed or drained, its clock is
// off, or its disk is worse than another's.
func (g *Group) giveWay(ctx context.Context, l *groupLeadership) error {
	m := g.m
	replies := m.round(ctx)
	candidates := func() []raft.ServerID { return g.candidates(replies) }
	g.clocks.Check(ctx, candidates)
	for id, a := range replies {
		l.disks.Record(id, diskHealthFromPB(a), time.Now())
	}
	why := ""
	switch {
	case m.Removed():
		why = "this node was removed from the cluster"
	case m.cfg.Condition.Drained():
		why = "this node is drained"
	}
	if why == "" {
		to, why := l.disks.BetterLeader(candidates(), time.Now())
		if to == "" {
			return nil
		}
		g.cfg.Logger.Warn("transferring leadership", "to", raftconfig.NodeID(to), "because", why)
		return g.transferAway(to)
	}
	list := candidates()
	if len(list) == 0 || time.Since(l.gaveWay) < giveWayAgain {
		return nil
	}
	l.gaveWay = time.Now()
	g.cfg.Logger.Info("transferring leadership", "to", raftconfig.NodeID(list[0]), "because", why)
	return g.transferAway(list[0])
}

// giveWayAgain is the least time between two attempts to give leadership away.
const giveWayAgain = 10 * time.Second

// candidates returns the other voters of the group that could lead.
func (g *Group) candidates(replies map[raft.ServerID]*memberpb.StatusResponse) (list []raft.ServerID) {
	for _, id := range raftconfig.Voters(g.configuration()) {
		_, off := g.clocks.Off(id)
		if a := replies[id]; id != g.m.self() && a != nil && !a.Drained && a.Trouble == "" && !off {
			list = append(list, id)
		}
	}
	// Otherwise the leaders of all groups of a node would go to the same one.
	if n := len(list); n > 0 {
		first := int(g.cfg.Number) % n
		list = slices.Concat(list[first:], list[:first])
	}
	return list
}

func (g *Group) transferAway(to raft.ServerID) error {
	g.attempts.Add(1)
	return g.transferTo(to)
}

// transferTo transfers leadership to a voter. Raft ends the attempt after an election timeout.
func (g *Group) transferTo(to raft.ServerID) error {
	for _, s := range g.configuration().Servers {
		if s.ID != to {
			continue
		}
		if err := g.cfg.Raft().LeadershipTransferToServer(s.ID, s.Address).Error(); err != nil {
			return job.NotApplied("leadership of shard %d was not handed over: %w", g.cfg.Number-1, err)
		}
		return nil
	}
	return unknownMember(string(to), g.configuration())
}

// TransferFrom transfers leadership of the group from this node, if it leads, to a voter that is not
// drained. Without such a voter it fails with CodeConflict.
func (g *Group) TransferFrom(ctx context.Context) error {
	if g.cfg.Raft().State() != raft.Leader {
		return nil
	}
	failed := NoHeir(g.m.cfg.NodeID)
	for _, heir := range g.candidates(g.m.round(ctx)) {
		if failed = g.transferTo(heir); failed == nil || g.cfg.Raft().State() != raft.Leader {
			return nil
		}
	}
	return failed
}
