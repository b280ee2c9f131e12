package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/internal/golden"
	"tarry/job/jobpb"
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
