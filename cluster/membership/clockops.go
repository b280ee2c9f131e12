package membership

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// ClockOffsets are how far the clocks of the members are ahead of the majority's,
// by node id, as this leader last saw them; nil on other nodes.
func (m *Membership) ClockOffsets() map[string]time.Duration {
	g := m.reign.Load()
	if g == nil {
		return nil
	}
	v := g.clocks.Load()
	if v == nil {
		return nil
	}
	list := make(map[string]time.Duration, len(v.offsets))
	for id, o := range v.offsets {
		list[nodeIDOf(string(id))] = o.by
	}
	return list
}

// Clocks compares the clocks of all members now, as the leader sees them. It blocks
// for some seconds at most.
func (m *Membership) Clocks(ctx context.Context) (job.Clocks, error) {
	return viaLeader(ctx, m, readCall, m.clocksHere, func(ctx context.Context, c memberpb.MembershipClient) (job.Clocks, error) {
		resp, err := c.Clocks(ctx, &memberpb.ClocksRequest{})
		return clocksFromPB(resp), err
	})
}

func (m *Membership) clocksHere(ctx context.Context) (job.Clocks, error) {
	r := m.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return job.Clocks{}, errNotLeader
	}
	var ids []raft.ServerID
	servers := m.configuration().Servers
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	v := m.askClocks(ctx, ids, never)
	out := job.Clocks{MaxOffset: m.cfg.MaxClockOffset, Agreed: v.agreed}
	if !v.majority.IsZero() {
		out.Majority = v.majority
		out.ClusterAhead = m.queueAhead(v)
	}
	for _, s := range servers {
		o, known := v.offsets[s.ID]
		out.Nodes = append(out.Nodes, job.NodeClock{
			ID: nodeIDOf(string(s.ID)), Voter: s.Suffrage == raft.Voter, Known: known,
			Offset: o.by, Within: o.within, Off: v.off(s.ID),
		})
	}
	slices.SortFunc(out.Nodes, func(a, b job.NodeClock) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// queueAhead is how far the queue's clock is ahead of the majority's, on the leader.
func (m *Membership) queueAhead(v clockVerdict) time.Duration {
	return m.cfg.ClusterClock().Round(0).Sub(v.then(time.Now()))
}

// ResetClock sets the queue's clock back to the majority's. It is refused with
// CodeConflict unless it is ahead of that by more than Config.MaxClockOffset. It
// returns when the clock is right; the jobs are gone through after that. It blocks for
// some seconds at most.
func (m *Membership) ResetClock(ctx context.Context) error {
	_, err := viaLeader(ctx, m, writeCall,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, m.resetClockHere(ctx) },
		func(ctx context.Context, c memberpb.MembershipClient) (struct{}, error) {
			_, err := c.ResetClock(ctx, &memberpb.ResetClockRequest{})
			return struct{}{}, err
		})
	return err
}

func (m *Membership) resetClockHere(ctx context.Context) error {
	if m.reign.Load() == nil {
		return errNotLeader
	}
	v := m.askClocks(ctx, votersOf(m.configuration()), agreed)
	switch {
	case v.majority.IsZero():
		return job.NotApplied("no majority of the voters has told the time within %v", confirmTimeout)
	case !v.agreed || !v.right(m.self()):
		return job.Errorf(job.CodeConflict, "set the nodes' clocks right first: %s", strings.Join(v.reasons(), "; "))
	}
	v.ahead = m.queueAhead(v)
	if !v.ranAway() {
		return job.Errorf(job.CodeConflict, "the queue's clock is %s the nodes'; it is set back only when it is ahead by more than %v: what is less heals by itself",
			aheadOf(v.ahead), v.most)
	}
	m.cfg.Logger.Warn("setting the queue's clock back", "ahead", v.ahead.Round(time.Millisecond))
	return m.cfg.ProposeClockReset(ctx, v.earliest())
}

func clocksToPB(c job.Clocks) *memberpb.ClocksResponse {
	resp := &memberpb.ClocksResponse{
		MaxOffsetUs: c.MaxOffset.Microseconds(), Agreed: c.Agreed, ClusterAheadUs: c.ClusterAhead.Microseconds(),
	}
	if !c.Majority.IsZero() {
		resp.MajorityUs = c.Majority.UnixMicro()
	}
	for _, n := range c.Nodes {
		resp.Nodes = append(resp.Nodes, &memberpb.NodeClock{
			Id: n.ID, Voter: n.Voter, Known: n.Known, OffsetUs: n.Offset.Microseconds(), WithinUs: n.Within.Microseconds(), Off: n.Off,
		})
	}
	return resp
}

func clocksFromPB(resp *memberpb.ClocksResponse) job.Clocks {
	c := job.Clocks{
		MaxOffset: micros(resp.GetMaxOffsetUs()), Agreed: resp.GetAgreed(), ClusterAhead: micros(resp.GetClusterAheadUs()),
	}
	if us := resp.GetMajorityUs(); us != 0 {
		c.Majority = time.UnixMicro(us)
	}
	for _, n := range resp.GetNodes() {
		c.Nodes = append(c.Nodes, job.NodeClock{
			ID: n.Id, Voter: n.Voter, Known: n.Known, Offset: micros(n.OffsetUs), Within: micros(n.WithinUs), Off: n.Off,
		})
	}
	return c
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
