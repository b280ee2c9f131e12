package fsm

import (
	"fmt"
	"strings"

	"tarry/job/jobpb"
	"tarry/job/slot"
)

// setCluster also makes the model one of a group of several.
func (m *model) setCluster(op *jobpb.SetCluster, r *jobpb.Result) {
	shards, group := op.Sharding.GetShards(), op.Sharding.GetGroup()
	switch {
	case m.cluster == "" && shards > 0 && m.nextSeq > 1:
		r.Code = jobpb.Code_CONDITION_FAILED
	case m.cluster == "":
		m.cluster, m.shards, m.group = op.ClusterId, shards, group
		m.nextSeq = max(m.nextSeq, uint64(group))
	case m.cluster != op.ClusterId || m.shards != shards || m.group != group:
		r.Code = jobpb.Code_CLUSTER_MISMATCH
	}
}

// takeNumber counts to the next number of the shard, one by one.
func (m *model) takeNumber() uint64 {
	n := m.nextSeq
	for m.nextSeq++; m.group > 0 && !m.isMine(m.nextSeq); {
		m.nextSeq++
	}
	return n
}

func (m *model) isMine(seq uint64) bool {
	return seq > 0 && slot.ShardOfSeq(seq, m.shards)+1 == m.group
}

func (m *model) hasID(id string) bool { return slot.Shard(id, m.shards)+1 == m.group }

// isElsewhere reports whether another group has what an operation is about.
func (m *model) isElsewhere(op *jobpb.Op) bool {
	if m.shards == 0 {
		return false
	}
	ofJob := func(ref *jobpb.Ref) bool {
		id, seq := ref.GetId(), ref.GetSeq()
		return m.group == 0 || (id != "" || seq != 0) && !m.isMine(seq) && (id == "" || !m.hasID(id))
	}
	ofID := func(id string) bool { return m.group == 0 || id != "" && !m.hasID(id) }
	ofSchedule := func(name string) bool { return slot.OfSchedule(name)%m.shards+1 != m.group }
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		return ofID(k.Add.Id)
	case *jobpb.Op_ImportJob:
		return ofID(k.ImportJob.GetAdd().GetId())
	case *jobpb.Op_AtomicAdd:
		if k.AtomicAdd.Finish != nil {
			return ofJob(k.AtomicAdd.Finish.Ref)
		}
		for _, a := range k.AtomicAdd.Adds {
			if a.Id != "" {
				return ofID(a.Id)
			}
		}
		return m.group == 0
	case *jobpb.Op_PutSchedule:
		return ofSchedule(k.PutSchedule.Name)
	case *jobpb.Op_DeleteSchedule:
		return ofSchedule(k.DeleteSchedule.Name)
	case *jobpb.Op_FireSchedule:
		return ofSchedule(k.FireSchedule.Name)
	case *jobpb.Op_MoveJobs:
		if k.MoveJobs.Ref != nil {
			return ofJob(k.MoveJobs.Ref)
		}
		return m.group == 0
	case *jobpb.Op_KickTopic, *jobpb.Op_ReleaseTopic, *jobpb.Op_Purge, *jobpb.Op_PauseTopic:
		return m.group == 0
	}
	if onJob, is := kindOf(op).(interface{ GetRef() *jobpb.Ref }); is {
		return ofJob(onJob.GetRef())
	}
	return false
}

// kindOf returns the message of an operation.
func kindOf(op *jobpb.Op) any {
	m := op.ProtoReflect()
	return m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))).Message().Interface()
}

// crossesSlots reports whether jobs that change together are in several slots; done may be nil.
func (m *model) crossesSlots(adds []*jobpb.Add, done *modelJob) bool {
	if m.shards == 0 {
		return false
	}
	slots := map[string]bool{}
	if done != nil {
		slots["made by the server"] = true
		if done.ownID {
			slots = map[string]bool{fmt.Sprint(slot.Of(done.Id)): true}
		}
	}
	for _, a := range adds {
		if a.Id != "" {
			slots[fmt.Sprint(slot.Of(a.Id))] = true
		}
	}
	return len(slots) > 1
}

func (m *model) runsElsewhere(schedule, key string) bool {
	return m.shards > 0 && strings.Contains(key, "{") && slot.Of(schedule+"@now-"+key) != slot.OfSchedule(schedule)
}

// becomeGroup makes the machines of the simulation some group of several, in three of four seeds, and
// reports whether it did.
func (s *simulation) becomeGroup(cluster string) bool {
	shards := uint32(s.pick(1, 2, 4, 16))
	if shards == 1 {
		return false
	}
	s.shard(cluster, shards, s.rng.Uint32N(shards+1))
	return true
}

// shard makes the machines of the simulation a group of several.
func (s *simulation) shard(cluster string, shards, group uint32) {
	s.one(opRaise(2))
	s.one(opSetSharding(cluster, shardingOf(shards, group)))
	if group == 0 {
		return
	}
	var tag string
	for n := 0; len(s.names) < 40 || len(s.runs) < 4; n++ {
		id := fmt.Sprintf("id-%d", n)
		if !s.model.hasID(id) {
			continue
		}
		if tag == "" {
			tag = id
		}
		if s.names = append(s.names, id); len(s.names)%2 == 0 { // every second one has the tag
			s.names[len(s.names)-1] = fmt.Sprintf("{%s}-%d", tag, n)
		}
		s.runs = append(s.runs, id)
	}
}

func shardingOf(shards, group uint32) *jobpb.Sharding {
	if group == 0 {
		return configGroup(shards)
	}
	return &jobpb.Sharding{Shards: shards, Group: group}
}

// clusterOp names the cluster, mostly not as it is.
func (s *simulation) clusterOp() *jobpb.Op {
	id := fmt.Sprintf("cluster-%d", s.rng.IntN(2))
	if m := s.model; m.shards > 0 && s.rng.IntN(2) == 0 {
		return opSetSharding(id, shardingOf(m.shards, m.group))
	}
	return opSetCluster(id)
}

// jobID returns one of n ids of jobs, mostly of this shard.
func (s *simulation) jobID(n int) string {
	if len(s.names) == 0 || s.rng.IntN(12) == 0 {
		return fmt.Sprintf("id-%d", s.rng.IntN(n))
	}
	return s.names[s.rng.IntN(n)]
}

// scheduleName returns one of the names of schedules, mostly of this shard.
func (s *simulation) scheduleName() string {
	if len(s.runs) == 0 || s.rng.IntN(12) == 0 {
		return fmt.Sprintf("s%d", s.rng.IntN(4))
	}
	return s.runs[s.rng.IntN(4)]
}

// someSeq returns a seq that was given or is the next, mostly of this shard. There are gaps where states were
// replaced.
func (s *simulation) someSeq() uint64 {
	first, stride := max(uint64(s.model.group), 1), uint64(1)
	if s.model.group > 0 {
		stride = uint64(s.model.shards)
	}
	given := (s.model.nextSeq - first) / stride
	seq := first + stride*s.rng.Uint64N(min(given, 1000)+1)
	// New jobs are more likely to exist still.
	if s.rng.IntN(2) == 0 && given > 40 {
		seq = s.model.nextSeq - stride*(1+s.rng.Uint64N(40))
	}
	if stride > 1 && s.rng.IntN(12) == 0 {
		seq += s.rng.Uint64N(stride)
	}
	return seq
}
