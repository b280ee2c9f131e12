package leaderrpc_test

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/noderpc"
	"tarry/job/jobpb"
)

// echoNode replies to a batch with one result for each operation.
type echoNode struct {
	noderpc.UnimplementedNodeServer
}

func (echoNode) Propose(_ context.Context, r *noderpc.ProposeRequest) (*noderpc.ProposeResponse, error) {
	results := make([]*jobpb.Result, r.Count)
	for i := range results {
		results[i] = &jobpb.Result{Seq: uint64(i)}
	}
	return &noderpc.ProposeResponse{Results: results}, nil
}

// BenchmarkPropose compares what carries the calls: eight callers at a time, each with a
// batch of eight adds of 250 bytes. cpu-us/op is the processor time of both ends.
func BenchmarkPropose(b *testing.B) {
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	for _, name := range []string{"grpc", "frames"} {
		b.Run(name, func(b *testing.B) {
			c := carriers(dial)[name]
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			noderpc.RegisterNodeServer(c.server, echoNode{})
			var serving sync.WaitGroup
			serving.Go(func() { c.server.Serve(l) })
			cc, err := c.get(b.Context(), "n1", l.Addr().String())
			require.NoError(b, err)
			node := noderpc.NewNodeClient(cc)
			before := processorTime(b)
			var callers sync.WaitGroup
			const concurrent = 8
			for i := range concurrent {
				callers.Go(func() {
					for range (b.N + i) / concurrent {
						req := &noderpc.ProposeRequest{Count: 8, Ops: make([]byte, 8*250)}
						if _, err := node.Propose(b.Context(), req); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric((processorTime(b)-before)/float64(b.N)*1e6, "cpu-us/op")
			c.close()
			c.server.Stop()
			serving.Wait()
		})
	}
}

// processorTime returns the processor time of this process in seconds.
func processorTime(b *testing.B) float64 {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}
