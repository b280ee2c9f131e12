package ackguard

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// layer is plain TCP: it does not check which server is at an address. All callers count as
// server n2.
type layer struct{ net.Listener }

func (l layer) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return called{c}, err
}

type called struct{ net.Conn }

func (c called) RemoteAddr() net.Addr {
	return &transport.CallerAddr{Addr: c.Conn.RemoteAddr(), ServerID: "n2"}
}

func (layer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	serverID, address := transport.SplitTarget(target)
	if serverID == "" {
		return nil, errors.New("the server that is meant is not named")
	}
	return net.DialTimeout("tcp", address, timeout)
}

// settings returns those of a transport on a new address.
func settings(t *testing.T) raftwire.Config {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return raftwire.Config{Layer: layer{l}, Pool: transport.RaftPool, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}
}

// openTransport opens a transport, until the test ends.
func openTransport(t *testing.T, c raftwire.Config) *raftwire.Transport {
	tr := raftwire.New(c)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

// openGuarded opens the transport of g, until the test ends.
func openGuarded(t *testing.T, g *Guard) *Transport {
	tr := g.Transport(settings(t))
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

// follower replies to every request until the test ends.
func follower(t *testing.T, answer func(raft.RPC) any) raft.ServerAddress {
	tr := openTransport(t, settings(t))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case rpc := <-tr.Consumer():
				if rpc.Reader != nil {
					io.Copy(io.Discard, rpc.Reader)
				}
				rpc.Respond(answer(rpc), nil)
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
	return tr.LocalAddr()
}

// Each reply is recorded as an ack before Raft sees it.
func TestRepliesAreRecordedBeforeRaftCountsThem(t *testing.T) {
	success := true
	at := follower(t, func(rpc raft.RPC) any {
		switch q := rpc.Command.(type) {
		case *raft.AppendEntriesRequest:
			return &raft.AppendEntriesResponse{Term: q.Term, Success: success}
		case *raft.RequestVoteRequest:
			return &raft.RequestVoteResponse{Term: q.Term, Granted: true}
		case *raft.RequestPreVoteRequest:
			return &raft.RequestPreVoteResponse{Term: q.Term, Granted: true}
		case *raft.InstallSnapshotRequest:
			return &raft.InstallSnapshotResponse{Term: q.Term, Success: success}
		}
		return nil
	})
	g := newGuard(t)
	tr := openGuarded(t, g)
	acked := func(term, index uint64) {
		t.Helper()
		require.Equal(t, Ack{ServerID: "n2.b", Term: term, Index: index}, g.Of("n2.b"))
	}
	appends := func(term, index uint64) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: term, PrevLogEntry: index - 1, PrevLogTerm: 1, Entries: []*raft.Log{{Index: index, Term: term}}}
	}

	require.NoError(t, tr.RequestPreVote("n2.b", at, &raft.RequestPreVoteRequest{Term: 9}, new(raft.RequestPreVoteResponse)))
	acked(0, 0) // a pre-vote acknowledges nothing
	require.NoError(t, tr.RequestVote("n2.b", at, &raft.RequestVoteRequest{Term: 2}, new(raft.RequestVoteResponse)))
	acked(2, 0)
	require.NoError(t, tr.AppendEntries("n2.b", at, appends(2, 7), new(raft.AppendEntriesResponse)))
	acked(2, 7)
	success = false
	require.NoError(t, tr.AppendEntries("n2.b", at, appends(2, 8), new(raft.AppendEntriesResponse)))
	acked(2, 7)
	require.NoError(t, tr.AppendEntries("n2.b", at, appends(3, 8), new(raft.AppendEntriesResponse)))
	acked(3, 0) // it is in the term and has no entry of this leader
	success = true
	require.NoError(t, tr.InstallSnapshot("n2.b", at, &raft.InstallSnapshotRequest{Term: 3, LastLogIndex: 20, Size: 1}, new(raft.InstallSnapshotResponse), bytes.NewReader([]byte{1})))
	acked(3, 20)

	p, err := tr.AppendEntriesPipeline("n2.b", at)
	require.NoError(t, err)
	_, err = p.AppendEntries(appends(3, 21), new(raft.AppendEntriesResponse))
	require.NoError(t, err)
	require.NoError(t, (<-p.Consumer()).Error())
	acked(3, 21)
	require.NoError(t, p.Close())

	require.NoError(t, g.Check(LogPosition{Term: 1}), "acks of others do not concern this node")
	g.Merge([]Ack{{ServerID: "n1.a", Term: 3, Index: 21}})
	require.Error(t, g.Check(LogPosition{Term: 3, LastIndex: 20}))
	require.NoError(t, g.Check(LogPosition{Term: 3, LastIndex: 21}))
	require.Empty(t, g.Known(), "Raft does not run")
}
