package leaderrpc

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"tarry/cluster/framerpc"
)

// Frames is the pool of connections to other nodes for calls in frames, one each.
type Frames struct{ pool[framed] }

// NewFrames returns an empty pool.
func NewFrames(dial Dial) *Frames {
	return &Frames{newPool(func(to peer) (framed, error) {
		return framed{framerpc.NewClient(func(ctx context.Context) (net.Conn, error) { return dial(ctx, to.serverID, to.addr) })}, nil
	})}
}

// Get returns the connection to a server at addr. It does not block: the connection
// comes up with its first use, and again after a failure.
func (p *Frames) Get(_ context.Context, serverID, addr string) (grpc.ClientConnInterface, error) {
	return p.get(peer{serverID, addr})
}

// NewFrameServer returns the server at the other end of such connections. It refuses the
// calls for which admit fails.
func NewFrameServer(admit func(ctx context.Context, method string) error) *framerpc.Server {
	return framerpc.NewServer(admit, statusOf)
}

// framed is a connection whose calls fail with the errors of their handlers.
type framed struct{ *framerpc.Client }

// Invoke implements grpc.ClientConnInterface.
func (f framed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := f.Client.Invoke(ctx, method, args, reply, opts...)
	if lost, ok := errors.AsType[*framerpc.LostError](err); ok {
		return &lostCall{status: status.Convert(lost), sent: lost.Sent}
	}
	return errorOf(err, true)
}

// Close implements io.Closer.
func (f framed) Close() error {
	f.Client.Close()
	return nil
}
