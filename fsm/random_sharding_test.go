package fsm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/view"
	"tarry/job/jobpb"
	"tarry/job/oplog"
	"tarry/job/slot"
)

// The groups of a cluster with several shards get random operations, each the one that has what it
// is about. They do what a model of each predicts, the numbers included. No operation comes to a group that
// refuses it for that, no seq and no id is in two shards, and each job is where its id and its seq say.
func TestGroupsAreOneQueue(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		c := newShardedCluster(t, seed)
		for range *stepFlag {
			c.grow()
			if c.all.rng.IntN(10) == 0 {
				c.compare()
			}
		}
		c.compare()
	})
}

// shardedCluster is a simulation for each data group, and one that makes the operations.
type shardedCluster struct {
	t      *testing.T
	shards uint32
	all    *simulation // only its rng is used
	groups []*simulation
}

func newShardedCluster(t *testing.T, seed uint64) *shardedCluster {
	c := &shardedCluster{t: t, all: newSimulation(t, seed)}
	c.shards = []uint32{1, 2, 4, 16}[seed%4]
	for group := uint32(1); group <= c.shards; group++ {
		s := newSimulation(t, seed+uint64(group)<<32)
		s.replica("the machine of the group", Options{bounds: s.smallWindows()})
		if c.shards > 1 {
			s.shard("c", c.shards, group)
		}
		c.groups = append(c.groups, s)
	}
	return c
}

// grow gives each group an entry of the operations that are its.
func (c *shardedCluster) grow() {
	ops := make([][]*jobpb.Op, c.shards)
	for range c.all.rng.IntN(4 * int(c.shards)) {
		op := c.groups[c.all.rng.IntN(len(c.groups))].op()
		for _, shard := range c.route(op) {
			ops[shard] = append(ops[shard], op)
		}
	}
	for shard, s := range c.groups {
		s.step++
		s.now += s.pick(0, 1, 3, 10, 40, 500)
		s.entry(s.now, s.model.reset.epoch, slices.Values(ops[shard]))
		if s.model.clock < s.now {
			s.now = s.model.clock // it was set back
		}
		if c.shards > 1 {
			for i, want := range s.want[len(s.want)-1] {
				require.NotEqual(c.t, jobpb.Code_NOT_APPLIED, want.Code, "shard %d: %v", shard, ops[shard][i])
			}
		}
		s.applyLog(s.replicas[0], 1000)
	}
}

// route returns the shards that get an operation.
func (c *shardedCluster) route(op *jobpb.Op) []uint32 {
	ofRef := func(ref *jobpb.Ref) []uint32 {
		if ref.GetSeq() != 0 {
			return []uint32{slot.ShardOfSeq(ref.Seq, c.shards)}
		}
		return []uint32{slot.Shard(ref.GetId(), c.shards)}
	}
	anywhere := []uint32{c.all.rng.Uint32N(c.shards)}
	switch oplog.RouteOf(op) {
	case oplog.RouteJob:
		return ofRef(oplog.RefOf(op))
	case oplog.RouteAdds:
		if ref, ends := oplog.EndOf(op); ends {
			return ofRef(ref)
		}
		for _, add := range oplog.AddsOf(op) {
			if add.Id != "" {
				return []uint32{slot.Shard(add.Id, c.shards)}
			}
		}
		return anywhere
	case oplog.RouteSchedule:
		return []uint32{slot.OfSchedule(oplog.NameOf(op)) % c.shards}
	case oplog.RouteTopic:
		all := make([]uint32, c.shards)
		for i := range all {
			all[i] = uint32(i)
		}
		return all
	default:
		return anywhere
	}
}

// compare compares each machine with its model, and all of them with each other.
func (c *shardedCluster) compare() {
	ids, seqs := map[string]int{}, map[uint64]int{}
	for shard, s := range c.groups {
		r := s.replicas[0]
		s.compare(r.rig)
		v := r.m.View()
		for _, j := range s.model.sorted(func(*modelJob) bool { return true }, comparePlaced) {
			found := c.find(v, j.Id)
			require.Equal(c.t, j.Seq, found.Seq)
			require.Equal(c.t, uint32(shard), slot.Shard(j.Id, c.shards), j.Id)
			require.Equal(c.t, uint32(shard), slot.ShardOfSeq(j.Seq, c.shards), j.Id)
			require.NotContains(c.t, ids, j.Id)
			require.NotContains(c.t, seqs, j.Seq)
			ids[j.Id], seqs[j.Seq] = shard, shard
		}
		require.NoError(c.t, v.Close())
	}
}

func (c *shardedCluster) find(v *view.View, id string) *jobpb.Job {
	j, found, err := v.Job(id)
	require.NoError(c.t, err)
	require.True(c.t, found, id)
	return j
}
