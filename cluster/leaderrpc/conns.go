package leaderrpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/tap"
)

const (
	// maxMessageBytes bounds one message between nodes. A batch is at most one
	// request over groupcommit.MaxBatchBytes. A reply to a reserve has up to
	// job.MaxReserveBytes of bodies for each of its waiters in an entry.
	maxMessageBytes = 256 << 20

	// An idle connection is probed after keepAlive and closed keepAliveTimeout later, in
	// case the peer vanished without a reset.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// Conns is the pool of connections to other nodes, one each.
type Conns struct {
	dial func(ctx context.Context, serverID, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns map[peer]*grpc.ClientConn // nil after Close
	order []peer                    // least recently used first
}

// peer is a server at an address. The server's id is part of it, so that a request is
// never sent to another server that has the address now.
type peer struct{ serverID, addr string }

// maxPeers bounds the pool. A cluster has fewer nodes, but gossip records can be forged.
const maxPeers = 64

// NewConns returns an empty pool. dial connects to a server at an address, and to no
// other server there.
func NewConns(dial func(ctx context.Context, serverID, addr string) (net.Conn, error)) *Conns {
	return &Conns{dial: dial, conns: map[peer]*grpc.ClientConn{}}
}

// Get returns the connection to a server at addr. It does not block: the connection
// comes up with its first use, and again after a failure.
func (p *Conns) Get(_ context.Context, serverID, addr string) (*grpc.ClientConn, error) {
	to := peer{serverID, addr}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return nil, errors.New("the node is stopping")
	}
	if c := p.conns[to]; c != nil {
		if last := len(p.order) - 1; p.order[last] != to {
			p.order = append(slices.DeleteFunc(p.order, func(o peer) bool { return o == to }), to)
		}
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///peer",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.dial(ctx, serverID, addr) }),
		// The cluster port has no TLS yet; it belongs on a private network.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sentTracker{}),
		grpc.WithUnaryInterceptor(decodeFailures),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes), grpc.ForceCodecV2(messages)),
	)
	if err != nil {
		return nil, err
	}
	if len(p.order) >= maxPeers {
		oldest := p.order[0]
		p.conns[oldest].Close() // ends calls in flight, to a node that was not used for long
		delete(p.conns, oldest)
		p.order = p.order[1:]
	}
	p.conns[to] = c
	p.order = append(p.order, to)
	return c, nil
}

// Close closes all connections.
func (p *Conns) Close() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		c.Close() // ends calls in flight; there is nothing to report
	}
}

// NewServer returns the server at the other end of such connections. It refuses the calls
// for which admit fails.
func NewServer(admit func(ctx context.Context, method string) error) *grpc.Server {
	return grpc.NewServer(
		// The tap rejects a call by its header. Interceptors run after gRPC has read and
		// decoded a unary message of up to maxMessageBytes. They check again because gRPC
		// declares the tap experimental.
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
		grpc.ForceServerCodecV2(messages),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(maxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAlive / 2, PermitWithoutStream: true}),
	)
}
