package fsm

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// A cluster with several shards has a state machine for each of its groups. Which one it is, a
// machine learns with the cluster's id, before it has given a number, and keeps. A fresh group has
// cluster version 1, which has no sharding, so its leader raises that to 2 before it names the cluster. In a
// cluster with one shard there is no such record, and nothing here has an effect.

// Shards returns how many shards the cluster has, as of the last commit: 1, or more once the machine
// knows its sharding.
func (m *Machine) Shards() uint32 { return max(m.sharding().GetShards(), 1) }

// Group returns which group of a cluster with several shards the machine's is: 0 is the config group, and g
// has the shard g-1. It is 0 in a cluster with one shard, too.
func (m *Machine) Group() uint32 { return m.sharding().GetGroup() }

// FirstVoters returns the servers with which each group of a cluster with several shards begins, as
// group 0 has recorded them; empty: it is not known, or the groups began otherwise. The caller must not change it.
func (m *Machine) FirstVoters() []*jobpb.Voter { return m.sharding().GetVoters() }

func (m *Machine) sharding() *jobpb.Sharding {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.sharding
}

// setSharding sets the sharding of a fresh state, and reports whether it did. nil: the cluster has one
// shard.
func (x *tx) setSharding(s *jobpb.Sharding, r *jobpb.Result) (bool, error) {
	if s == nil {
		return true, nil
	}
	if next := x.m.meta.State.NextSeq; next > 1 {
		return false, x.refuse(r, jobpb.Code_CONDITION_FAILED, "the group has given %d numbers to jobs and others; only an empty one becomes a group of several", next-1)
	}
	return true, x.useSharding(s)
}

// sameSharding refuses to name a cluster that has another sharding. The first voters of a repeated
// request may differ, since members come and go; those of the first stay.
func (x *tx) sameSharding(s *jobpb.Sharding, r *jobpb.Result) error {
	has := x.m.meta.Sharding
	if sameGroup(s, has) {
		return nil
	}
	return x.refuse(r, jobpb.Code_CLUSTER_MISMATCH, "this is %s; it cannot become %s", groupName(has), groupName(s))
}

func sameGroup(a, b *jobpb.Sharding) bool {
	return a.GetShards() == b.GetShards() && a.GetGroup() == b.GetGroup()
}

// groupName names a group in messages.
func groupName(s *jobpb.Sharding) string {
	if s == nil {
		return "a cluster with one shard"
	}
	return fmt.Sprintf("group %d of a cluster with %d shards", s.Group, s.Shards)
}

// forgetFirstVoters removes servers of another cluster from the state: nothing begins with them any
// more.
func (x *tx) forgetFirstVoters() error {
	if len(x.m.meta.Sharding.GetVoters()) == 0 {
		return nil
	}
	next := proto.CloneOf(x.m.meta.Sharding)
	next.Voters = nil
	return x.useSharding(next)
}

func (x *tx) useSharding(s *jobpb.Sharding) error {
	encoded, err := record.AppendSharding(nil, s)
	if err != nil {
		return err
	}
	must(x.batch.Set(record.KeySharding, encoded, nil))
	// Other goroutines read the value that was published, and s aliases the entry.
	x.m.meta.Sharding, err = record.DecodeSharding(encoded)
	x.cluster = true
	return err
}
