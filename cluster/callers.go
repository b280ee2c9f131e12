package cluster

import (
	"context"

	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/transport"
)

// openToAll are the calls by which nodes that are in no cluster find one. All other calls
// are for members only.
var openToAll = map[string]bool{
	memberpb.Membership_Status_FullMethodName:  true,
	memberpb.Membership_Promise_FullMethodName: true,
	memberpb.Membership_Invite_FullMethodName:  true,
	memberpb.Membership_Prove_FullMethodName:   true,
}

// admission rejects calls of nodes that are not members. It identifies a caller by the
// server id in the connection's header. This keeps out unrelated and removed nodes, but
// not an attacker who uses a member's id.
type admission struct {
	member func(serverID string) bool
}

func (a admission) check(ctx context.Context, method string) error {
	p, _ := grpcpeer.FromContext(ctx)
	var caller *transport.CallerAddr
	if p != nil {
		caller, _ = p.Addr.(*transport.CallerAddr)
	}
	switch {
	case caller == nil || caller.ServerID == "":
		return status.Error(codes.PermissionDenied, "the caller does not say which server it is")
	case openToAll[method] || a.member(caller.ServerID):
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "server %.64q is no member of the cluster", caller.ServerID)
}
