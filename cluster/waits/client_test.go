package waits

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// electedPeer is another node that has been elected. Until it is established it refuses every
// stream.
type electedPeer struct {
	leads atomic.Bool
	asked atomic.Int64 // messages that it received
}

func (p *electedPeer) Wait(ctx context.Context, _ ...grpc.CallOption) (noderpc.Node_WaitClient, error) {
	return &electedStream{peer: p, ctx: ctx, answers: make(chan *noderpc.WaitAnswer, 10_000), refused: make(chan struct{})}, nil
}

type electedStream struct {
	noderpc.Node_WaitClient
	peer    *electedPeer
	ctx     context.Context
	answers chan *noderpc.WaitAnswer
	refused chan struct{}
	once    sync.Once
}

func (s *electedStream) Send(m *noderpc.WaitRequest) error {
	s.peer.asked.Add(1)
	a := &noderpc.WaitAnswer{Waiter: m.Waiter}
	switch {
	case !s.peer.leads.Load():
		s.once.Do(func() { close(s.refused) })
		return io.EOF
	case m.Waiter != 0:
		a.Jobs = []*jobpb.Reserved{{Seq: m.Waiter}}
	}
	s.answers <- a
	return nil
}

func (s *electedStream) Recv() (*noderpc.WaitAnswer, error) {
	select {
	case a := <-s.answers:
		return a, nil
	case <-s.refused:
		return nil, errors.New("this node does not lead")
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// newElectedClient is a Client whose leader is p.
func newElectedClient(p *electedPeer) *Client {
	return NewClient(Options{
		HoldTime: 5 * time.Second,
		Leader:   func() (leaderrpc.Leader, <-chan struct{}) { return leaderrpc.Leader{ID: "n2.1", Addr: "n2:1"}, nil },
		Dial:     func(context.Context, string, string) (Peer, error) { return p, nil },
		GiveBack: func([]*jobpb.Reserved) {},
	})
}

func TestWaitersDoNotAskALeaderThatDoesNotLeadYet(t *testing.T) {
	const calls = 1000
	synctest.Test(t, func(t *testing.T) {
		peer := new(electedPeer)
		c := newElectedClient(peer)
		var running sync.WaitGroup
		var failed atomic.Int64
		for range calls {
			running.Go(func() {
				jobs, err := c.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, time.Minute)
				if err != nil || len(jobs) != 1 {
					failed.Add(1)
				}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := peer.asked.Load()
		require.LessOrEqual(t, before, int64(time.Second/retryPause)+1, "one retry a node, however many wait")
		peer.leads.Store(true)
		running.Wait()
		require.Zero(t, failed.Load(), "each is served once the leader leads")
		require.LessOrEqual(t, peer.asked.Load()-before, int64(calls)+10, "and asked once")
		c.Close()
	})
}

func TestADrainingNodeEndsWaitsAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newElectedClient(new(electedPeer))
		reserve := &jobpb.Reserve{Topics: []string{"t"}, Max: 1}
		var waiting sync.WaitGroup
		waiting.Go(func() {
			jobs, err := c.Reserve(t.Context(), reserve, time.Hour)
			require.NoError(t, err)
			require.Empty(t, jobs)
		})
		synctest.Wait()
		c.Drain()
		waiting.Wait()
		_, err := c.Reserve(t.Context(), reserve, time.Hour)
		require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
		c.Close()
	})
}
