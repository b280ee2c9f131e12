package membership

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
)

// Clocks compares the clocks of all members now, as the leader sees them. It blocks
// for some seconds at most.
func (m *Membership) Clocks(ctx context.Context) (*report.Clocks, error) {
	return viaLeader(ctx, m, readCall, &memberpb.ClocksRequest{}, (*server).Clocks, memberpb.MembershipClient.Clocks)
}

func (s *server) Clocks(ctx context.Context, _ *memberpb.ClocksRequest) (*report.Clocks, error) {
	if r := s.m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil, errNotLeader
	}
	return s.m.clocks.Compare(ctx), nil
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

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
