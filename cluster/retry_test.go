package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// electedPeer is another node that has been elected. Until it is established it refuses all
// reads.
type electedPeer struct {
	noderpc.NodeClient
	leads atomic.Bool
	asked atomic.Int64 // messages and calls that it received
}

func (p *electedPeer) Read(context.Context, *jobpb.Read, ...grpc.CallOption) (*jobpb.ReadResult, error) {
	p.asked.Add(1)
	if !p.leads.Load() {
		return nil, leaderrpc.ErrNotLeader
	}
	return &jobpb.ReadResult{}, nil
}

// peerHost has one peer.
type peerHost struct {
	Host
	peer noderpc.NodeClient
}

func (h peerHost) Peer(context.Context, string, string) (noderpc.NodeClient, error) {
	return h.peer, nil
}

// inElection runs many calls on a node whose leader does not lead yet, and then
// does. It returns how often the leader was asked before.
func inElection(t *testing.T, calls int, call func(ctx context.Context, s *Shard) error) (before int64) {
	synctest.Test(t, func(t *testing.T) {
		peer := new(electedPeer)
		ctx, cancel := context.WithCancel(context.Background())
		s := &Shard{
			cfg:     shardConfig{Timing: DefaultTiming(), ServerID: "n1", Host: peerHost{peer: peer}},
			leaders: leaderrpc.NewWatch(time.Now()), ctx: ctx, cancel: cancel,
		}
		s.Reads = job.Reads{Reader: s}
		s.toLeader.Self, s.toLeader.Leader, s.toLeader.Client = s.cfg.ServerID, s.leaders.Get, s.cfg.Host.Peer
		s.leaders.Set(leaderrpc.Leader{ID: "n2", Addr: "n2:1"}, time.Now())
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
		s.work.Wait()
	})
	return before
}

// retriesOfOneNode is how often a node asks in the second before its leader leads.
const retriesOfOneNode = int64(time.Second / groupcommit.RetryPause)

func TestReadsDoNotAllAskALeaderThatDoesNotLeadYet(t *testing.T) {
	asked := inElection(t, 1000, func(ctx context.Context, s *Shard) error {
		_, err := s.Totals(ctx, false)
		return err
	})
	require.LessOrEqual(t, asked, 1000+retriesOfOneNode, "each once, then one retry a node")
}

// A leader that still applies the entries of its predecessors holds the requests of other
// nodes and of clients until it is established.
func TestALeaderThatIsNotEstablishedYetHoldsRequests(t *testing.T) {
	for _, test := range []struct {
		name  string
		then  leaderrpc.Leader
		leads bool
	}{{"established", leaderrpc.Leader{ID: "n1"}, true}, {"another leads", leaderrpc.Leader{ID: "n2"}, false}, {"deposed", leaderrpc.Leader{}, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := &Shard{cfg: shardConfig{ServerID: "n1"}, leaders: leaderrpc.NewWatch(time.Now()), ctx: t.Context()}
			s.leaders.Set(leaderrpc.Leader{ID: "n1"}, time.Now())
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
				s.leadership.Store(&leadership{dispatcher: dispatch.New(nil, 1, nil)})
			}
			s.leaders.Set(test.then, time.Now())
			calls.Wait()
			require.Equal(t, test.leads, leads.Load() == 100, test.name)
		})
	}
}

// A batch is large: it is not sent every 20 ms, and not held for long either.
func TestALeaderThatIsNotEstablishedYetHoldsABatchForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shard{cfg: shardConfig{ServerID: "n1"}, leaders: leaderrpc.NewWatch(time.Now()), ctx: t.Context()}
		began := time.Now()
		require.False(t, s.leadsSoon(t.Context()))
		require.Zero(t, time.Since(began), "it does not lead")
		s.leaders.Set(leaderrpc.Leader{ID: "n1"}, time.Now())
		require.False(t, s.leadsSoon(t.Context()))
		require.Equal(t, proposeHold, time.Since(began))
		time.AfterFunc(time.Millisecond, func() {
			s.leadership.Store(&leadership{dispatcher: dispatch.New(nil, 1, nil)})
			s.leaders.Set(leaderrpc.Leader{ID: "n1"}, time.Now())
		})
		require.True(t, s.leadsSoon(t.Context()))
		require.Equal(t, proposeHold+time.Millisecond, time.Since(began))
	})
}
