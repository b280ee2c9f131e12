package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/fsm"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func runOf(t testing.TB, ops ...*jobpb.Op) (run []byte) {
	var err error
	for _, op := range ops {
		run, err = oplog.AppendOp(run, op)
		require.NoError(t, err)
	}
	return run
}

// followerService is the service of a node that does not lead.
func followerService(t testing.TB) *service {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	s := &Shard{leaders: leaderrpc.NewWatch(time.Time{}), machine: m}
	s.cfg.ServerID = "n1.1"
	return &service{shard: func(uint32) *Shard { return s }}
}

// proposeTo calls Propose. It checks the operations before it checks who leads.
func proposeTo(v *service, count uint32, run []byte) error {
	_, err := v.Propose(context.Background(), &noderpc.ProposeRequest{Count: count, Ops: run})
	return err
}

func TestProposeRefusesWhatNoNodeCouldApply(t *testing.T) {
	good := runOf(t, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "a"}}}})
	v := followerService(t)
	require.Equal(t, leaderrpc.ErrNotLeader, proposeTo(v, 1, good))
	for name, c := range map[string]struct {
		count uint32
		run   []byte
	}{
		"another count":               {2, good},
		"cut short":                   {1, good[:len(good)-1]},
		"the queue's time":            {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}})},
		"a planned run":               {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "s"}}})},
		"another cluster's id":        {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "c"}}})},
		"a removal":                   {1, runOf(t, &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: "n1.a"}}})},
		"operation of a next release": {1, []byte{18, 3, 0xa2, 0x1f, 0}},
		"operation that is damaged":   {1, []byte{18, 2, 0x0a, 0x7f}},
		"field of a next release":     {1, []byte{18, 5, 0x32, 3, 0xa0, 6, 1}}, // 100 of Touch
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, codes.InvalidArgument, status.Code(proposeTo(v, c.count, c.run)))
		})
	}
}

// A proposal of a peer is refused, or is an entry that all nodes can read.
func FuzzPropose(f *testing.F) {
	f.Add(uint32(1), runOf(f, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "a"}}}}))
	f.Add(uint32(1), []byte{18, 3, 0xa2, 0x1f, 0})
	f.Add(uint32(0), []byte{})
	v := followerService(f)
	f.Fuzz(func(t *testing.T, count uint32, run []byte) {
		err := proposeTo(v, count, run)
		e, derr := oplog.DecodeEntry(append(oplog.AppendEntryHeader(nil, 1), run...))
		if err != leaderrpc.ErrNotLeader {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			return
		}
		require.NoError(t, derr)
		require.Len(t, e.Ops, int(count))
	})
}

// someReads has each read, with empty fields, and with all of them set to something.
func someReads() []*jobpb.Read {
	reads := []*jobpb.Read{
		{}, {What: &jobpb.Read_Job{Job: "a"}}, {What: &jobpb.Read_Job{Job: "$0-1"}},
		{What: &jobpb.Read_Topics{Topics: &jobpb.Page{Max: 1 << 31}}},
		{What: &jobpb.Read_Peek{Peek: &jobpb.Peek{Topic: "t", State: -1}}},
		{What: &jobpb.Read_Jobs{Jobs: &jobpb.JobQuery{Topic: "t", Max: 2}}},
		{What: &jobpb.Read_Jobs{Jobs: &jobpb.JobQuery{ByHeader: true, Filter: &jobpb.Filter{Headers: []*jobpb.Header{{Name: "h", Value: "v"}}}, Max: 2, After: &jobpb.JobMark{Header: "h", Seq: 3}}}},
	}
	kinds := (*jobpb.Read)(nil).ProtoReflect().Descriptor().Oneofs().ByName("what").Fields()
	for i := range kinds.Len() {
		empty, full := new(jobpb.Read), new(jobpb.Read)
		setField(empty.ProtoReflect(), kinds.Get(i), false)
		setField(full.ProtoReflect(), kinds.Get(i), true)
		reads = append(reads, empty, full)
	}
	return reads
}

// setField sets a field of m to its empty value, or to some value with all its fields set.
func setField(m protoreflect.Message, fd protoreflect.FieldDescriptor, full bool) {
	switch {
	case fd.IsList() || fd.IsMap():
	case fd.Message() != nil:
		in := m.Mutable(fd).Message()
		for i := 0; full && i < in.Descriptor().Fields().Len(); i++ {
			setField(in, in.Descriptor().Fields().Get(i), full)
		}
	case full:
		m.Set(fd, something[fd.Kind()])
	default:
		m.Set(fd, fd.Default())
	}
}

var something = map[protoreflect.Kind]protoreflect.Value{
	protoreflect.StringKind: protoreflect.ValueOfString("t"),
	protoreflect.BoolKind:   protoreflect.ValueOfBool(true),
	protoreflect.EnumKind:   protoreflect.ValueOfEnum(2),
	protoreflect.Int64Kind:  protoreflect.ValueOfInt64(1),
	protoreflect.Uint64Kind: protoreflect.ValueOfUint64(1),
	protoreflect.Uint32Kind: protoreflect.ValueOfUint32(1),
}

// A read of a peer is served or refused, and the reply arrives unchanged.
func FuzzReads(f *testing.F) {
	for _, r := range someReads() {
		b, err := proto.Marshal(r)
		require.NoError(f, err)
		f.Add(b)
	}
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem()})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, m.Close()) })
	add := &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", Body: []byte("b"), TtrMs: 1}}}
	_, _, err = m.Apply([]fsm.Entry{{Index: 1, Term: 1, Data: append(oplog.AppendEntryHeader(nil, 1), runOf(f, add, putEvery("s", "@daily", nil))...)}}, true)
	require.NoError(f, err)
	s := &Shard{machine: m, metrics: newShardMetrics(prometheus.NewRegistry())}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(jobpb.Read)
		if proto.Unmarshal(data, r) != nil {
			return
		}
		a, err := s.look(r)
		if err != nil {
			return
		}
		b, err := a.MarshalVT()
		require.NoError(t, err)
		got := new(jobpb.ReadResult)
		require.NoError(t, got.UnmarshalVTUnsafe(b))
		require.True(t, proto.Equal(a, got))
	})
}
