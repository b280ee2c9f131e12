package leaderrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// leadingNode is a node whose handlers all return the same error.
type leadingNode struct {
	noderpc.UnimplementedNodeServer
	end func(context.Context) error
}

func (n leadingNode) Propose(ctx context.Context, _ *noderpc.ProposeRequest) (*noderpc.ProposeResponse, error) {
	return nil, n.end(ctx)
}

func (n leadingNode) Read(ctx context.Context, _ *jobpb.Read) (*jobpb.ReadResult, error) {
	return nil, n.end(ctx)
}

// carrier is what carries the calls.
type carrier struct {
	server interface {
		grpc.ServiceRegistrar
		Serve(net.Listener) error
		Stop()
	}
	get   func(ctx context.Context, serverID, addr string) (grpc.ClientConnInterface, error)
	close func()
}

// carriers has both, for connections that dial makes.
func carriers(dial leaderrpc.Dial) map[string]carrier {
	admit := func(context.Context, string) error { return nil }
	conns, frames := leaderrpc.NewConns(dial), leaderrpc.NewFrames(dial)
	return map[string]carrier{
		"grpc": {leaderrpc.NewServer(admit), func(ctx context.Context, serverID, addr string) (grpc.ClientConnInterface, error) {
			return conns.Get(ctx, serverID, addr)
		}, conns.Close},
		"frames": {leaderrpc.NewFrameServer(admit), frames.Get, frames.Close},
	}
}

// forward sends a write and a read from a follower to a leader whose handlers end so.
// The outcome is the same whatever carries them.
func forward(t *testing.T, ctx func() context.Context, end func(context.Context) error) (write, read error) {
	first := true
	for name, c := range carriers(func(ctx context.Context, _, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		noderpc.RegisterNodeServer(c.server, leadingNode{end: end})
		served := make(chan error, 1)
		go func() { served <- c.server.Serve(l) }()
		w, r := forwardOver(ctx(), c, l.Addr().String())
		c.close()
		c.server.Stop()
		require.NoError(t, <-served)
		require.True(t, first || job.CodeOf(w) == job.CodeOf(write) && job.CodeOf(r) == job.CodeOf(read), "%s: %v, %v", name, w, r)
		write, read, first = w, r, false
	}
	return write, read
}

func forwardOver(ctx context.Context, c carrier, addr string) (write, read error) {
	leader := leaderrpc.Leader{ID: "n1.x", Addr: addr}
	way := &leaderrpc.Router[noderpc.NodeClient]{
		Self:   "n2.x",
		Leader: func() (leaderrpc.Leader, <-chan struct{}) { return leader, nil },
		Client: func(ctx context.Context, id, addr string) (noderpc.NodeClient, error) {
			cc, err := c.get(ctx, id, addr)
			return noderpc.NewNodeClient(cc), err
		},
	}
	_, write = leaderrpc.Ask(ctx, way, leaderrpc.Rules{}, leader, &noderpc.ProposeRequest{}, noderpc.NodeClient.Propose)
	_, read = leaderrpc.Ask(ctx, way, leaderrpc.Rules{Read: true}, leader, &jobpb.Read{}, noderpc.NodeClient.Read)
	return write, read
}

// Every kind of failure is the same at the follower as at the leader.
func TestAFailureOfTheLeaderReachesTheFollower(t *testing.T) {
	for name, failure := range map[string]*job.Error{
		"a code":             job.Errorf(job.CodeQuorumWouldFail, "removing n2 leaves 2 voters"),
		"a field":            job.Invalid("jobs[3].delay", "must be between 0 and 31 years"),
		"no leader":          leaderrpc.NoLeader(),
		"unknown outcome":    job.Unknown("the outcome is unknown: leadership lost while committing log"),
		"too large":          job.Errorf(job.CodeTooLarge, "the request takes 17000000 bytes in the log; it may take 16777216 at most"),
		"version not raised": job.NotApplied("%w", &oplog.NewerError{What: "Op.touch", Since: 2, Version: 1}),
		"overloaded":         {Code: job.CodeOverloaded, Message: "too much is waiting", RetryAfter: 2 * time.Second},
		"disk low":           {Code: job.CodeDiskLow, Message: "the disk of n1 is low", RetryAfter: 5 * time.Second},
		"typed internal":     job.Errorf(job.CodeInternal, "encode the request: too deep"),
		"a long message":     job.Errorf(job.CodeNotFound, "%s", strings.Repeat("é", 2<<10)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{failure, fmt.Errorf("wrapped: %w", failure)} {
				write, read := forward(t, t.Context, func(context.Context) error { return err })
				require.Equal(t, read, write)
				got, ok := errors.AsType[*job.Error](write)
				require.True(t, ok, "%T", write)
				require.Equal(t, failure.Code, got.Code)
				require.Equal(t, failure.Message, got.Message)
				require.Equal(t, failure.Field, got.Field)
				require.Equal(t, failure.RetryAfter, got.RetryAfter)
			}
		})
	}
}

func TestWhatIsNoFailureOfTheRequest(t *testing.T) {
	again := func(t *testing.T, err error) { require.Equal(t, leaderrpc.ErrNotLeader, err) }
	code := func(code job.Code, text string) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			require.Equal(t, code, job.CodeOf(err))
			require.ErrorContains(t, err, text)
			require.NotContains(t, err.Error(), "rpc error", "gRPC's own words must not reach users")
		}
	}
	unknown := code(job.CodeUnknown, "the outcome is unknown")
	for name, tt := range map[string]struct {
		end         error
		write, read func(*testing.T, error)
	}{
		"not the leader":          {leaderrpc.ErrNotLeader, again, again},
		"not the leader, wrapped": {fmt.Errorf("no: %w", leaderrpc.ErrNotLeader), again, again},
		"cancelled there":         {context.Canceled, unknown, again},
		"out of time there":       {context.DeadlineExceeded, unknown, again},
		"an error without a code": {errors.New("disk on fire"), code(job.CodeInternal, "disk on fire"), code(job.CodeInternal, "disk on fire")},
		"a stranger":              {status.Error(codes.PermissionDenied, "no member"), code(job.CodeNotApplied, "no member"), again},
		"no such shard yet":       {status.Error(codes.NotFound, "no shard 0"), code(job.CodeNotApplied, "no shard 0"), again},
		"damaged":                 {status.Error(codes.InvalidArgument, "2 operations, not 1"), code(job.CodeNotApplied, "2 operations"), code(job.CodeNotApplied, "2 operations")},
		"an answer too large":     {status.Error(codes.ResourceExhausted, "larger than max"), unknown, again},
	} {
		t.Run(name, func(t *testing.T) {
			write, read := forward(t, t.Context, func(context.Context) error { return tt.end })
			tt.write(t, write)
			tt.read(t, read)
		})
	}
	t.Run("cancelled here", func(t *testing.T) {
		var cancel context.CancelFunc
		cancelled := func() (ctx context.Context) {
			ctx, cancel = context.WithCancel(t.Context())
			return ctx
		}
		write, read := forward(t, cancelled, func(handled context.Context) error {
			cancel()
			<-handled.Done()
			return handled.Err()
		})
		unknown(t, write)
		again(t, read)
	})
	t.Run("out of time here", func(t *testing.T) {
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		write, read := forward(t, short, func(handled context.Context) error {
			<-handled.Done()
			return handled.Err()
		})
		unknown(t, write)
		again(t, read)
	})
	t.Run("not sent", func(t *testing.T) {
		for _, c := range carriers(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }) {
			for range 2 {
				write, read := forwardOver(t.Context(), c, "127.0.0.1:1")
				again(t, write)
				again(t, read)
				c.close()
			}
		}
	})
}
