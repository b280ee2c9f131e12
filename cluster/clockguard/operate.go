package clockguard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/job"
)

// The methods for operators' commands. They run on the leader.

// Offsets returns how far each member's clock was ahead of the majority's at the last
// Check, by node id. It is nil on nodes that do not lead.
func (g *Guard) Offsets() map[string]time.Duration {
	v := g.last.Load()
	if v == nil {
		return nil
	}
	list := make(map[string]time.Duration, len(v.offsets))
	for id, o := range v.offsets {
		list[raftconfig.NodeID(id)] = o.by
	}
	return list
}

// Problems lists what was wrong with the clocks at the last Check.
func (g *Guard) Problems() []*report.Problem {
	v := g.last.Load()
	if v == nil {
		return nil
	}
	return v.problems()
}

// Compare asks all members for the time and compares their clocks. It blocks for a second
// at most.
func (g *Guard) Compare(ctx context.Context) *report.Clocks {
	servers := g.cfg.Configuration().Servers
	ids := make([]raft.ServerID, len(servers))
	for i, s := range servers {
		ids[i] = s.ID
	}
	v := g.ask(ctx, ids, never)
	out := &report.Clocks{MaxOffsetUs: g.cfg.MaxOffset.Microseconds(), Agreed: v.agreed}
	if !v.majority.IsZero() {
		out.MajorityUs = v.majority.UnixMicro()
		out.ClusterAheadUs = g.queueAhead(v).Microseconds()
	}
	for _, s := range servers {
		o, known := v.offsets[s.ID]
		out.Nodes = append(out.Nodes, &report.NodeClock{
			Id: raftconfig.NodeID(s.ID), Voter: s.Suffrage == raft.Voter, Known: known,
			OffsetUs: o.by.Microseconds(), WithinUs: o.within.Microseconds(), Off: v.off(s.ID),
		})
	}
	slices.SortFunc(out.Nodes, func(a, b *report.NodeClock) int { return strings.Compare(a.Id, b.Id) })
	return out
}

// CheckLeader returns an error if the clock of a server that is to lead next is off,
// because that server would transfer leadership back. It asks the voters now, and
// blocks for a second at most.
func (g *Guard) CheckLeader(ctx context.Context, id raft.ServerID) error {
	v := g.ask(ctx, g.voters(), never)
	if !v.off(id) {
		return nil
	}
	return job.Errorf(job.CodeConflict, "the clock of %s is %s the majority's; more than %v keeps it from leading: set it right first",
		raftconfig.NodeID(id), aheadOf(v.offsets[id].by), v.most)
}

// CheckReset asks the voters for the time and returns the time to which the queue's clock
// is to be set back. It fails with CodeConflict unless that clock is ahead of the
// majority's by more than Config.MaxOffset. It blocks for a second at most.
func (g *Guard) CheckReset(ctx context.Context) (to time.Time, err error) {
	v := g.ask(ctx, g.voters(), agreed)
	switch {
	case v.majority.IsZero():
		return time.Time{}, job.NotApplied("no majority of the voters has reported its time within %v", confirmTimeout)
	case !v.agreed || !v.right(g.cfg.ServerID):
		return time.Time{}, job.Errorf(job.CodeConflict, "set the nodes' clocks right first: %s", report.Texts(v.problems()))
	}
	v.ahead = g.queueAhead(v)
	if !v.ranAway() {
		return time.Time{}, job.Errorf(job.CodeConflict, "the queue's clock is %s the nodes'; it is set back only when it is ahead by more than %v: a smaller difference disappears by itself",
			aheadOf(v.ahead), v.most)
	}
	g.cfg.Logger.Warn("setting the queue's clock back", "ahead", v.ahead.Round(time.Millisecond))
	return v.earliest(), nil
}

// queueAhead returns how far the queue's clock is ahead of the majority's, on the leader.
func (g *Guard) queueAhead(v verdict) time.Duration {
	return g.cfg.Clocks.Queue().Round(0).Sub(v.then(time.Now()))
}
