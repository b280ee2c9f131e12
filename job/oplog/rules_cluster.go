package oplog

import (
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

// The rules of what a group is; see CheckOp.

// maxFirstVoters is the most servers with which a group may begin.
const maxFirstVoters = 64

func checkSetCluster(l *job.Limits, op *jobpb.SetCluster) error {
	if err := l.CheckRefID("cluster_id", op.ClusterId); err != nil || op.Sharding == nil {
		return err
	}
	return checkSharding(l, op.Sharding)
}

func checkSharding(l *job.Limits, s *jobpb.Sharding) error {
	switch {
	case s.Shards < 2 || slot.Check(int(s.Shards)) != nil:
		return job.Invalid("shards", "is %d; it takes a power of two from 2 to %d, and a cluster with one shard has no sharding", s.Shards, slot.Count)
	case s.Group > s.Shards:
		return job.Invalid("group", "is %d; it takes 0 to %d", s.Group, s.Shards)
	case (s.Group == 0) != (len(s.Voters) > 0) || len(s.Voters) > maxFirstVoters:
		return job.Invalid("voters", "has %d servers; group 0 takes 1 to %d, and others none", len(s.Voters), maxFirstVoters)
	}
	for i, v := range s.Voters {
		if err := l.CheckRefID("server_id", v.GetServerId()); err != nil {
			return job.Under(fmt.Sprintf("voters[%d]", i), err)
		}
		if err := l.CheckRefID("address", v.GetAddress()); err != nil {
			return job.Under(fmt.Sprintf("voters[%d]", i), err)
		}
	}
	return nil
}

// maxConfigChanges is the most changes of one ConfigLog. Their bytes are bounded by the leader that
// makes it.
const maxConfigChanges = 4096

func checkConfigLog(_ *job.Limits, k *jobpb.ConfigLog) error {
	switch p := k.Part; {
	case k.Epoch == 0:
		return job.Invalid("epoch", "is missing")
	case (len(k.Changes) > 0) == (p != nil), len(k.Changes) > maxConfigChanges:
		return job.Invalid("changes", "are %d; a ConfigLog has 1 to %d of them, or a part", len(k.Changes), maxConfigChanges)
	case p != nil && len(p.Next) > 0 && string(p.Next) <= string(p.From):
		return job.Invalid("next", "is not after from")
	}
	return nil
}
