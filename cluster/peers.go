package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
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
	dial func(ctx context.Context, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by cluster address; nil after close
}

func newPeers(dial func(ctx context.Context, addr string) (net.Conn, error)) *peers {
	return &peers{dial: dial, conns: map[string]*grpc.ClientConn{}}
}

// get returns the connection to addr. It does not block: the connection comes up
// with its first use, and again after a failure.
func (p *peers) get(_ context.Context, addr string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return nil, errors.New("the node is stopping")
	}
	if c := p.conns[addr]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithContextDialer(p.dial),
		// The cluster port has no TLS yet; it belongs on a private network.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(sentTracker{}),
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
	p.conns[addr] = c
	return c, nil
}

func (p *peers) close() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		c.Close() // ends calls in flight; there is nothing to report
	}
}

func newRPCServer() *grpc.Server {
	return grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(maxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAlive, Timeout: keepAliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAlive / 2, PermitWithoutStream: true}),
	)
}
