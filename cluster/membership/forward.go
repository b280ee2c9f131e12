package membership

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

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
