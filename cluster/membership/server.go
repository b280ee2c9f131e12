package membership

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
	"tarry/cluster/transport"
	"tarry/job"
)

// server serves the calls of other nodes.
type server struct {
	memberpb.UnimplementedMembershipServer
	m *Membership
}

// fromSelf returns an error unless the caller is the server that its message names. The
// transport has checked the caller's id against its certificate, if it has one.
func fromSelf(ctx context.Context, serverID string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return nil
	}
	caller, ok := p.Addr.(*transport.CallerAddr)
	if ok && caller.ServerID != serverID {
		return status.Errorf(codes.PermissionDenied, "server %.64q sent a message of server %.64q", caller.ServerID, serverID)
	}
	return nil // without such an address the call came by no cluster port: a test's
}

func (s *server) Status(ctx context.Context, req *memberpb.StatusRequest) (*memberpb.StatusResponse, error) {
	if err := fromSelf(ctx, req.GetServerId()); err != nil {
		return nil, err
	}
	// Forged acks could end this process or another node's, and a forged clock warning
	// could end the leadership, so only members' are used.
	if s.m.Configured(req.GetServerId()) {
		s.m.mergeAcks(req.GetAcks())
		s.m.recordClockWarning(req)
		s.m.recordRefusedAdds(req)
		s.m.recordRing(req.GetServerId(), req.GetKeyring())
	}
	resp := s.m.status(req.GetServerId())
	resp.AboutConfigured = req.GetAbout() != "" && s.m.Configured(req.GetAbout())
	return resp, nil
}

func (s *server) Promise(ctx context.Context, req *memberpb.PromiseRequest) (*memberpb.PromiseResponse, error) {
	if err := fromSelf(ctx, req.GetServerId()); err != nil {
		return nil, err
	}
	reason := s.m.grantPromise(req, time.Now())
	return &memberpb.PromiseResponse{Granted: reason == "", Reason: reason}, nil
}

func (s *server) Invite(ctx context.Context, req *memberpb.InviteRequest) (*memberpb.InviteResponse, error) {
	if err := fromSelf(ctx, req.GetServerId()); err != nil {
		return nil, err
	}
	reason := s.m.acceptInvitation(req)
	return &memberpb.InviteResponse{Accepted: reason == "", Reason: reason}, nil
}

func (s *server) Prove(ctx context.Context, req *memberpb.ProveRequest) (*memberpb.ProveResponse, error) {
	if err := fromSelf(ctx, req.GetServerId()); err != nil {
		return nil, err
	}
	return s.m.prove(req), nil
}

func (s *server) Members(ctx context.Context, _ *memberpb.MembersRequest) (*report.Members, error) {
	if r := s.m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil, errNotLeader
	}
	members, err := s.m.membersHere(ctx)
	return &report.Members{Members: members}, err
}

func (s *server) Health(context.Context, *memberpb.HealthRequest) (*report.Health, error) {
	if h := s.m.LeaderHealth(); h != nil {
		return h, nil
	}
	return nil, errNotLeader
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

func (s *server) Removed(context.Context, *memberpb.RemovedRequest) (*report.RemovedNodes, error) {
	if r := s.m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil, errNotLeader
	}
	return &report.RemovedNodes{Nodes: s.m.removedHere()}, nil
}

func (s *server) Admit(ctx context.Context, req *memberpb.AdmitRequest) (*memberpb.AdmitResponse, error) {
	return &memberpb.AdmitResponse{}, s.m.admitHere(ctx, req.Id)
}

// callFor bounds an operator's call whose caller sets no earlier deadline.
const callFor = 45 * time.Second

// The rules of the operators' calls. A read returns what this node knows if there is no
// leader, so it waits a shorter time for one.
var (
	readCall  = leaderrpc.Rules{Within: callFor, Hold: time.Second, Read: true}
	writeCall = leaderrpc.Rules{Within: callFor, Hold: 5 * time.Second}
)

// errNotLeader is returned by a node that did nothing because it does not lead.
var errNotLeader = leaderrpc.ErrNotLeader

// viaLeader makes an operator's call where the leader is: here, or at another node.
func viaLeader[Req, Resp any](ctx context.Context, m *Membership, rules leaderrpc.Rules, req Req,
	here func(*server, context.Context, Req) (Resp, error),
	there func(memberpb.MembershipClient, context.Context, Req, ...grpc.CallOption) (Resp, error),
) (Resp, error) {
	if rules.Read && len(m.configuration().Servers) == 0 {
		rules.Hold = 0 // a node that is in no cluster finds no leader by waiting
	}
	way := leaderrpc.Router[memberpb.MembershipClient]{Self: m.cfg.ServerID, Leader: m.leaderNow, Client: m.client}
	resp, err := leaderrpc.Call(ctx, &way, rules, req, func(ctx context.Context, req Req) (Resp, error) {
		return here(&server{m: m}, ctx, req)
	}, there)
	if errors.Is(err, leaderrpc.ErrNoLeader) {
		err = job.NotApplied("%w; nothing was done", leaderrpc.ErrNoLeader)
	}
	return resp, err
}

// leaderNow is Leader for a leaderrpc.Router.
func (m *Membership) leaderNow() (leaderrpc.Leader, <-chan struct{}) {
	l, _ := m.Leader()
	return leaderrpc.Leader{ID: l.ServerID, Addr: l.ClusterAddr}, nil
}
