package raftwire

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must happen. Nothing is asserted about how long it takes.
const patience = 60 * time.Second

// layer is plain TCP. It counts what it has dialed.
type layer struct {
	net.Listener
	mu     sync.Mutex
	dialed int
}

func (l *layer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	l.mu.Lock()
	l.dialed++
	l.mu.Unlock()
	return net.DialTimeout("tcp", string(target), timeout)
}

// odd is a connection as one that wraps another may be: it cannot be compared.
type odd struct {
	net.Conn
	_ func()
}

func (l *layer) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return odd{Conn: c}, err
}

func (l *layer) dials() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dialed
}

func open(t testing.TB, change func(*Config)) (*Transport, *layer) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &layer{Listener: listener}
	c := Config{Layer: l, Pool: 2, Timeout: patience, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	tr := New(c)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr, l
}

// answer replies to the requests of tr until the test ends.
func answer(t testing.TB, tr *Transport, reply func(raft.RPC) (any, error)) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case rpc := <-tr.Consumer():
				rpc.Respond(reply(rpc))
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() { close(done); running.Wait() })
}

func TestEveryRequestGetsItsReply(t *testing.T) {
	server, _ := open(t, nil)
	var got any
	var snapshot []byte
	var refuse error
	answer(t, server, func(rpc raft.RPC) (any, error) {
		got = rpc.Command
		if rpc.Reader != nil {
			snapshot, _ = io.ReadAll(rpc.Reader)
		}
		all := map[kind]any{}
		for i, r := range replies() {
			all[[]kind{kindAppend, kindVote, kindPreVote, kindSnapshot, kindTimeoutNow}[i]] = r
		}
		switch rpc.Command.(type) {
		case *raft.AppendEntriesRequest:
			return all[kindAppend], refuse
		case *raft.RequestVoteRequest:
			return all[kindVote], refuse
		case *raft.RequestPreVoteRequest:
			return all[kindPreVote], refuse
		case *raft.InstallSnapshotRequest:
			return all[kindSnapshot], refuse
		}
		return all[kindTimeoutNow], refuse
	})
	client, dialed := open(t, nil)
	at := server.LocalAddr()
	data := bytes.Repeat([]byte("snapshot"), 100_000)
	for _, refuse = range []error{nil, errors.New("no")} {
		for k, list := range requests() {
			request := list[0]
			var reply any
			var err error
			switch m := request.(type) {
			case *raft.AppendEntriesRequest:
				r := new(raft.AppendEntriesResponse)
				reply, err = r, client.AppendEntries("n2", at, m, r)
			case *raft.RequestVoteRequest:
				r := new(raft.RequestVoteResponse)
				reply, err = r, client.RequestVote("n2", at, m, r)
			case *raft.RequestPreVoteRequest:
				r := new(raft.RequestPreVoteResponse)
				reply, err = r, client.RequestPreVote("n2", at, m, r)
			case *raft.InstallSnapshotRequest:
				m.Size = int64(len(data))
				r := new(raft.InstallSnapshotResponse)
				reply, err = r, client.InstallSnapshot("n2", at, m, r, bytes.NewReader(data))
				require.Equal(t, data, snapshot)
			case *raft.TimeoutNowRequest:
				r := new(raft.TimeoutNowResponse)
				reply, err = r, client.TimeoutNow("n2", at, m, r)
			}
			require.Equal(t, request, got)
			if refuse != nil {
				require.EqualError(t, err, "no")
				continue
			}
			require.NoError(t, err)
			require.Contains(t, replies(), reply, "kind %d", k)
		}
	}
	require.LessOrEqual(t, dialed.dials(), 3, "connections are used again, except those of the snapshots")
}

func TestAPipelineKeepsTheOrderAndTellsWhoAsked(t *testing.T) {
	server, _ := open(t, nil)
	answer(t, server, func(rpc raft.RPC) (any, error) {
		return &raft.AppendEntriesResponse{Term: rpc.Command.(*raft.AppendEntriesRequest).Term, Success: true}, nil
	})
	var seen sync.Map
	client, _ := open(t, func(c *Config) {
		c.Appended = func(id raft.ServerID, request *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) {
			require.EqualValues(t, "n2", id)
			require.Equal(t, request.Term, reply.Term)
			seen.Store(reply.Term, true)
		}
	})
	p, err := client.AppendEntriesPipeline("n2", server.LocalAddr())
	require.NoError(t, err)
	var sending sync.WaitGroup
	sending.Go(func() {
		for term := range uint64(20) {
			_, err := p.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: header, Term: term}, new(raft.AppendEntriesResponse))
			require.NoError(t, err)
		}
	})
	for term := range uint64(20) {
		f := <-p.Consumer()
		require.Equal(t, term, f.Request().Term)
		require.NoError(t, f.Error())
		require.True(t, f.Response().Success)
		_, recorded := seen.Load(term)
		require.True(t, recorded)
	}
	sending.Wait()
	require.NoError(t, p.Close())
	_, err = p.AppendEntries(new(raft.AppendEntriesRequest), new(raft.AppendEntriesResponse))
	require.ErrorIs(t, err, raft.ErrPipelineShutdown)
}

// Raft repeats to a follower how far the log is committed, also while nothing happens.
func TestAnAppendThatTellsNothingNewIsLeftOut(t *testing.T) {
	server, _ := open(t, nil)
	var received []raft.AppendEntriesRequest
	answer(t, server, func(rpc raft.RPC) (any, error) {
		received = append(received, *rpc.Command.(*raft.AppendEntriesRequest))
		return &raft.AppendEntriesResponse{Term: 7, Success: true}, nil
	})
	client, _ := open(t, nil)
	opened, err := client.AppendEntriesPipeline("n2", server.LocalAddr())
	require.NoError(t, err)
	p := opened.(*pipeline)
	appends := func(term, previous, commit uint64, entries ...*raft.Log) (sent bool) {
		r := &raft.AppendEntriesRequest{RPCHeader: header, Term: term, PrevLogEntry: previous, LeaderCommitIndex: commit, Entries: entries}
		before := p.last.at
		f, err := p.AppendEntries(r, new(raft.AppendEntriesResponse))
		require.NoError(t, err)
		if sent = p.last.at != before; sent {
			require.Equal(t, r, (<-p.Consumer()).Request())
			return true
		}
		require.NoError(t, f.Error())
		require.False(t, f.Response().Success)
		return false
	}
	entry := &raft.Log{Index: 4, Term: 7}
	require.True(t, appends(7, 3, 3), "the first")
	require.False(t, appends(7, 3, 3))
	require.True(t, appends(7, 3, 3, entry))
	require.True(t, appends(7, 4, 4), "a later commit")
	require.False(t, appends(7, 4, 4))
	require.True(t, appends(7, 3, 4), "another place in the log")
	require.True(t, appends(8, 3, 4), "another term")
	p.last.at = p.last.at.Add(-repeatAfter)
	require.True(t, appends(8, 3, 4), "the connection is used now and then")
	require.NoError(t, p.Close())
	require.Len(t, received, 6)
}

// Raft then learns it from its next send, though that would be left out, and connects again.
func TestAPipelineEndsWithItsConnectionWhileNothingIsOutstanding(t *testing.T) {
	server, _ := open(t, nil)
	answer(t, server, func(raft.RPC) (any, error) { return &raft.AppendEntriesResponse{Term: 7, Success: true}, nil })
	client, _ := open(t, nil)
	p, err := client.AppendEntriesPipeline("n2", server.LocalAddr())
	require.NoError(t, err)
	request := &raft.AppendEntriesRequest{RPCHeader: header, Term: 7}
	_, err = p.AppendEntries(request, new(raft.AppendEntriesResponse))
	require.NoError(t, err)
	<-p.Consumer()
	require.NoError(t, server.Close())
	select {
	case <-p.(*pipeline).stop:
	case <-time.After(patience):
		require.Fail(t, "it does not end")
	}
	_, err = p.AppendEntries(request, new(raft.AppendEntriesResponse))
	require.ErrorIs(t, err, raft.ErrPipelineShutdown)
	require.NoError(t, p.Close())
}

// Raft reads nothing more from a pipeline after a reply that is no success, or of a later
// term, but may be sending. If a send waited for a reader then, Raft could not shut down.
func TestAPipelineEndsAfterAReplyThatIsNoSuccess(t *testing.T) {
	for name, reply := range map[string]*raft.AppendEntriesResponse{
		"no success":   {Term: 7},
		"a later term": {Term: 8, Success: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, nil)
			answer(t, server, func(raft.RPC) (any, error) { return reply, nil })
			client, _ := open(t, nil)
			p, err := client.AppendEntriesPipeline("n2", server.LocalAddr())
			require.NoError(t, err)
			var last error
			for i := range uint64(3) { // nobody reads the consumer
				_, last = p.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: header, Term: 7, LeaderCommitIndex: i}, new(raft.AppendEntriesResponse))
			}
			require.Error(t, last)
			f := <-p.Consumer() // Raft must see it, to step down or to go back in its log
			require.NoError(t, f.Error())
			require.Equal(t, reply, f.Response())
			require.NoError(t, p.Close())
		})
	}
}

// Raft does not ask a future of a pipeline for its error: to deliver one that has failed
// would count as contact with the follower, and damaged bytes as a success.
func TestAPipelineEndsWithoutAReplyThatIsAnError(t *testing.T) {
	success, err := appendReply(appendHead(nil, kindReply), &raft.AppendEntriesResponse{RPCHeader: header, Term: 7, LastLog: 9, Success: true})
	require.NoError(t, err)
	success = append(success, 0) // a byte too many
	require.NoError(t, endFrame(success, maxReply))
	for name, reply := range map[string][]byte{
		"damaged": success,
		"refused": []byte("\x00\x00\x00\x03\x07no"),
		"none":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var serving sync.WaitGroup
			serving.Go(func() {
				c, err := l.Accept()
				require.NoError(t, err)
				defer c.Close()
				_, _, err = newFrameReader(c).next(maxMessage)
				require.NoError(t, err)
				_, err = c.Write(reply)
				require.NoError(t, err)
			})
			client, _ := open(t, func(c *Config) {
				c.Appended = func(raft.ServerID, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) {
					require.Fail(t, "it is no reply of the server")
				}
			})
			p, err := client.AppendEntriesPipeline("n2", raft.ServerAddress(l.Addr().String()))
			require.NoError(t, err)
			f, err := p.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: header, Term: 7}, new(raft.AppendEntriesResponse))
			if err == nil { // the end of the connection may be seen before it returns
				require.Error(t, f.Error())
				require.Zero(t, *f.Response())
			}
			_, err = p.AppendEntries(new(raft.AppendEntriesRequest), new(raft.AppendEntriesResponse))
			require.Error(t, err)
			require.NoError(t, p.Close())
			select {
			case <-p.Consumer():
				require.Fail(t, "it is delivered")
			default:
			}
			serving.Wait()
			require.NoError(t, l.Close())
		})
	}
}

// While Raft's main goroutine is busy, heartbeats still get replies, and nothing else does.
func TestHeartbeatsDoNotWaitForRaft(t *testing.T) {
	server, _ := open(t, nil)
	server.SetHeartbeatHandler(func(rpc raft.RPC) { rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil) })
	client, _ := open(t, nil)
	heartbeat := &raft.AppendEntriesRequest{RPCHeader: header, Term: 1}
	var reply raft.AppendEntriesResponse
	require.NoError(t, client.AppendEntries("n2", server.LocalAddr(), heartbeat, &reply))
	require.True(t, reply.Success)
	for _, m := range []*raft.AppendEntriesRequest{
		{RPCHeader: header}, {Term: 1}, {RPCHeader: header, Term: 1, PrevLogEntry: 1}, {RPCHeader: header, Term: 1, PrevLogTerm: 1},
		{RPCHeader: header, Term: 1, LeaderCommitIndex: 1}, {RPCHeader: header, Term: 1, Entries: []*raft.Log{{}}},
	} {
		require.False(t, isHeartbeat(m))
	}
	require.False(t, isHeartbeat(new(raft.RequestVoteRequest)))
}

func TestARequestThatIsNotAcceptedDoesNotReachRaft(t *testing.T) {
	server, _ := open(t, func(c *Config) {
		c.Accept = func(from net.Addr, rpc raft.RPC) bool {
			require.NotEqual(t, c.Layer.Addr(), from)
			require.Equal(t, "tcp", from.Network())
			rpc.Respond(nil, errors.New("refused"))
			return false
		}
	})
	client, _ := open(t, nil)
	err := client.TimeoutNow("n2", server.LocalAddr(), new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse))
	require.EqualError(t, err, "refused")
	err = client.InstallSnapshot("n2", server.LocalAddr(), &raft.InstallSnapshotRequest{Size: 3}, new(raft.InstallSnapshotResponse), bytes.NewReader([]byte("abc")))
	require.Error(t, err)
}

// Requests that wait for Raft, pipelines and snapshots end with either transport.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	for name, closes := range map[string]func(client, server *Transport) error{
		"the client's": func(client, _ *Transport) error { return client.Close() },
		"the server's": func(_, server *Transport) error { return server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, nil)
			client, _ := open(t, nil)
			at := server.LocalAddr()
			var calls sync.WaitGroup
			calls.Go(func() {
				require.Error(t, client.TimeoutNow("n2", at, new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse)))
			})
			calls.Go(func() {
				endless := struct{ io.Reader }{zeroReader{}}
				require.Error(t, client.InstallSnapshot("n2", at, &raft.InstallSnapshotRequest{Size: 1 << 40}, new(raft.InstallSnapshotResponse), endless))
			})
			p, err := client.AppendEntriesPipeline("n2", at)
			require.NoError(t, err)
			f, err := p.AppendEntries(new(raft.AppendEntriesRequest), new(raft.AppendEntriesResponse))
			require.NoError(t, err)
			<-server.Consumer() // one of them has arrived; nobody replies
			require.NoError(t, closes(client, server))
			calls.Wait()
			require.Error(t, f.Error())
			require.NoError(t, p.Close())
			require.Error(t, client.TimeoutNow("n2", at, new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse)))
		})
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { return len(p), nil }

// A reply that does not come in time ends its connection: the next request must not get it.
func TestALateReplyIsNotThatOfTheNextRequest(t *testing.T) {
	server, _ := open(t, nil)
	client, dialed := open(t, func(c *Config) { c.Timeout = 10 * time.Millisecond })
	var late net.Error
	err := client.TimeoutNow("n2", server.LocalAddr(), new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse))
	require.ErrorAs(t, err, &late)
	require.True(t, late.Timeout())
	client.cfg.Timeout = patience
	first := <-server.Consumer()
	first.Respond(&raft.TimeoutNowResponse{}, nil)
	answer(t, server, func(raft.RPC) (any, error) { return &raft.RequestVoteResponse{Granted: true}, nil })
	var vote raft.RequestVoteResponse
	require.NoError(t, client.RequestVote("n2", server.LocalAddr(), new(raft.RequestVoteRequest), &vote))
	require.True(t, vote.Granted)
	require.Equal(t, 2, dialed.dials())
}

// A server that sends more than its reply: the rest is not the reply to the next request.
func TestAConnectionWithBytesLeftIsNotUsedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	reply, err := appendReply(appendHead(nil, kindReply), new(raft.TimeoutNowResponse))
	require.NoError(t, err)
	require.NoError(t, endFrame(reply, maxReply))
	var serving sync.WaitGroup
	serving.Go(func() {
		for range 2 {
			c, err := l.Accept()
			require.NoError(t, err)
			_, _, err = newFrameReader(c).next(maxMessage)
			require.NoError(t, err)
			_, err = c.Write(append(reply, reply...)) // one segment of the loopback interface
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, c) // until the client closes it
			c.Close()
		}
	})
	client, dialed := open(t, nil)
	for range 2 {
		require.NoError(t, client.TimeoutNow("n2", raft.ServerAddress(l.Addr().String()), new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse)))
	}
	require.Equal(t, 2, dialed.dials())
	serving.Wait()
	require.NoError(t, l.Close())
}

// For any bytes of a caller, the server neither fails nor keeps anything.
func FuzzServer(f *testing.F) {
	var all []byte
	for k, list := range requests() {
		b := clientBuffer(f, k, list[0])
		all = append(all, b...)
		f.Add(b)
		f.Add(bytes.Clone(all))
		f.Add(all[:len(all)-1])
	}
	server, _ := open(f, nil)
	answer(f, server, func(rpc raft.RPC) (any, error) {
		if rpc.Reader != nil {
			_, _ = io.Copy(io.Discard, rpc.Reader)
		}
		return &raft.TimeoutNowResponse{}, nil
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := net.Dial("tcp", string(server.LocalAddr()))
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, _ = c.Write(data) // the server may have closed it
		_ = c.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(io.Discard, c)
		if late, ok := err.(net.Error); ok {
			require.False(t, late.Timeout(), "the connection ends")
		}
	})
}

// For any bytes of a server, a request ends.
func FuzzClient(f *testing.F) {
	for _, r := range replies() {
		b, err := appendReply(appendHead(nil, kindReply), r)
		require.NoError(f, err)
		require.NoError(f, endFrame(b, maxReply))
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &clientConn{r: newFrameReader(bytes.NewReader(data))}
		for range len(data) + 1 {
			if err := c.receive(new(raft.AppendEntriesResponse)); err != nil {
				if _, replied := errors.AsType[remoteError](err); !replied {
					return
				}
			}
		}
		t.Fatal("more replies than bytes")
	})
}
