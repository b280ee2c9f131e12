package membership

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// server serves the calls of other nodes.
type server struct {
	memberpb.UnimplementedMembershipServer
	m *Membership
}

func (s *server) Status(_ context.Context, req *memberpb.StatusRequest) (*memberpb.StatusResponse, error) {
	// Forged acks could end this process or another node's, and a forged clock warning
	// could end the leadership, so only members' are used.
	if s.m.Configured(req.GetServerId()) {
		s.m.mergeAcks(req.GetAcks())
		s.m.recordClockWarning(req)
	}
	return s.m.status(req.GetServerId()), nil
}

func (s *server) Promise(_ context.Context, req *memberpb.PromiseRequest) (*memberpb.PromiseResponse, error) {
	reason := s.m.grantPromise(req, time.Now())
	return &memberpb.PromiseResponse{Granted: reason == "", Reason: reason}, nil
}

func (s *server) Invite(_ context.Context, req *memberpb.InviteRequest) (*memberpb.InviteResponse, error) {
	reason := s.m.acceptInvitation(req)
	return &memberpb.InviteResponse{Accepted: reason == "", Reason: reason}, nil
}

func (s *server) Members(ctx context.Context, _ *memberpb.MembersRequest) (*memberpb.MembersResponse, error) {
	if r := s.m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil, errNotLeader
	}
	members, err := s.m.membersHere(ctx)
	if err != nil {
		return nil, err
	}
	resp := &memberpb.MembersResponse{}
	for _, n := range members {
		resp.Members = append(resp.Members, &memberpb.Member{
			Id: n.ID, Address: n.Address, HttpAddress: n.HTTPAddress, Role: n.Role, Voter: n.Voter,
			Alive: n.Alive, AppliedIndex: n.AppliedIndex, Lag: n.Lag, Version: n.Version,
			MinVersion: n.Runs.Min, MaxVersion: n.Runs.Max, ClusterVersion: n.ClusterVersion,
		})
	}
	return resp, nil
}

func membersFromPB(resp *memberpb.MembersResponse) []job.Member {
	var out []job.Member
	for _, n := range resp.GetMembers() {
		out = append(out, job.Member{
			ID: n.Id, Address: n.Address, HTTPAddress: n.HttpAddress, Role: n.Role, Voter: n.Voter,
			Alive: n.Alive, AppliedIndex: n.AppliedIndex, Lag: n.Lag, Version: n.Version,
			Runs: job.Versions{Min: n.MinVersion, Max: n.MaxVersion}, ClusterVersion: n.ClusterVersion,
		})
	}
	return out
}

func (s *server) Health(ctx context.Context, _ *memberpb.HealthRequest) (*memberpb.HealthResponse, error) {
	h, err := s.m.healthHere(ctx)
	if err != nil {
		return nil, err
	}
	return &memberpb.HealthResponse{
		Healthy: h.Healthy, FailureTolerance: int32(h.FailureTolerance), Reasons: h.Reasons,
		ClusterVersion: h.ClusterVersion, Upgrade: h.Upgrade,
	}, nil
}

func (s *server) Clocks(ctx context.Context, _ *memberpb.ClocksRequest) (*memberpb.ClocksResponse, error) {
	c, err := s.m.clocksHere(ctx)
	if err != nil {
		return nil, err
	}
	return clocksToPB(c), nil
}

func (s *server) ResetClock(ctx context.Context, _ *memberpb.ResetClockRequest) (*memberpb.ResetClockResponse, error) {
	return &memberpb.ResetClockResponse{}, s.m.resetClockHere(ctx)
}

func (s *server) Remove(ctx context.Context, req *memberpb.RemoveRequest) (*memberpb.RemoveResponse, error) {
	return &memberpb.RemoveResponse{}, s.m.removeHere(ctx, req.Id)
}

func (s *server) Transfer(ctx context.Context, req *memberpb.TransferRequest) (*memberpb.TransferResponse, error) {
	return &memberpb.TransferResponse{}, s.m.transferHere(ctx, req.Id)
}
