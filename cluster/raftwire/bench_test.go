//lint:file-ignore SA1019 Raft still sends and reads the deprecated fields, and its messages must arrive whole.

package raftwire

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// BenchmarkAppend is a pipelined append with its reply, over the loopback interface. cpu-us/op
// is the processor time of both ends.
func BenchmarkAppend(b *testing.B) {
	ours := func(b *testing.B) (raft.Transport, raft.Transport) {
		server, _ := open(b, nil)
		client, _ := open(b, nil)
		return client, server
	}
	theirs := func(b *testing.B) (raft.Transport, raft.Transport) {
		var all [2]*raft.NetworkTransport
		for i := range all {
			tr, err := raft.NewTCPTransport("127.0.0.1:0", nil, 2, 5*time.Second, io.Discard)
			require.NoError(b, err)
			b.Cleanup(func() { tr.Close(); tr.CloseStreams() })
			all[i] = tr
		}
		return all[0], all[1]
	}
	for name, pair := range map[string]func(*testing.B) (raft.Transport, raft.Transport){"raftwire": ours, "raft": theirs} {
		b.Run(name, func(b *testing.B) {
			client, server := pair(b)
			done := make(chan struct{})
			defer close(done)
			go func() {
				for {
					select {
					case rpc := <-server.Consumer():
						rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header, Term: 1, Success: true}, nil)
					case <-done:
						return
					}
				}
			}()
			p, err := client.AppendEntriesPipeline("n2", server.LocalAddr())
			require.NoError(b, err)
			defer p.Close()
			request := &raft.AppendEntriesRequest{RPCHeader: header, Term: 1, Leader: header.Addr, PrevLogEntry: 1, PrevLogTerm: 1, LeaderCommitIndex: 1,
				Entries: []*raft.Log{{Index: 2, Term: 1, Data: make([]byte, 6000), AppendedAt: time.Now()}}}
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				_, err := p.AppendEntries(request, new(raft.AppendEntriesResponse))
				require.NoError(b, err)
				<-p.Consumer()
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
