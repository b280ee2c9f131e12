package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/cluster/alarm"
	"tarry/cluster/groupcommit"
	"tarry/cluster/leaderrpc"
	"tarry/fsm"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// roomyHost accepts adds.
type roomyHost struct{ Host }

func (roomyHost) AddsRefused() string { return "" }

// If a leader refuses a part of a call, it must not accept a later part of the same call.
func TestPartsOfACallKeepTheirOrder(t *testing.T) {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	synctest.Test(t, func(t *testing.T) {
		type sent struct {
			b        *groupcommit.Batch
			complete groupcommit.Complete
		}
		leader := make(chan sent, groupcommit.MaxInFlight)
		route := groupcommit.Route{Forwards: true, Send: func(b *groupcommit.Batch, complete groupcommit.Complete) { leader <- sent{b, complete} }}
		s := &Shard{machine: m, cfg: shardConfig{Timing: DefaultTiming(), Host: roomyHost{}}}
		s.opLimit.limit = s.cfg.OpTimeout
		s.batcher = groupcommit.New(func() (groupcommit.Route, <-chan struct{}) { return route, nil }, func(*groupcommit.Batch) {}, alarm.NewTimer)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.batcher.Run(ctx); close(done) }()

		var ops []*jobpb.Op
		for i := range 4 {
			ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Priority: uint32(i), Body: make([]byte, groupcommit.MaxPartBytes-100)}}})
		}
		var failed error
		go func() { _, failed = s.Do(ctx, ops) }()
		var applied []uint32
		refused := false
		for len(applied) < len(ops) {
			time.Sleep(time.Second)
			synctest.Wait()
			b := <-leader
			require.Empty(t, leader)
			if !refused {
				refused = true
				b.complete(nil, leaderrpc.ErrNotLeader)
				continue
			}
			e, err := oplog.DecodeEntry(b.b.AppendOps(oplog.AppendEntryHeader(nil, 1)))
			require.NoError(t, err)
			for _, op := range e.Ops {
				applied = append(applied, op.GetAdd().Priority)
			}
			b.complete(make([]*jobpb.Result, b.b.Count), nil)
		}
		synctest.Wait()
		require.NoError(t, failed)
		require.Equal(t, []uint32{0, 1, 2, 3}, applied)
		cancel()
		<-done
	})
}

// A call of a MiB, on the leader and through a follower.
func BenchmarkLargeCall(b *testing.B) {
	c := newTestCluster(b, 3)
	l := c.leader()
	for name, n := range map[string]*Node{"leader": c.nodes[l], "follower": c.nodes[(l+1)%3]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var ops []*jobpb.Op
				for range 1000 {
					ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Body: make([]byte, 1024), TtrMs: 1000}}})
				}
				do(b, n, ops...)
			}
		})
	}
}
