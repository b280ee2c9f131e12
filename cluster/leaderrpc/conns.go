package leaderrpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/tap"
)

const (
	// maxReplyBytes bounds one reply. The leader also asks nodes that are no members, by gossip
	// alone. The largest has 10,000 removed nodes.
	maxReplyBytes = 4 << 20
	// maxRequestBytes bounds one request: servers outside Raft's configuration make some, too. The
	// largest are those for a status, with an ack of each member.
	maxRequestBytes = 64 << 10
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 8 << 10
	// memberStreams and strangerStreams bound the calls of one connection at a time. More wait at
	// the caller.
	memberStreams, strangerStreams = 128, 4
	// strangerAge is how long a connection of a caller that is no member lasts.
	strangerAge = 10 * time.Second

	// An idle connection is probed after keepAlive and closed keepAliveTimeout later, in
	// case the peer vanished without a reset.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second

	// idle is after how long without a call a connection is closed, or not tried again each second.
	// Its address may be of a node that is gone, or be from forged gossip.
	idle = 10 * time.Second
)

// Conns is the pool of gRPC connections to other nodes, one each.
type Conns struct{ pool[*grpc.ClientConn] }

// NewConns returns an empty pool. dial connects to a server at an address, and to no
// other server there.
func NewConns(dial Dial) *Conns {
	return &Conns{newPool(func(to peer) (*grpc.ClientConn, error) { return newConn(dial, to) })}
}

// Get returns the connection to a server at addr. It does not block: the connection
// comes up with its first use, and again after a failure.
func (p *Conns) Get(_ context.Context, serverID, addr string) (*grpc.ClientConn, error) {
	return p.get(peer{serverID, addr})
}

func newConn(dial Dial, to peer) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///peer",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, to.serverID, to.addr) }),
		// TLS is below, in package transport, which Raft uses, too. It passes the identity of
		// a caller on as the address of the connection.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sentTracker{}),
		grpc.WithUnaryInterceptor(decodeFailures),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(idle),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReplyBytes)),
	)
}

// NewServer returns the server at the other end of such connections, for callers that are members.
// It refuses the calls for which admit fails.
func NewServer(admit func(ctx context.Context, method string) error) *grpc.Server {
	return newServer(admit, memberStreams, grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAlive, Timeout: keepAliveTimeout}))
}

// NewStrangerServer is NewServer for callers that are no members. Its connections end after
// strangerAge, so that a caller that has become a member connects again, to the other server.
func NewStrangerServer(admit func(ctx context.Context, method string) error) *grpc.Server {
	return newServer(admit, strangerStreams, grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAlive, Timeout: keepAliveTimeout, MaxConnectionAge: strangerAge, MaxConnectionAgeGrace: strangerAge}))
}

func newServer(admit func(ctx context.Context, method string) error, streams uint32, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(more,
		// The tap rejects a call by its header. Interceptors run after gRPC has read and
		// decoded a unary message. They check again because gRPC declares the tap experimental.
		grpc.InTapHandle(func(ctx context.Context, call *tap.Info) (context.Context, error) {
			return ctx, admit(ctx, call.FullMethodName)
		}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := admit(ctx, call.FullMethod); err != nil {
				return nil, err
			}
			resp, err := next(ctx, req)
			return resp, statusOf(err)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, call *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := admit(s.Context(), call.FullMethod); err != nil {
				return err
			}
			return statusOf(next(srv, s))
		}),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(maxReplyBytes),
		grpc.MaxConcurrentStreams(streams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.InitialWindowSize(maxRequestBytes), // a fixed one; by default it grows
		grpc.InitialConnWindowSize(maxRequestBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAlive / 2, PermitWithoutStream: true}),
	)...)
}
