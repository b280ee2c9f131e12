package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// worker works on jobs of the topic until there is none, in one call a job.
func worker(ctx context.Context, n *Node, topic string, deletes bool) (done int, err error) {
	r := &jobpb.Reserve{Topics: []string{topic}, Max: 1}
	jobs, err := n.shard.Reserve(ctx, r, 0)
	for ; err == nil && len(jobs) > 0; done++ {
		results := make([]*jobpb.Result, 1)
		if deletes {
			d := &jobpb.Delete{Ref: &jobpb.Ref{Seq: jobs[0].Seq, Generation: jobs[0].Generation}, SpareReserved: true}
			results[0], jobs, err = n.shard.DeleteAndReserve(ctx, d, r)
		} else {
			results, jobs, err = n.shard.FinishAndReserve(ctx, []*jobpb.Finish{finish(jobs[0]).GetFinish()}, r, false)
		}
		if err == nil {
			err = job.ResultError(results[0])
		}
	}
	return done, err
}

func TestAWorkerThatAlwaysHasWorkCostsOneEntryAJob(t *testing.T) {
	const jobs = 50
	c := newTestCluster(t, 3)
	c.awaitVersion()
	for name, at := range map[string]struct {
		leads    bool
		settings *jobpb.TopicSettings
		deletes  bool
	}{
		"leader":            {true, nil, false},
		"follower":          {false, nil, false},
		"leader, a limit":   {true, &jobpb.TopicSettings{MaxReserved: proto.Uint64(1)}, false},
		"follower, a limit": {false, &jobpb.TopicSettings{MaxReserved: proto.Uint64(1)}, false},
		"leader, deletes":   {true, nil, true},
		"follower, deletes": {false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			for try := 0; ; try++ {
				leader := c.nodes[c.leader()]
				node := leader
				if !at.leads {
					node = c.follower()
				}
				term := leader.shard.raft.CurrentTerm()
				topic := fmt.Sprint(name, try)
				if at.settings != nil {
					do(t, leader, setTopic(topic, at.settings))
				}
				addMany(t, leader, topic, jobs)
				before := leader.shard.raft.LastIndex()
				done, err := worker(t.Context(), node, topic, at.deletes)
				cost := leader.shard.raft.LastIndex() - before
				if c.nodes[c.leader()].shard.raft.CurrentTerm() != term && try < 5 {
					continue // an election costs entries, and may fail a call
				}
				require.NoError(t, err)
				require.Equal(t, jobs, done)
				require.EqualValues(t, jobs+1, cost, "one for each job, and the first reserve")
				return
			}
		})
	}
}

func TestJobsAreFinishedOnceThoughLeadershipMoves(t *testing.T) {
	const jobs, workers = 300, 6
	c := newTestCluster(t, 3)
	addMany(t, c.nodes[c.leader()], "t", jobs)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var mu sync.Mutex
	finished := map[string]int{} // by id: how many finishes have succeeded
	var all sync.WaitGroup
	for i := range workers {
		n := c.nodes[i%len(c.nodes)]
		all.Go(func() {
			r := &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: 5000}
			var held []*jobpb.Reserved
			for ctx.Err() == nil {
				if len(held) == 0 {
					// Its jobs are those of the others.
					held, _ = n.shard.Reserve(ctx, r, 50*time.Millisecond)
				}
				mu.Lock()
				over := len(finished) == jobs
				mu.Unlock()
				if over {
					return
				}
				if len(held) == 0 {
					continue
				}
				results, next, err := n.shard.FinishAndReserve(ctx, []*jobpb.Finish{finish(held[0]).GetFinish()}, r, i%2 == 0)
				unknown := job.CodeOf(err) == job.CodeUnknown
				if unknown {
					results, err = n.shard.Do(ctx, []*jobpb.Op{finish(held[0])})
				}
				if err != nil {
					continue // nothing was done
				}
				mu.Lock()
				switch {
				case job.ResultError(results[0]) == nil:
					finished[held[0].Id]++
				case results[0].Code == jobpb.Code_NOT_FOUND && unknown:
					// By the first attempt or, after the lease, by another worker.
					finished[held[0].Id] += 0
				}
				mu.Unlock()
				held = next
			}
		})
	}
	for part := range 3 {
		c.eventually(func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(finished) > part*jobs/4
		}, "jobs are finished")
		c.transfer(c.follower())
	}
	all.Wait()
	require.Len(t, finished, jobs)
	for id, n := range finished {
		require.LessOrEqual(t, n, 1, id)
	}
}

// Otherwise a single consumer would need two commits, one after the other, for a job that falls
// due while the first is under way.
func TestWhatFallsDueDuringAFinishComesWithIt(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	for name, node := range map[string]func() *Node{
		"leader":   func() *Node { return c.nodes[c.leader()] },
		"follower": c.follower,
	} {
		t.Run(name, func(t *testing.T) {
			topic := "during a finish, " + name
			r := &jobpb.Reserve{Topics: []string{topic}, Max: 1, TtrMs: 60_000}
			do(t, node(), add("", topic, 0))
			held, err := node().shard.Reserve(t.Context(), r, time.Second)
			require.NoError(t, err)
			for try := range 400 {
				n := node()
				// A bit more than the add takes, however busy the machine is.
				do(t, n, add("", topic, time.Duration(3+try%100)*time.Millisecond))
				called := n.shard.Now().UnixMilli()
				results, jobs, err := n.shard.FinishAndReserve(t.Context(), []*jobpb.Finish{finish(held[0]).GetFinish()}, r, true)
				require.NoError(t, err)
				require.NoError(t, job.ResultError(results[0]))
				if len(jobs) == 1 && jobs[0].DueMs > called {
					require.LessOrEqual(t, jobs[0].DueMs, n.shard.Now().UnixMilli(), "never before it is due")
					return
				}
				if len(jobs) == 0 {
					jobs, err = n.shard.Reserve(t.Context(), r, 5*time.Second)
					require.NoError(t, err)
					require.Len(t, jobs, 1)
				}
				held = jobs
			}
			require.Fail(t, "no job came with the finish")
		})
	}
}

func TestAFinishThatWaitsForNothingLeavesNoWaiter(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	n := c.nodes[c.leader()]
	r := &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: 60_000}
	gone := &jobpb.Finish{Ref: &jobpb.Ref{Seq: 99, Generation: 1}}
	results, jobs, err := n.shard.FinishAndReserve(t.Context(), []*jobpb.Finish{gone}, r, true)
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_NOT_FOUND, results[0].Code)
	require.Empty(t, jobs)
	require.Zero(t, n.shard.dispatcher().Waiting())
	do(t, n, add("a", "t", 0))
	jobs, err = n.shard.Reserve(t.Context(), r, 0)
	require.NoError(t, err)
	require.Len(t, jobs, 1, "nobody else has it")
}

func TestFinishAndReserveRefusesWhatNoNodeSends(t *testing.T) {
	v := followerService(t)
	good := func() *noderpc.FinishAndReserveRequest {
		return &noderpc.FinishAndReserveRequest{
			Finishes: []*jobpb.Finish{{Ref: &jobpb.Ref{Id: "a"}}},
			Reserve:  &jobpb.Reserve{Topics: []string{"t"}, Max: 1},
		}
	}
	_, err := v.FinishAndReserve(t.Context(), good())
	require.Equal(t, leaderrpc.ErrNotLeader, err)
	for name, spoil := range map[string]func(*noderpc.FinishAndReserveRequest){
		"no finish":      func(r *noderpc.FinishAndReserveRequest) { r.Finishes = nil },
		"many finishes":  func(r *noderpc.FinishAndReserveRequest) { r.Finishes = make([]*jobpb.Finish, job.MaxBatch+1) },
		"finish of none": func(r *noderpc.FinishAndReserveRequest) { r.Finishes[0].Ref = nil },
		"a delete too":   func(r *noderpc.FinishAndReserveRequest) { r.Delete = &jobpb.Delete{Ref: &jobpb.Ref{Id: "b"}} },
		"delete of none": func(r *noderpc.FinishAndReserveRequest) { r.Finishes, r.Delete = nil, &jobpb.Delete{} },
		"no reserve":     func(r *noderpc.FinishAndReserveRequest) { r.Reserve = nil },
		"no topic":       func(r *noderpc.FinishAndReserveRequest) { r.Reserve.Topics = nil },
		"its own work":   func(r *noderpc.FinishAndReserveRequest) { r.Principal = job.SystemPrincipal },
		"its own wait":   func(r *noderpc.FinishAndReserveRequest) { r.Reserve.Principal = job.SystemPrincipal },
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			spoil(r)
			_, err := v.FinishAndReserve(t.Context(), r)
			require.Equal(t, codes.InvalidArgument, status.Code(err))
		})
	}
}

// A message of a peer is refused, or has finishes or a delete, and a reserve, that may enter
// the log.
func FuzzFinishAndReserve(f *testing.F) {
	for i := range 3 {
		m := &noderpc.FinishAndReserveRequest{Reserve: &jobpb.Reserve{Topics: []string{"t", "u"}[:min(i, 2)], Max: 2}}
		for n := range i {
			m.Finishes = append(m.Finishes, &jobpb.Finish{Ref: &jobpb.Ref{Id: fmt.Sprint(n), Seq: uint64(n), Generation: uint32(i)}})
		}
		if i == 0 {
			m.Delete = &jobpb.Delete{Ref: &jobpb.Ref{Seq: 1, Generation: 1}, SpareReserved: true}
		}
		b, err := m.MarshalVT()
		require.NoError(f, err)
		f.Add(b)
	}
	v := followerService(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(noderpc.FinishAndReserveRequest)
		if m.UnmarshalVTUnsafe(data) != nil {
			return
		}
		if _, err := v.FinishAndReserve(context.Background(), m); err != leaderrpc.ErrNotLeader {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			return
		}
		b, err := m.MarshalVT()
		require.NoError(t, err)
		again := new(noderpc.FinishAndReserveRequest)
		require.NoError(t, again.UnmarshalVTUnsafe(b))
		require.True(t, proto.Equal(m, again))
	})
}

// Callers give up at about the moment in which their call is done: on the leader itself, and at
// another node, where the reply may be on its way already.
func TestNoJobStaysReservedForACallerThatGaveUp(t *testing.T) {
	const jobs, calls = 50, 1500
	c := newTestCluster(t, 3)
	leader, other := c.nodes[c.leader()], c.follower()
	addMany(t, leader, "t", jobs)
	for name, n := range map[string]*Node{"leader": leader, "follower": other} {
		t.Run(name, func(t *testing.T) {
			limit := 2 * time.Millisecond // follows how long a call takes
			gave, gaveUp := 0, 0
			for range calls {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				resp, err := leaderrpc.Call(ctx, &n.shard.toLeader, leaderrpc.Rules{}, &noderpc.FinishAndReserveRequest{
					Finishes: []*jobpb.Finish{{Ref: &jobpb.Ref{Id: "nothing"}}}, Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: time.Hour.Milliseconds()},
				}, n.shard.finishAndReserve, n.shard.finishAndReserveAt)
				cancel()
				if err != nil {
					gaveUp++
					limit += limit / 30
					continue
				}
				limit -= limit / 30
				if len(resp.Jobs) > 0 {
					gave++
					n.shard.giveBack(resp.Jobs)
				}
			}
			t.Logf("%d calls gave a job, %d gave up", gave, gaveUp)
			require.NotZero(t, gave)
			require.NotZero(t, gaveUp)
			c.eventually(func() bool {
				totals, err := leader.shard.Totals(t.Context(), false)
				return err == nil && totals.Reserved == 0
			}, "no job is reserved for nobody")
		})
	}
}
