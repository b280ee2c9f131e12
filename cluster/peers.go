package cluster

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
	"google.golang.org/grpc/status"
)

const (
	// maxMessageBytes bounds one message between nodes. A batch is at most one
	// request over maxBatchBytes; an answer to a reserve has up to
	// job.MaxReserveBytes of bodies for each of its waiters in an entry.
	maxMessageBytes = 256 << 20

	// A connection on which nothing moves is probed after keepAlive and given
	// up keepAliveTimeout later: a peer that vanished without a reset.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// peers is the pool of connections to other nodes, one each.
type peers struct {
	dial func(ctx context.Context, serverID, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns map[peer]*grpc.ClientConn // nil after close
	order []peer                    // the one that was used last is the last
}

// peer is a server at an address. The server's id is part of it: another one that has
// got the address must not be talked to in its place.
type peer struct{ serverID, addr string }

// maxPeers bounds the pool: there are no more nodes, but what gossip says of them
// comes from anybody.
const maxPeers = 64

func newPeers(dial func(ctx context.Context, serverID, addr string) (net.Conn, error)) *peers {
	return &peers{dial: dial, conns: map[peer]*grpc.ClientConn{}}
}

// get returns the connection to a server at addr. It does not block: the connection
// comes up with its first use, and again after a failure.
func (p *peers) get(_ context.Context, serverID, addr string) (*grpc.ClientConn, error) {
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
		grpc.WithUnaryInterceptor(plainErrors),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
	)
	if err != nil {
		return nil, err
	}
	if len(p.order) >= maxPeers {
		oldest := p.order[0]
		p.conns[oldest].Close() // ends calls in flight, of a node that is long gone
		delete(p.conns, oldest)
		p.order = p.order[1:]
	}
	p.conns[to] = c
	p.order = append(p.order, to)
	return c, nil
}

// plainErrors takes gRPC's own words ("rpc error: code = ...") out of the errors of
// calls, which reach users.
func plainErrors(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if st, ok := status.FromError(err); ok && err != nil {
		return &callError{st}
	}
	return err
}

// callError is the failure of a call between nodes. status.FromError finds its code
// and details.
type callError struct{ status *status.Status }

func (e *callError) Error() string              { return e.status.Message() }
func (e *callError) GRPCStatus() *status.Status { return e.status }

func (p *peers) close() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		c.Close() // ends calls in flight; there is nothing to report
	}
}

func newRPCServer(a admission) *grpc.Server {
	return grpc.NewServer(
		grpc.InTapHandle(a.tap),
		grpc.UnaryInterceptor(a.unary),
		grpc.StreamInterceptor(a.stream),
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(maxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAlive / 2, PermitWithoutStream: true}),
	)
}
