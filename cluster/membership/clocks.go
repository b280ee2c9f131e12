package membership

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// Clocks compares the clocks of all members now, as the leader sees them. It blocks
// for some seconds at most.
func (m *Membership) Clocks(ctx context.Context) (job.Clocks, error) {
	resp, err := viaLeader(ctx, m, readCall, &memberpb.ClocksRequest{}, (*server).Clocks, memberpb.MembershipClient.Clocks)
	return clocksFromPB(resp), err
}

func (m *Membership) clocksHere(ctx context.Context) (job.Clocks, error) {
	if r := m.raft.Load(); r == nil || r.State() != raft.Leader {
		return job.Clocks{}, errNotLeader
	}
	return m.clocks.Compare(ctx), nil
}

// ResetClock sets the queue's clock back to the majority's. It is refused with
// CodeConflict unless it is ahead of that by more than Config.MaxClockOffset. It
// returns when the clock is set; the instants of jobs are changed after that. It blocks
// for some seconds at most.
func (m *Membership) ResetClock(ctx context.Context) error {
	_, err := viaLeader(ctx, m, writeCall, &memberpb.ResetClockRequest{}, (*server).ResetClock, memberpb.MembershipClient.ResetClock)
	return err
}

func (m *Membership) resetClockHere(ctx context.Context) error {
	if m.leadership.Load() == nil {
		return errNotLeader
	}
	to, err := m.clocks.CheckReset(ctx)
	if err != nil {
		return err
	}
	return m.cfg.Decisions.ResetClock(ctx, to)
}

// askClock asks a server for its status, because the reply has the server's time.
func (m *Membership) askClock(ctx context.Context, id raft.ServerID) error {
	addr, err := m.ServerAddr(id)
	if err != nil {
		return err
	}
	_, err = m.ask(ctx, string(id), string(addr))
	return err
}

// addClockWarning adds a warning to a status request if the server's clock is off.
func (m *Membership) addClockWarning(id raft.ServerID, req *memberpb.StatusRequest) {
	if by, off := m.clocks.Off(id); off {
		req.ClockOff, req.ClockOffsetUs = true, by.Microseconds()
	}
}

// recordClockWarning records such a warning if it comes from the leader.
func (m *Membership) recordClockWarning(req *memberpb.StatusRequest) {
	if r := m.raft.Load(); r != nil && req.GetClockOff() {
		if _, leader := r.LeaderWithID(); string(leader) == req.GetServerId() {
			m.clocks.RecordWarning(micros(req.ClockOffsetUs))
		}
	}
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
