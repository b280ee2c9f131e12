package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job"
)

// heldReplies is a transport whose replies stay in the receive buffer: they have arrived,
// but the process has not read them yet.
type heldReplies struct {
	raft.Transport
	raft.WithPreVote

	mu       sync.Mutex
	holding  bool
	arrived  map[raft.ServerID]bool // has a reply in the buffer
	released chan struct{}
	ended    chan struct{}

	calls    chan raft.RPC
	over     chan struct{}
	relaying sync.WaitGroup
}

func holdAnswers(t raft.Transport) *heldReplies {
	h := &heldReplies{
		Transport: t, WithPreVote: t.(raft.WithPreVote),
		arrived: map[raft.ServerID]bool{}, released: make(chan struct{}), ended: make(chan struct{}),
		calls: make(chan raft.RPC), over: make(chan struct{}),
	}
	h.relaying.Go(h.relay)
	return h
}

func (h *heldReplies) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = true
}

// has reports whether replies of n servers are in the buffer.
func (h *heldReplies) has(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arrived) >= n
}

// Consumer returns the incoming messages, until replies are held.
func (h *heldReplies) Consumer() <-chan raft.RPC { return h.calls }

// SetHeartbeatHandler likewise.
func (h *heldReplies) SetHeartbeatHandler(cb func(raft.RPC)) {
	h.Transport.SetHeartbeatHandler(func(rpc raft.RPC) {
		h.pass()
		cb(rpc)
	})
}

// Close implements raft.WithClose.
func (h *heldReplies) Close() error {
	close(h.over)
	h.relaying.Wait()
	return h.Transport.(raft.WithClose).Close()
}

// pass drops incoming messages while the process is suspended.
func (h *heldReplies) pass() {
	h.mu.Lock()
	holding := h.holding
	h.mu.Unlock()
	if holding {
		<-h.ended
	}
}

// relay passes messages to calls until Close.
func (h *heldReplies) relay() {
	for {
		select {
		case rpc := <-h.Transport.Consumer():
			h.pass()
			select {
			case h.calls <- rpc:
			case <-h.over:
			}
		case <-h.over:
			return
		}
	}
}

// AppendEntries sends only one request to each server once replies are held.
func (h *heldReplies) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	h.mu.Lock()
	stopped := h.holding && h.arrived[id]
	h.mu.Unlock()
	if stopped {
		<-h.ended
		return errors.New("the process stood still")
	}
	err := h.Transport.AppendEntries(id, target, args, resp)
	h.mu.Lock()
	holding := h.holding && err == nil && resp.Success
	if holding {
		h.arrived[id] = true
	}
	h.mu.Unlock()
	if holding {
		<-h.released
	}
	return err
}

func (h *heldReplies) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// A leader is suspended while replies to its heartbeats are in its buffers. Another node
// is elected and acknowledges a write. The first one resumes: the old replies must not
// confirm that it leads.
func TestOldRepliesDoNotConfirmALeader(t *testing.T) {
	t.Parallel()
	var held *heldReplies
	c := newTunedCluster(t, 3, func(i int, cfg *Config) {
		if i != 2 {
			return
		}
		// It does not detect that it was suspended. The other two resolve a split vote.
		cfg.timing.Heartbeat, cfg.timing.Election, cfg.timing.Lease = time.Hour, time.Hour, time.Hour
		cfg.timing.HoldTime = 500 * time.Millisecond
		cfg.wrapTransport = func(t raft.Transport) raft.Transport {
			held = holdAnswers(t)
			return held
		}
	})
	release, end := sync.OnceFunc(func() { close(held.released) }), sync.OnceFunc(func() { close(held.ended) })
	t.Cleanup(func() { release(); end() })
	old := c.nodes[2]
	c.transfer(old)
	c.eventually(func() bool {
		_, err := old.shard.Job(context.Background(), "x", false)
		return job.CodeOf(err) == job.CodeNotFound
	}, "n3 answers reads")

	held.hold()
	c.eventually(func() bool { return held.has(2) }, "an answer of each follower is in the buffer")
	var next *Node
	c.eventually(func() bool {
		for _, n := range c.nodes[:2] {
			if n.shard.dispatcher() != nil {
				next = n
			}
		}
		return next != nil
	}, "another leads")
	do(t, next, add("x", "t", time.Hour))
	require.Equal(t, raft.Leader, old.shard.raft.State(), "it has not noticed yet")

	reads, began := make(chan error, 1000), 0
	c.eventually(func() bool {
		began++
		go func() {
			_, err := old.shard.Job(context.Background(), "x", false)
			reads <- err
		}()
		l := old.shard.confirmations
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.next != nil && len(l.wake) == 1 // a later call waits for the next round
	}, "a question for those who read is under way")
	release()
	for range began {
		require.Equal(t, job.CodeNotApplied, job.CodeOf(<-reads), "the read must not miss an acknowledged write")
	}

	end()
	c.eventually(func() bool {
		j, err := old.shard.Job(context.Background(), "x", false)
		return err == nil && j.Id == "x"
	}, "it finds the job once it knows who leads")
}
