package fsm

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
	"tarry/job/slot"
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
	x.m.meta.State.NextSeq = max(uint64(s.Group), 1) // the shard's first
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

// takeNumber returns the next number: the seq of a job, or the revision of a schedule or namespace.
func (x *tx) takeNumber() uint64 {
	next := &x.m.meta.State.NextSeq
	number := *next
	*next += x.m.meta.Stride()
	return number
}

// isElsewhere refuses an operation that came to another group than that of what it is about, and
// reports whether it did. So no job is where nobody looks for it, and a group that cannot
// know never answers that a job does not exist.
func (x *tx) isElsewhere(op *jobpb.Op, r *jobpb.Result) bool {
	s := x.m.meta.Sharding
	var here bool
	switch oplog.RouteOf(op) {
	case oplog.RouteJob:
		here = isHere(oplog.RefOf(op), s)
	case oplog.RouteAdds:
		here = addsAreHere(op, s)
	case oplog.RouteSchedule:
		here = slot.OfSchedule(oplog.NameOf(op))%s.Shards == s.Group-1
	case oplog.RouteTopic:
		here = s.Group != 0
	default:
		return false
	}
	if here && s.Group != 0 {
		return false
	}
	_ = x.refuse(r, jobpb.Code_NOT_APPLIED, "the operation came to %s, and its job, schedule or topic is in another group; nothing was done", groupName(s))
	return true
}

// isHere reports whether a job can be in a group. An id and a seq that are not of the same job name
// none, in either's shard; nor do no id and no seq, in any.
func isHere(ref *jobpb.Ref, s *jobpb.Sharding) bool {
	id, seq := ref.GetId(), ref.GetSeq()
	return id == "" && seq == 0 ||
		seq != 0 && slot.ShardOfSeq(seq, s.Shards) == s.Group-1 ||
		id != "" && slot.Shard(id, s.Shards) == s.Group-1
}

// addsAreHere reports whether a group has the shard of the jobs that an operation brings: that of the
// job that it ends, else of the first id; inOneSlot looks at the others. Jobs without an id are
// of any shard. (Those of a pinned topic will be in the shard of its name.)
func addsAreHere(op *jobpb.Op, s *jobpb.Sharding) bool {
	if ref, ends := oplog.EndOf(op); ends {
		return isHere(ref, s)
	}
	for _, add := range oplog.AddsOf(op) {
		if add.GetId() != "" {
			return slot.Shard(add.Id, s.Shards) == s.Group-1
		}
	}
	return true
}

// inOneSlot reports whether the jobs that become one change are in one slot: those of adds that have
// ids, and done, which may be nil; if not, it refuses the operation. A shard is not enough, because which slots
// share one depends on the number of shards. A job whose id the server made has no slot, so the jobs that follow it
// have no ids.
func (x *tx) inOneSlot(adds []*jobpb.Add, done *record.Job, r *jobpb.Result) bool {
	const none = slot.Count
	of, list := uint32(none), "jobs"
	known := done != nil
	if known {
		list = "then"
		if done.Spec.ID != "" {
			of = slot.Of(done.Spec.ID)
		}
	}
	for i, add := range adds {
		if add.Id == "" {
			continue
		}
		switch s := slot.Of(add.Id); {
		case !known:
			of, known = s, true
		case s != of:
			err := job.FieldErrorf(job.CodeCrossSlot, "id",
				"%.40q is in another slot than the job before it; jobs that change together need one tag in their ids, such as {order-5}", add.Id)
			_ = x.refuseField(jobpb.Code_CROSS_SLOT, job.InItem(list, i, err), r)
			return false
		}
	}
	return true
}

// runsElsewhere refuses a run whose id is in another slot than its schedule, and reports whether it did: the
// tag of the key would be that of the id.
func (x *tx) runsElsewhere(schedule, key string, r *jobpb.Result) bool {
	if x.m.meta.Sharding == nil || slot.Of(job.KeyedRunID(schedule, key)) == slot.OfSchedule(schedule) {
		return false
	}
	err := job.FieldErrorf(job.CodeCrossSlot, "key", "%.40q has a tag in braces, which would put the run in another slot than its schedule", key)
	_ = x.refuseField(jobpb.Code_CROSS_SLOT, err, r)
	return true
}
