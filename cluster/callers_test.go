package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/noderpc"
	"tarry/cluster/transport"
	"tarry/job/jobpb"
)

// A caller that is not a member may only ask a node for its status. It cannot read jobs,
// propose operations or remove members.
func TestANonMemberOnTheClusterPortIsRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	leader := c.nodes[c.leader()]
	do(t, leader, add("secret", "t", time.Hour))
	run := runOf(t, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: "secret"}}}})
	calls := map[string]func(context.Context, *leaderrpc.Frames) error{
		"read": func(ctx context.Context, p *leaderrpc.Frames) error {
			cc, err := p.Get(ctx, leader.data.ServerID(), leader.mux.Addr().String())
			require.NoError(t, err)
			_, err = noderpc.NewNodeClient(cc).Read(ctx, &jobpb.Read{What: &jobpb.Read_Job{Job: "secret"}})
			return err
		},
		"propose": func(ctx context.Context, p *leaderrpc.Frames) error {
			cc, err := p.Get(ctx, leader.data.ServerID(), leader.mux.Addr().String())
			require.NoError(t, err)
			_, err = noderpc.NewNodeClient(cc).Propose(ctx, &noderpc.ProposeRequest{Count: 1, Ops: run})
			return err
		},
		"wait": func(ctx context.Context, p *leaderrpc.Frames) error {
			cc, err := p.Get(ctx, leader.data.ServerID(), leader.mux.Addr().String())
			require.NoError(t, err)
			s, err := noderpc.NewNodeClient(cc).Wait(ctx)
			require.NoError(t, err)
			_, err = s.Recv()
			return err
		},
	}
	for _, clusterID := range []string{"", leader.clusterID()} {
		stranger, err := transport.Listen(transport.Options{
			Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: "n9.x", ClusterID: func() string { return clusterID },
		})
		require.NoError(t, err)
		frames := leaderrpc.NewFrames(stranger.DialFrames)
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			require.Equal(t, codes.PermissionDenied, status.Code(call(ctx, frames)), name)
			cancel()
		}
		frames.Close()
		p := leaderrpc.NewConns(stranger.DialRPC)
		cc, err := p.Get(context.Background(), leader.data.ServerID(), leader.mux.Addr().String())
		require.NoError(t, err)
		resp, err := memberpb.NewMembershipClient(cc).Status(context.Background(), &memberpb.StatusRequest{ServerId: "n9.x"})
		require.NoError(t, err, "a joiner asks that")
		require.False(t, resp.AskerConfigured)
		_, err = memberpb.NewMembershipClient(cc).Remove(context.Background(), &memberpb.RemoveRequest{Id: "n1"})
		require.Equal(t, codes.PermissionDenied, status.Code(err))
		p.Close()
		require.NoError(t, stranger.Close())
	}
	_, err := leader.shard.Job(context.Background(), "secret", false)
	require.NoError(t, err)
}

// The message of a non-member is not read: it could have 256 MiB, and more in memory.
func TestANonMemberIsRefusedBeforeItsMessage(t *testing.T) {
	c := newTestCluster(t, 1)
	leader := c.nodes[c.leader()]
	stranger, err := transport.Listen(transport.Options{Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: "n9.x"})
	require.NoError(t, err)
	defer stranger.Close()
	p := leaderrpc.NewConns(stranger.DialRPC)
	defer p.Close()
	cc, err := p.Get(context.Background(), leader.data.ServerID(), leader.mux.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, memberpb.Membership_Remove_FullMethodName)
	require.NoError(t, err)
	require.Equal(t, codes.PermissionDenied, status.Code(s.RecvMsg(new(memberpb.RemoveResponse))), "though nothing was sent but the head")
}

// Some calls are open to servers that are no members. What they may send is small.
func TestANonMemberHoldsLittleOfANodesMemory(t *testing.T) {
	c := newTestCluster(t, 1)
	leader := c.nodes[c.leader()]
	stranger, err := transport.Listen(transport.Options{Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: "n9.x"})
	require.NoError(t, err)
	defer stranger.Close()
	p := leaderrpc.NewConns(stranger.DialRPC)
	defer p.Close()
	cc, err := p.Get(context.Background(), leader.data.ServerID(), leader.mux.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = memberpb.NewMembershipClient(cc).Status(ctx, &memberpb.StatusRequest{ServerId: "n9.x", About: strings.Repeat("x", 128<<10)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)

	// Streams that were begun, and have no message yet. The next one waits for one of them to end.
	const allowed = 4
	begin := func(ctx context.Context) error {
		_, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, memberpb.Membership_Status_FullMethodName)
		return err
	}
	for range allowed {
		require.NoError(t, begin(ctx))
	}
	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	require.Equal(t, codes.DeadlineExceeded, status.Code(begin(short)))
}

// A node may speak in its own name only.
func TestAMessageOfAnotherServerIsRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	leader := c.nodes[c.leader()]
	other, err := transport.Listen(transport.Options{Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: "n9.x"})
	require.NoError(t, err)
	defer other.Close()
	p := leaderrpc.NewConns(other.DialRPC)
	defer p.Close()
	cc, err := p.Get(context.Background(), leader.data.ServerID(), leader.mux.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	calls, id := memberpb.NewMembershipClient(cc), leader.data.ServerID()
	_, err = calls.Status(ctx, &memberpb.StatusRequest{ServerId: id})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "a member's acks and clock warnings are believed")
	_, err = calls.Promise(ctx, &memberpb.PromiseRequest{ServerId: id})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = calls.Invite(ctx, &memberpb.InviteRequest{ServerId: id})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
}
