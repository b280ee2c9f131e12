package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/diskspace"
	"tarry/cluster/groupcommit"
	"tarry/cluster/membership"
	"tarry/job"
	"tarry/job/jobpb"
)

// fakeDisks gives every node of a cluster a disk of 1000 MiB with a mark at 100,
// and the function that sets what is free on one of them.
func fakeDisks(n int) (tune func(i int, cfg *Config), free []atomic.Uint64) {
	free = make([]atomic.Uint64, n)
	for i := range free {
		free[i].Store(900)
	}
	return func(i int, cfg *Config) {
		cfg.DiskLowWater = diskspace.Bytes(100 << 20)
		cfg.measureDisk = func(string) (uint64, uint64, error) { return free[i].Load() << 20, 1000 << 20, nil }
	}, free
}

func codeOfAdd(n *Node, id string) job.Code {
	_, err := n.shard.Do(context.Background(), []*jobpb.Op{add(id, "t", 0)})
	if err == nil {
		return ""
	}
	return job.CodeOf(err)
}

func TestALowDiskRefusesAddsAndNothingElse(t *testing.T) {
	t.Parallel()
	tune, free := fakeDisks(1)
	c := newTunedCluster(t, 1, tune)
	c.leader()
	n := c.nodes[0]
	do(t, n, add("a", "t", 0), add("b", "t", 0), add("c", "t", 0))
	require.Empty(t, n.Readiness().Warnings)

	free[0].Store(99)
	c.eventually(func() bool { return codeOfAdd(n, "d") == job.CodeDiskLow }, "adds are refused")
	_, err := n.shard.Do(context.Background(), []*jobpb.Op{add("d", "t", 0)})
	var refusal *job.Error
	require.ErrorAs(t, err, &refusal)
	require.NotZero(t, refusal.RetryAfter)
	r := n.Readiness()
	require.True(t, r.Ready, "consumers free space, so the node must serve them: %v", r.Reasons)
	require.Len(t, r.Warnings, 2)

	jobs := reserveOne(t, n, patience, "t")
	require.Len(t, jobs, 1)
	ref := &jobpb.Ref{Id: jobs[0].Id, Seq: jobs[0].Seq, Generation: jobs[0].Generation}
	do(t, n, &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref}}})
	do(t, n, &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: ref}}})
	jobs = reserveOne(t, n, patience, "t")
	require.Len(t, jobs, 1)
	do(t, n, finish(jobs[0]))
	do(t, n, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: "c"}}}})

	free[0].Store(200)
	c.eventually(func() bool { return codeOfAdd(n, "d") == "" }, "adds are taken again, without a restart")
	require.Empty(t, n.Readiness().Warnings)
}

func TestOneLowDiskOfThreeDoesNotStopAddsButTwoDo(t *testing.T) {
	t.Parallel()
	tune, free := fakeDisks(3)
	c := newTunedCluster(t, 3, tune)
	first := c.leader()
	via := c.nodes[(first+1)%3]
	do(t, via, add("a", "t", 0), add("b", "t", 0))

	free[(first+2)%3].Store(10)
	c.eventually(func() bool {
		h, err := via.Health(context.Background())
		return err == nil && strings.Contains(strings.Join(h.Reasons, "; "), "little free space")
	}, "the low disk is known to the leader")
	do(t, via, add("c", "t", 0))

	free[(first+1)%3].Store(10)
	var mu sync.Mutex
	codes := map[string]job.Code{"a": "", "b": "", "c": ""} // of adds; a leader accepts some before it knows
	try := func(n *Node, id string) job.Code {
		code := codeOfAdd(n, id)
		mu.Lock()
		defer mu.Unlock()
		codes[id] = code
		return code
	}
	for i, n := range c.nodes {
		tried := 0
		c.eventually(func() bool {
			tried++
			return try(n, fmt.Sprint("d", i, "-", tried)) == job.CodeDiskLow
		}, "adds through every node are refused")
	}
	// A follower's finish shares a batch with adds that are refused.
	jobs := reserveOne(t, via, patience, "t")
	require.Len(t, jobs, 1)
	var adding sync.WaitGroup
	for i := range 20 {
		adding.Go(func() { try(via, fmt.Sprint("e", i)) })
	}
	do(t, via, finish(jobs[0]))
	adding.Wait()

	free[(first+1)%3].Store(900)
	c.eventually(func() bool { return try(via, "f") == "" }, "adds are taken again")
	page, err := via.shard.Jobs(context.Background(), &jobpb.JobQuery{Topic: "t", Max: 1000}, false)
	require.NoError(t, err)
	there := map[string]bool{jobs[0].Id: true}
	for _, j := range page.Jobs {
		there[j.Id] = true
	}
	for id, code := range codes {
		if code != job.CodeUnknown {
			require.Equal(t, code == "", there[id], "add of %s: %s", id, cmp.Or(code, "done"))
		}
	}
}

// slowLog is a log whose appends take as long as delay.
type slowLog struct {
	raft.LogStore
	delay *atomic.Int64 // nanoseconds
}

func (l slowLog) IsMonotonic() bool { return l.LogStore.(raft.MonotonicLogStore).IsMonotonic() }

func (l slowLog) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l slowLog) StoreLogs(es []*raft.Log) error {
	<-time.After(time.Duration(l.delay.Load()))
	return l.LogStore.StoreLogs(es)
}

// slowDisks gives every node of a cluster a slowLog.
func slowDisks(n int) (tune func(i int, cfg *Config), delay []atomic.Int64) {
	delay = make([]atomic.Int64, n)
	return func(i int, cfg *Config) {
		cfg.wrapLog = func(l raft.LogStore) raft.LogStore { return slowLog{l, &delay[i]} }
		cfg.membership = membership.Timing{Health: 500 * time.Millisecond, MinLead: time.Second}
	}, delay
}

// The leader's disk becomes slow and a voter with a fast one takes over. Leadership stays
// there while the first disk is slow, and when all are slow.
func TestLeadershipMovesFromASlowDiskOnceAndStays(t *testing.T) {
	t.Parallel()
	tune, delay := slowDisks(3)
	c := newTunedCluster(t, 3, tune)
	slow := c.leader()
	delay[slow].Store(int64(1200 * time.Millisecond))
	via := c.nodes[slow]
	i := 0
	c.eventually(func() bool {
		i++
		codeOfAdd(via, fmt.Sprint("a", i))
		at := -1
		for j, n := range c.nodes {
			if n.shard.dispatcher() != nil {
				at = j
			}
		}
		return at >= 0 && at != slow
	}, "another node leads")

	// From now on all disks are equally slow. Once that is measured there is no transfer.
	for j := range delay {
		delay[j].Store(int64(600 * time.Millisecond))
	}
	write := func() {
		i++
		codeOfAdd(via, fmt.Sprint("a", i)) // leadership may be lost for other reasons
	}
	c.eventually(func() bool {
		write()
		for _, n := range c.nodes {
			if n.shard.stores.WriteTime() < 500*time.Millisecond {
				return false
			}
		}
		return true
	}, "all are known to be slow")
	transferAttempts := func() (sum uint64) {
		for _, n := range c.nodes {
			sum += n.members.TransferAttempts()
		}
		return sum
	}
	before := transferAttempts()
	require.NotZero(t, before)
	families, err := via.Metrics().Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "tarry_leadership_transfers_total" {
			require.Equal(t, "COUNTER", f.GetType().String())
			families = nil
		}
	}
	require.Nil(t, families, "it is among the metrics")
	for range 3 { // several evaluations
		write()
	}
	require.Equal(t, before, transferAttempts(), "no transfer when all are slow")
}

// gatedLog is a log whose appends wait while the gate is closed.
type gatedLog struct {
	raft.LogStore
	gate *sync.RWMutex
}

func (l gatedLog) IsMonotonic() bool { return l.LogStore.(raft.MonotonicLogStore).IsMonotonic() }

func (l gatedLog) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l gatedLog) StoreLogs(es []*raft.Log) error {
	l.gate.RLock()
	defer l.gate.RUnlock()
	return l.LogStore.StoreLogs(es)
}

// With heartbeats such a leader keeps leading, and Raft itself accepts entries without a
// bound. Adds arrive as fast as possible and do not wait for one another.
func TestALeaderWhoseFollowersStallUsesBoundedMemory(t *testing.T) {
	t.Parallel()
	gates := make([]sync.RWMutex, 3)
	c := newTunedCluster(t, 3, func(i int, cfg *Config) {
		cfg.wrapLog = func(l raft.LogStore) raft.LogStore { return gatedLog{l, &gates[i]} }
		cfg.files.hungAfter = time.Hour // the gates are closed while so many adds are submitted
	})
	at := c.leader()
	leader := c.nodes[at]
	do(t, leader, add("first", "t", 0))
	for i := range gates {
		if i != at {
			gates[i].Lock()
		}
	}
	const each, count = 64 << 10, 3000 // three times what may wait
	op := add("", "t", time.Hour)
	op.GetAdd().Body = make([]byte, each)
	var taken, refused, other atomic.Int64
	var completed sync.WaitGroup
	completed.Add(count)
	for range count {
		leader.shard.submit([]*jobpb.Op{op}, "", false, func(_ []*jobpb.Result, err error) {
			switch {
			case err == nil:
				taken.Add(1)
			case job.CodeOf(err) == job.CodeOverloaded:
				refused.Add(1)
			default:
				other.Add(1)
			}
			completed.Done()
		})
	}
	under := leader.shard.raft.LastIndex() - leader.shard.raft.CommitIndex()
	waiting := leader.shard.batcher.Waiting()
	for i := range gates {
		if i != at {
			gates[i].Unlock()
		}
	}
	completed.Wait()
	require.LessOrEqual(t, under, uint64(2*groupcommit.MaxInFlight), "entries that Raft has and followers do not; a few are the leader's own")
	require.LessOrEqual(t, waiting, groupcommit.MaxQueuedBytes)
	// If leadership is lost, which only a busy machine does, what was under way makes room.
	require.GreaterOrEqual(t, refused.Load()+other.Load(), int64(count-groupcommit.MaxQueuedBytes/each-2*groupcommit.MaxInFlight*groupcommit.MaxBatchBytes/each), "the rest is refused, at once")
	require.Equal(t, int64(count), taken.Load()+refused.Load()+other.Load())
	require.NotZero(t, taken.Load(), "accepted adds complete when the followers continue")
}
