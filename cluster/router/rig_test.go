package router

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"tarry/fsm"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// group is a Group of one state machine, without Raft.
type group struct {
	t     *testing.T
	shard int
	clock *int64

	mu          sync.Mutex
	machine     *fsm.Machine
	index       uint64
	changed     chan struct{} // closed and replaced whenever something was applied
	down        error         // of all calls
	known, here bool
	entries     int // of which Do and the reserves made each one
	followers   []*group
}

// newGroup returns group number of a cluster with several shards, or the one group of a cluster with one.
func newGroup(t *testing.T, number, shards int, clock *int64) *group {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	g := &group{t: t, shard: number - 1, clock: clock, machine: m, changed: make(chan struct{}), known: true}
	for version := uint32(2); version <= job.MaxVersion; version++ {
		g.begin(&jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: version}}})
	}
	named := &jobpb.SetCluster{ClusterId: "c"}
	if shards > 1 {
		named.Sharding = &jobpb.Sharding{Shards: uint32(shards), Group: uint32(number)}
		if number == 0 {
			named.Sharding.Voters = []*jobpb.Voter{{ServerId: "n1.a", Address: "n1:7301"}}
		}
	}
	g.begin(&jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: named}})
	return g
}

// begin does what a leader does by itself.
func (g *group) begin(op *jobpb.Op) {
	g.mu.Lock()
	defer g.mu.Unlock()
	results, err := g.apply(op)
	require.NoError(g.t, err)
	require.NoError(g.t, job.ResultError(results[0]))
}

// rig is a router over state machines.
type rig struct {
	*Queue
	config *group
	shards []*group
	clock  int64
}

func newRig(t *testing.T, shards int) *rig {
	r := &rig{clock: 1_700_000_000_000}
	r.config = newGroup(t, 0, shards, &r.clock)
	list := make([]Group, shards)
	for s := range shards {
		g := newGroup(t, s+1, shards, &r.clock)
		r.shards, list[s] = append(r.shards, g), g
	}
	if shards == 1 { // its one group is the config group too
		r.config = r.shards[0]
	} else {
		r.config.followers = r.shards
		require.NoError(t, r.config.followed())
	}
	r.Queue = New(r.config, list)
	return r
}

// apply applies ops as one entry, after an advance.
func (g *group) apply(ops ...*jobpb.Op) ([]*jobpb.Result, error) {
	if g.down != nil {
		return nil, g.down
	}
	data := oplog.AppendEntryHeader(nil, *g.clock)
	advance := &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1000}}}
	for _, op := range append([]*jobpb.Op{advance}, ops...) {
		var err error
		if data, err = oplog.AppendOp(data, op); err != nil {
			return nil, err
		}
	}
	g.index++
	results, _, err := g.machine.Apply([]fsm.Entry{{Index: g.index, Term: 1, Data: data}}, true)
	if err != nil {
		return nil, err
	}
	close(g.changed)
	g.changed = make(chan struct{})
	return results[0][1:], nil
}

// followed lets all shards follow the config group g.
func (g *group) followed() error {
	if len(g.followers) == 0 {
		return nil
	}
	c, err := g.machine.OpenConfig()
	if err != nil {
		return err
	}
	defer func() { require.NoError(g.t, c.Close()) }()
	for _, f := range g.followers {
		for {
			at := f.machine.ConfigGroup()
			next, err := c.For(&at)
			if err != nil || next == nil {
				require.NoError(g.t, err)
				break
			}
			f.begin(&jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: next}})
		}
	}
	return nil
}

// Do implements Group.
func (g *group) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries++
	results, err := g.apply(ops...)
	if err == nil {
		err = g.followed()
	}
	return results, err
}

// Reserve implements Group.
func (g *group) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	over := time.After(wait)
	for {
		g.mu.Lock()
		results, err := g.apply(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: r}})
		changed := g.changed
		g.mu.Unlock()
		if err == nil {
			err = job.ResultError(results[0])
		}
		if err != nil || len(results[0].Jobs) > 0 || wait == 0 {
			if err != nil {
				return nil, err
			}
			return results[0].Jobs, nil
		}
		select {
		case <-ctx.Done():
			return nil, job.NotApplied("the wait was given up: %w", ctx.Err())
		case <-over:
			return nil, nil
		case <-changed:
		}
	}
}

// FinishAndReserve implements Group.
func (g *group) FinishAndReserve(_ context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, _ bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	var ops []*jobpb.Op
	for _, f := range finishes {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}})
	}
	return g.endAndReserve(ops, r)
}

// DeleteAndReserve implements Group.
func (g *group) DeleteAndReserve(_ context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	results, jobs, err := g.endAndReserve([]*jobpb.Op{{Kind: &jobpb.Op_Delete{Delete: d}}}, r)
	if err != nil {
		return nil, nil, err
	}
	return results[0], jobs, nil
}

func (g *group) endAndReserve(ops []*jobpb.Op, r *jobpb.Reserve) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries++
	results, err := g.apply(append(ops, &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: r}})...)
	if err != nil {
		return nil, nil, err
	}
	n := len(ops)
	return results[:n], results[n].Jobs, job.ResultError(results[n])
}

// Rates and TotalRates implement Group: each shard has added one job more than the one before.
func (g *group) Rates(string) rates.Series { return g.TotalRates() }
func (g *group) TotalRates() rates.Series {
	return rates.Series{Start: time.UnixMilli(1_700_000_000_000), Samples: []job.TopicEvents{{job.TopicAdded: uint64(g.shard) + 1}}}
}

// WatchWith implements Group.
func (g *group) WatchWith(wake chan struct{}) job.Watch { return g.machine.WatchWith(wake) }

// KnowsLeader implements Group.
func (g *group) KnowsLeader() (known, here bool) { return g.known, g.here }

// Read implements Group. Like a node it writes into the read.
func (g *group) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.Shard = uint32(g.shard)
	if _, err := g.apply(); err != nil {
		return nil, err
	}
	v := g.machine.View()
	defer func() { require.NoError(g.t, v.Close()) }()
	return v.Read(r)
}

func add(id, topic string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: id, Topic: topic, TtrMs: 60_000, Body: []byte("body of " + id)}}}
}

func ref(id string) *jobpb.Ref { return &jobpb.Ref{Id: id} }

func finish(r *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: r}}}
}

// fill adds n jobs, a-0 and so on, which all shards get some of.
func (r *rig) fill(t *testing.T, topic string, n int) {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = add(fmt.Sprintf("%s-%d", topic, i), topic)
	}
	r.do(t, ops...)
}

// do does operations, all of which succeed.
func (r *rig) do(t *testing.T, ops ...*jobpb.Op) []*jobpb.Result {
	results, err := r.Do(t.Context(), ops)
	require.NoError(t, err)
	require.Len(t, results, len(ops))
	for i, one := range results {
		require.NoError(t, job.ResultError(one), "operation %d", i)
	}
	return results
}
