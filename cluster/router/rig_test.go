package router

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/fsm"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// group is a Group of one state machine, without Raft. A state machine numbers its jobs 1, 2, 3 and
// so on; the group shows the numbers that a shard gives.
type group struct {
	t             *testing.T
	shard, shards uint64
	clock         *int64

	mu          sync.Mutex
	machine     *fsm.Machine
	index       uint64
	changed     chan struct{} // closed and replaced whenever something was applied
	down        error         // of all calls
	known, here bool
	entries     int // of which Do and the reserves made each one
	followers   []*group
}

func newGroup(t *testing.T, shard, shards int, clock *int64) *group {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return &group{t: t, shard: uint64(shard), shards: uint64(shards), clock: clock, machine: m, changed: make(chan struct{}), known: true}
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
	r.config = newGroup(t, 0, 1, &r.clock)
	list := make([]Group, shards)
	for s := range shards {
		g := newGroup(t, s, shards, &r.clock)
		r.shards, list[s] = append(r.shards, g), g
	}
	r.config.followers = r.shards
	r.Queue = New(r.config, list)
	return r
}

// translate changes the seqs of a message, and the ids that are made of them.
func translate(m proto.Message, seq func(n uint64, place bool) uint64) {
	_, place := m.(*jobpb.Place)
	id := func(v string) string {
		if _, n, ok := job.ParseServerID(v); ok {
			return job.ServerID(0, seq(n, false))
		}
		return v
	}
	r := m.ProtoReflect()
	r.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				translate(v.List().Get(i).Message().Interface(), seq)
			}
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			for i := range v.List().Len() {
				v.List().Set(i, protoreflect.ValueOfString(id(v.List().Get(i).String())))
			}
		case f.IsList():
		case f.Kind() == protoreflect.MessageKind:
			translate(v.Message().Interface(), seq)
		case f.Kind() == protoreflect.StringKind:
			r.Set(f, protoreflect.ValueOfString(id(v.String())))
		case f.Name() == "seq" || f.Name() == "job_seq" || f.Name() == "last_seq":
			if v.Uint() != 0 {
				r.Set(f, protoreflect.ValueOfUint64(seq(v.Uint(), place)))
			}
		}
		return true
	})
}

// inner is the seq that the state machine knows; outer is the reverse. No job has the inner seq of a number of
// another shard, but in a place it comes behind the seqs that are smaller.
func (g *group) inner(seq uint64, place bool) uint64 {
	if !place && (seq-1)%g.shards != g.shard {
		return 1 << 50
	}
	return (seq + g.shards - 1 - g.shard) / g.shards
}

func (g *group) outer(seq uint64, _ bool) uint64 { return (seq-1)*g.shards + g.shard + 1 }

// apply applies ops as one entry, after an advance.
func (g *group) apply(ops ...*jobpb.Op) ([]*jobpb.Result, error) {
	if g.down != nil {
		return nil, g.down
	}
	data := oplog.AppendEntryHeader(nil, *g.clock)
	advance := &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1000}}}
	for _, op := range append([]*jobpb.Op{advance}, ops...) {
		op = proto.CloneOf(op)
		translate(op, g.inner)
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
	for _, r := range results[0] {
		translate(r, g.outer)
	}
	close(g.changed)
	g.changed = make(chan struct{})
	return results[0][1:], nil
}

// Do implements Group. What the config group does, all shards do.
func (g *group) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entries++
	results, err := g.apply(ops...)
	for _, f := range g.followers {
		if _, ferr := f.Do(context.Background(), ops); err == nil {
			err = ferr
		}
	}
	return results, err
}

// Reserve implements Group.
func (g *group) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	over := time.After(wait)
	for {
		g.mu.Lock()
		changed := g.changed
		results, err := g.apply(&jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: r}})
		changed = g.changed
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
	return rates.Series{Start: time.UnixMilli(1_700_000_000_000), Samples: []job.TopicEvents{{job.TopicAdded: g.shard + 1}}}
}

// shownWatch shows the numbers of a shard.
type shownWatch struct {
	*fsm.Watch
	of *group
}

func (w shownWatch) Add(reservations []job.Token) error {
	inner := make([]job.Token, len(reservations))
	for i, t := range reservations {
		inner[i] = job.Token{Seq: w.of.inner(t.Seq, false), Generation: t.Generation}
	}
	return w.Watch.Add(inner)
}

func (w shownWatch) Take() (ended []job.Token) {
	for _, t := range w.Watch.Take() {
		ended = append(ended, job.Token{Seq: w.of.outer(t.Seq, false), Generation: t.Generation})
	}
	return ended
}

// WatchWith implements Group.
func (g *group) WatchWith(wake chan struct{}) job.Watch {
	return shownWatch{g.machine.WatchWith(wake), g}
}

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
	r = proto.CloneOf(r)
	translate(r, g.inner)
	v := g.machine.View()
	defer func() { require.NoError(g.t, v.Close()) }()
	a, err := v.Read(r)
	if err == nil {
		translate(a, g.outer)
	}
	return a, err
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
