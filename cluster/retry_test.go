package cluster

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
	"google.golang.org/grpc"

	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job/jobpb"
)

// electedPeer is another node that this one takes for the leader. Until it leads it
// refuses everything.
type electedPeer struct {
	noderpc.NodeClient
	leads atomic.Bool
	asked atomic.Int64 // messages and calls that came
}

func (p *electedPeer) Wait(ctx context.Context, _ ...grpc.CallOption) (noderpc.Node_WaitClient, error) {
	return &electedStream{peer: p, ctx: ctx, answers: make(chan *noderpc.WaitAnswer, 10_000), refused: make(chan struct{})}, nil
}

func (p *electedPeer) Read(context.Context, *noderpc.ReadRequest, ...grpc.CallOption) (*noderpc.ReadResponse, error) {
	p.asked.Add(1)
	if !p.leads.Load() {
		return &noderpc.ReadResponse{Refusal: noderpc.Refusal_NOT_LEADER}, nil
	}
	return &noderpc.ReadResponse{}, nil
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
		var err error
		if a.Result, err = (&jobpb.Result{Jobs: []*jobpb.Reserved{{Seq: m.Waiter}}}).MarshalVT(); err != nil {
			return err
		}
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

// inElection runs many calls on a node whose leader does not lead yet, and then
// does. It returns how often the leader was asked before.
func inElection(t *testing.T, calls int, call func(ctx context.Context, s *Shard) error) (before int64) {
	synctest.Test(t, func(t *testing.T) {
		peer := new(electedPeer)
		ctx, cancel := context.WithCancel(context.Background())
		s := &Shard{
			cfg: shardConfig{Timing: DefaultTiming(), ServerID: "n1", Peer: func(context.Context, string, string) (noderpc.NodeClient, error) {
				return peer, nil
			}},
			leaders: newLeaderWatch(time.Now()), draining: make(chan struct{}), ctx: ctx, cancel: cancel,
		}
		s.leaders.set(leader{id: "n2", addr: "n2:1"}, time.Now())
		var running sync.WaitGroup
		var failed atomic.Int64
		for range calls {
			running.Go(func() {
				if err := call(ctx, s); err != nil {
					failed.Add(1)
				}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before = peer.asked.Load()
		peer.leads.Store(true)
		running.Wait()
		require.Zero(t, failed.Load(), "each is served once the leader leads")
		require.LessOrEqual(t, peer.asked.Load()-before, int64(calls)+10, "and asked once more")
		cancel()
		s.closeStream()
		s.work.Wait()
	})
	return before
}

// retriesOfOneNode is how often a node asks in the second before its leader leads.
const retriesOfOneNode = int64(time.Second / retryPause)

func TestWaitersDoNotAskALeaderThatDoesNotLeadYet(t *testing.T) {
	asked := inElection(t, 1000, func(ctx context.Context, s *Shard) error {
		jobs, err := s.Reserve(ctx, &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, time.Minute)
		if err == nil && len(jobs) != 1 {
			err = errors.New("no job")
		}
		return err
	})
	require.LessOrEqual(t, asked, retriesOfOneNode+1, "one retry a node, however many wait")
}

func TestReadsDoNotAllAskALeaderThatDoesNotLeadYet(t *testing.T) {
	asked := inElection(t, 1000, func(ctx context.Context, s *Shard) error {
		_, err := s.Totals(ctx, false)
		return err
	})
	require.LessOrEqual(t, asked, 1000+retriesOfOneNode, "each once, then one retry a node")
}

// What other nodes and clients ask of a leader that still applies what its
// predecessors committed waits for the event.
func TestALeaderThatIsNotEstablishedYetHoldsWhatItIsAsked(t *testing.T) {
	for _, test := range []struct {
		name  string
		then  leader
		leads bool
	}{{"established", leader{id: "n1"}, true}, {"another leads", leader{id: "n2"}, false}, {"deposed", leader{}, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := &Shard{cfg: shardConfig{ServerID: "n1"}, leaders: newLeaderWatch(time.Now()), ctx: t.Context()}
			s.leaders.set(leader{id: "n1"}, time.Now())
			var calls sync.WaitGroup
			var ended, leads atomic.Int64
			for range 100 {
				calls.Go(func() {
					if s.established(t.Context()) != nil {
						leads.Add(1)
					}
					ended.Add(1)
				})
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Zero(t, ended.Load(), test.name)
			if test.leads {
				s.term.Store(&term{dispatcher: dispatch.New(nil, 1, nil)})
			}
			s.leaders.set(test.then, time.Now())
			calls.Wait()
			require.Equal(t, test.leads, leads.Load() == 100, test.name)
		})
	}
}

// A batch is large: it is not sent every 20 ms, and not held for long either.
func TestALeaderThatIsNotEstablishedYetHoldsABatchForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shard{cfg: shardConfig{ServerID: "n1"}, leaders: newLeaderWatch(time.Now()), ctx: t.Context()}
		began := time.Now()
		require.False(t, s.leadsSoon(t.Context()))
		require.Zero(t, time.Since(began), "it does not lead")
		s.leaders.set(leader{id: "n1"}, time.Now())
		require.False(t, s.leadsSoon(t.Context()))
		require.Equal(t, proposeHold, time.Since(began))
		time.AfterFunc(time.Millisecond, func() {
			s.term.Store(&term{dispatcher: dispatch.New(nil, 1, nil)})
			s.leaders.set(leader{id: "n1"}, time.Now())
		})
		require.True(t, s.leadsSoon(t.Context()))
		require.Equal(t, proposeHold+time.Millisecond, time.Since(began))
	})
}

// A withdrawn waiter that no leader has heard of ends at once, and is not sent.
func TestAWaiterThatWasNotSentIsWithdrawnHere(t *testing.T) {
	s := newWaitStream(nil, 0, nil)
	ends := make([]error, 3)
	var ws []*dispatch.Waiter
	for i := range ends {
		w := &dispatch.Waiter{Reserve: &jobpb.Reserve{}, Done: func(_ []*jobpb.Reserved, err error) { ends[i] = err }}
		s.Add(w)
		ws = append(ws, w)
	}
	s.Withdraw(ws[1], true)
	require.Equal(t, []error{nil, dispatch.ErrStopped, nil}, ends)
	sent := s.begin().close()
	require.Len(t, sent, 2)
	require.EqualValues(t, 1, sent[0].Waiter, "in the order in which they came")
	require.EqualValues(t, 3, sent[1].Waiter)
	s.end()
	require.Equal(t, []error{dispatch.ErrStopped, dispatch.ErrStopped, dispatch.ErrStopped}, ends)
}
