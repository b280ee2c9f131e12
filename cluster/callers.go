package cluster

import (
	"context"

	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/transport"
)

// forStrangers are the calls by which nodes that are in no cluster find one. All
// others are for members alone.
var forStrangers = map[string]bool{
	memberpb.Membership_Status_FullMethodName:  true,
	memberpb.Membership_Promise_FullMethodName: true,
	memberpb.Membership_Invite_FullMethodName:  true,
}

// admission refuses calls of those who may not make them. Who calls is what the
// caller has said in the connection's header: this keeps out strangers and nodes that
// were removed, not somebody who takes a member's name.
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
	case forStrangers[method] || a.member(caller.ServerID):
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "server %.64q is no member of the cluster", caller.ServerID)
}
