package ackguard

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// closable is a layer that can close the connections that it has accepted.
type closable struct {
	layer
	mu    sync.Mutex
	conns []net.Conn
}

func (l *closable) Accept() (net.Conn, error) {
	c, err := l.layer.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, c)
		l.mu.Unlock()
	}
	return c, err
}

// closeAll returns the number of connections that it closed.
func (l *closable) closeAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	n := len(l.conns)
	l.conns = nil
	return n
}

// openClosable returns a transport, and its layer.
func openClosable(t *testing.T) (*raftwire.Transport, *closable) {
	s := settings(t)
	c := &closable{layer: s.Layer.(layer)}
	s.Layer = c
	return openTransport(t, s), c
}

// replyInPool replies to requests until the test ends. Appends wait until there are as many
// as the pool has connections, so that each needs its own.
func replyInPool(t *testing.T, tr *raftwire.Transport) {
	done := make(chan struct{})
	var replying sync.WaitGroup
	t.Cleanup(func() { close(done); replying.Wait() })
	replying.Go(func() {
		var appends []raft.RPC
		for {
			select {
			case rpc := <-tr.Consumer():
				switch rpc.Command.(type) {
				case *raft.AppendEntriesRequest:
					appends = append(appends, rpc)
				case *raft.RequestVoteRequest:
					rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
				case *raft.RequestPreVoteRequest:
					rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
				default:
					rpc.Respond(&raft.TimeoutNowResponse{}, nil)
				}
				if len(appends) == transport.RaftPool {
					for _, a := range appends {
						a.Respond(&raft.AppendEntriesResponse{}, nil)
					}
					appends = nil
				}
			case <-done:
				return
			}
		}
	})
}

func TestARequestThatRaftSendsOnceIsNotLostOnAClosedConnection(t *testing.T) {
	server, conns := openClosable(t)
	replyInPool(t, server)
	at := server.LocalAddr()
	client := openGuarded(t, newGuard(t))
	inner := client.Transport
	client.asked.Store(int64(time.Hour)) // no election begins, which would drop the pool

	for name, request := range map[string]func() error{
		"pre-vote": func() error {
			return client.RequestPreVote("n2.b", at, new(raft.RequestPreVoteRequest), new(raft.RequestPreVoteResponse))
		},
		"vote": func() error {
			return client.RequestVote("n2.b", at, new(raft.RequestVoteRequest), new(raft.RequestVoteResponse))
		},
		"transfer": func() error {
			return client.TimeoutNow("n2.b", at, new(raft.TimeoutNowRequest), new(raft.TimeoutNowResponse))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var filling sync.WaitGroup
			for range transport.RaftPool {
				filling.Go(func() {
					err := inner.AppendEntries("n2.b", transport.Target("n2.b", at), new(raft.AppendEntriesRequest), new(raft.AppendEntriesResponse))
					assert.NoError(t, err)
				})
			}
			filling.Wait()
			require.Equal(t, transport.RaftPool, conns.closeAll())
			require.NoError(t, request())
			conns.closeAll()
			inner.CloseIdle()
		})
	}
}
