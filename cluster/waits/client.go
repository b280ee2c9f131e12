package waits

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job/jobpb"
)

// retryPause is the pause before a stream is opened again to a node that does not lead
// yet.
const retryPause = 20 * time.Millisecond

// Queue is where a reserve waits: the leader's dispatcher, or a stream to it. Each
// waiter that is added ends with exactly one call of its Done.
type Queue interface {
	Add(*dispatch.Waiter)
	Cancel(w *dispatch.Waiter, keep bool)
}

// Peer opens a stream to another node: noderpc.NodeClient.
type Peer interface {
	Wait(ctx context.Context, opts ...grpc.CallOption) (noderpc.Node_WaitClient, error)
}

// Options has the settings and callbacks of a Client.
type Options struct {
	Shard    uint32
	Self     string        // Raft's id of this node
	HoldTime time.Duration // how long a poll waits for a leader
	// Leader returns the present leader, and a channel that closes at the next change,
	// which includes that this node becomes the established leader. Here returns the
	// queue of this node, nil unless it is that.
	Leader func() (leaderrpc.Leader, <-chan struct{})
	Here   func() Queue
	Dial   func(ctx context.Context, serverID, addr string) (Peer, error)
	// GiveBack releases jobs that no consumer saw. It must not block.
	GiveBack func([]*jobpb.Reserved)
}

// Client has the waiting reserves of one node.
type Client struct {
	o     Options
	drain *Drain

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // streams that end

	mu     sync.Mutex
	stream *stream          // nil: none is open
	to     leaderrpc.Leader // the other end of stream
}

// NewClient returns a Client. It must be closed.
func NewClient(o Options) *Client {
	c := &Client{o: o, drain: NewDrain()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Drain ends all waits with the jobs that they have, and refuses new ones until Resume.
func (c *Client) Drain() { c.drain.Begin() }

// Resume accepts waits again.
func (c *Client) Resume() { c.drain.End() }

// Leave breaks the stream to a leader that was deposed, so that its waiters register
// with the present one, which is given, at once.
func (c *Client) Leave(now leaderrpc.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil && now.ID != "" && c.to != now {
		c.closeStream()
	}
}

// Close refuses further waits, breaks the stream and waits for its end.
func (c *Client) Close() {
	c.cancel()
	c.mu.Lock()
	if c.stream != nil {
		c.closeStream()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// closeStream is called with c.mu held. It does not block.
func (c *Client) closeStream() {
	c.work.Go(c.stream.close)
	c.stream = nil
}

// queue returns the queue in which reserves wait now; nil: there is none. The channel
// closes when leadership changes.
func (c *Client) queue() (Queue, <-chan struct{}) {
	l, changed := c.o.Leader()
	switch l.ID {
	case "":
		return nil, changed
	case c.o.Self:
		return c.o.Here(), changed
	}
	if s := c.streamTo(l); s != nil {
		return s, changed
	}
	return nil, changed
}

// streamTo returns the stream to l, opening it if there is none; nil while the node
// stops.
func (c *Client) streamTo(l leaderrpc.Leader) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil
	}
	if c.stream != nil && c.to == l {
		return c.stream
	}
	if c.stream != nil {
		c.closeStream()
	}
	peer, err := c.o.Dial(c.ctx, l.ID, l.Addr)
	if err != nil {
		return nil
	}
	c.stream, c.to = openStream(peer, c.o.Shard, c.o.GiveBack), l
	return c.stream
}
