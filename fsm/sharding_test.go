package fsm

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/internal/golden"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

func opSetSharding(id string, s *jobpb.Sharding) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id, Sharding: s}}}
}

func configGroup(shards uint32) *jobpb.Sharding {
	return &jobpb.Sharding{Shards: shards, Voters: []*jobpb.Voter{{ServerId: "n1.a", Address: "n1:7301"}}}
}

func TestANewClusterHasTheGroupButNotItsFirstVoters(t *testing.T) {
	for _, s := range []*jobpb.Sharding{configGroup(4), {Shards: 4, Group: 3}} {
		r := newRig(t, Options{})
		r.do(opSetSharding("old", s))
		require.NoError(t, r.m.EnterCluster(restored(r, 0)))
		for range 2 {
			require.Equal(t, "restored", r.m.ClusterID())
			require.Equal(t, s.Group, r.m.Group())
			require.EqualValues(t, 4, r.m.Shards())
			require.Empty(t, r.m.FirstVoters())
			r.reopen()
		}
	}
}

func TestABackupIsRestoredOnlyInPlaceOfItsGroup(t *testing.T) {
	mine := &jobpb.Sharding{Shards: 4, Group: 3}
	for _, tt := range []struct {
		from *jobpb.Sharding
		says string
	}{
		{mine, ""},
		{&jobpb.Sharding{Shards: 4, Group: 2}, "the backup is of group 2 of a cluster with 4 shards, and a state is restored only in its place: this is group 3 of a cluster with 4 shards"},
		{&jobpb.Sharding{Shards: 8, Group: 3}, "group 3 of a cluster with 8 shards"},
		{configGroup(4), "group 0 of a cluster with 4 shards"},
		{nil, "the backup is of a cluster with one shard"},
	} {
		r, from := newRig(t, Options{}), newRig(t, Options{})
		r.do(opRaise(2), opSetSharding("mine", mine))
		from.do(opRaise(2), opSetSharding("other", tt.from))
		s := stage(r, from)
		_, err := s.Restore(r.m, Restoration{NowMS: r.now})
		if tt.says != "" {
			require.ErrorContains(t, err, tt.says)
			require.NoError(t, s.Abort())
			continue
		}
		require.NoError(t, err)
		for _, op := range replacement(t, s, 1, 1<<20) {
			require.Equal(t, jobpb.Code_OK, r.one(op).Code)
		}
		for range 2 {
			require.Equal(t, "mine", r.m.ClusterID())
			require.EqualValues(t, 3, r.m.Group())
			r.reopen()
		}
		r.check()
	}
	first, then := newRig(t, Options{}), newRig(t, Options{})
	first.do(opRaise(2), opSetSharding("mine", configGroup(2)))
	then.do(opRaise(2), opSetSharding("other", &jobpb.Sharding{Shards: 2, Voters: []*jobpb.Voter{{ServerId: "n9.z", Address: "n9:7301"}}}))
	s := stage(first, then)
	_, err := s.Restore(first.m, Restoration{NowMS: first.now})
	require.NoError(t, err)
	for _, op := range replacement(t, s, 1, 1<<20) {
		require.Equal(t, jobpb.Code_OK, first.one(op).Code)
	}
	require.Equal(t, "n1.a", first.m.FirstVoters()[0].ServerId, "the members stay those of the running cluster")
}

func TestTheDigestHasTheSharding(t *testing.T) {
	digests := map[string]bool{}
	for _, s := range []*jobpb.Sharding{nil, {Shards: 4, Group: 1}, {Shards: 8, Group: 1}, configGroup(4)} {
		r := newRig(t, Options{})
		r.do(opSetSharding("c", s))
		digests[r.digest()] = true
	}
	require.Len(t, digests, 4)
}

func TestTheRecordOfTheShardingKeepsItsBytes(t *testing.T) {
	s := &jobpb.Sharding{Shards: 16, Voters: []*jobpb.Voter{
		{ServerId: "n1.a1b2", Address: "10.0.0.1:7301"}, {ServerId: "n2.c3d4", Address: "[fd00::2]:7301"},
	}}
	written, err := record.AppendSharding(nil, s)
	require.NoError(t, err)
	read, err := record.DecodeSharding(golden.Frozen(t, "sharding-10", written))
	require.NoError(t, err)
	require.True(t, proto.Equal(s, read))
	for _, bad := range []*jobpb.Sharding{{}, {Shards: 1}, {Shards: 4, Group: 5}} {
		b, err := record.AppendSharding(nil, bad)
		require.NoError(t, err)
		_, err = record.DecodeSharding(b)
		require.Error(t, err)
	}
}

// A restore and a promotion skip seqs; those after the gap are of the same shard, up to the last that is an
// exact number in JSON.
func TestSeqsStayInTheirShardAfterAGap(t *testing.T) {
	require.Zero(t, seqGap%slot.Count)
	for _, shards := range []uint32{1, 2, 4, 16, slot.Count} {
		for _, group := range []uint32{1, shards/2 + 1, shards} {
			r := newRig(t, Options{})
			next := &r.m.meta.State.NextSeq
			if shards > 1 {
				r.do(opRaise(2), opSetSharding("c", &jobpb.Sharding{Shards: shards, Group: group}))
			} else {
				group = 1
			}
			require.EqualValues(t, group, *next)
			last := uint64(0)
			for range 3 {
				added := r.one(opAdd(&jobpb.Add{Topic: "t"}))
				require.Equal(t, group-1, slot.ShardOfSeq(added.Seq, shards))
				require.Greater(t, added.Seq, last)
				last = added.Seq
				r.m.tx.skipSeqs()
				require.Equal(t, last+uint64(shards)+seqGap, *next)
			}
			for _, near := range []uint64{0, 1, 2, 1000} {
				*next = maxNextSeq - near*uint64(shards) - uint64(shards-group)
				r.m.tx.skipSeqs()
				require.Equal(t, maxNextSeq-uint64(shards-group), *next)
			}
			*next += uint64(shards)
			r.m.tx.skipSeqs()
			require.Equal(t, maxNextSeq+uint64(group), *next, "it never goes back")
		}
	}
}

func TestCheckFindsWhatIsOfAnotherShard(t *testing.T) {
	spec := func(seq uint64, id string) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error {
			s := record.Spec{ID: id, Topic: 1, CreatedMS: rigStart, DueMS: rigStart}
			return b.Set(record.AppendSeqKey(nil, record.SpaceSpec, seq), s.Append(nil, nil), nil)
		}
	}
	schedule := func(name string, revision uint64) func(b *pebble.Batch) error {
		return func(b *pebble.Batch) error {
			for kind, m := range map[byte]interface{ MarshalVT() ([]byte, error) }{
				record.ScheduleDef: everySchedule("t"), record.ScheduleState: &jobpb.ScheduleState{Revision: revision},
			} {
				value, err := record.EncodeSchedule(m)
				require.NoError(t, err)
				require.NoError(t, b.Set(record.AppendScheduleKey(nil, kind, name), value, nil))
			}
			return nil
		}
	}
	for _, tt := range []struct {
		group uint32
		name  string // of what the state has beside
		says  string
		do    func(b *pebble.Batch) error
	}{
		{3, "a job with a seq of another shard", "job 4 is not one of the seqs given so far", spec(4, "")},
		{3, "a job with an id of another shard", `job 3 has the id "a", which is of another shard`, spec(3, "a")},
		{3, "a schedule of another shard", `schedule "hourly" is of another shard`, schedule("hourly", 3)},
		{3, "a schedule with a number of another shard", `schedule "nightly" has revision 4`, schedule("nightly", 4)},
		{0, "a job in the config group", "the config group has job 1", spec(1, "")},
		{0, "a schedule in the config group", `schedule "nightly" is of another shard`, schedule("nightly", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			ops := []*jobpb.Op{opRaise(2), opSetSharding("c", shardingOf(4, tt.group))}
			if tt.group > 0 {
				ops = append(ops, opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t", Id: "e"}))
			}
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: encodeEntry(t, rigStart, ops...)}}, false)
			require.NoError(t, err)
			sound := m.View()
			require.NoError(t, check.Records(sound, nil))
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, tt.do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, check.Records(v, nil), tt.says)
			require.NoError(t, v.Close())
			require.NoError(t, m.Close())
		})
	}
}

// A job whose id the server made has no slot, not that of an empty id.
func TestNoIDFollowsAJobWithoutASlot(t *testing.T) {
	id := ""
	for n := 0; id == "" || slot.Of(id) != slot.Of(""); n++ {
		id = fmt.Sprint(n)
	}
	r := newRig(t, Options{})
	r.do(opRaise(2), opSetSharding("c", &jobpb.Sharding{Shards: 4, Group: slot.Of("")%4 + 1}))
	seq := r.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 1000})).Seq
	r.one(opReserve(1, "t"))
	followed := r.one(&jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{
		Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: seq}}, Adds: []*jobpb.Add{{Topic: "t", Id: id, TtrMs: 1000}},
	}}})
	require.Equal(t, jobpb.Code_CROSS_SLOT, followed.Code)
	require.Equal(t, "then[0].id", followed.Details.Field)
	require.NotNil(t, r.job(seq), "nothing was done")
}
