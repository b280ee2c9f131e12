package router

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job"
	"tarry/job/jobpb"
)

// A read that has no case in the router would fail only when somebody makes it.
func TestEveryReadHasAnAnswer(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	what := (&jobpb.Read{}).ProtoReflect().Descriptor().Oneofs().ByName("what").Fields()
	for i := range what.Len() {
		f := what.Get(i)
		read := &jobpb.Read{}
		read.ProtoReflect().Set(f, read.ProtoReflect().NewField(f))
		switch k := read.What.(type) {
		case *jobpb.Read_Peek:
			k.Peek = &jobpb.Peek{Topic: "t", State: jobpb.State_STATE_READY}
		case *jobpb.Read_Jobs:
			k.Jobs = &jobpb.JobQuery{Topic: "t", Max: 10}
		case *jobpb.Read_JobsById:
			k.JobsById = &jobpb.JobsByID{Ids: []string{"t-1"}}
		case *jobpb.Read_Forecast:
			k.Forecast = &jobpb.ForecastQuery{StepMs: 60_000, Steps: 3}
		case *jobpb.Read_DueTopics:
			k.DueTopics = &jobpb.DueTopicsQuery{UntilMs: 60_000, Max: 5}
		case *jobpb.Read_DeadReasons:
			k.DeadReasons = &jobpb.DeadReasonsQuery{Max: 5}
		case *jobpb.Read_DeadTopics:
			k.DeadTopics = &jobpb.DeadTopicsQuery{Max: 5}
		}
		_, err := r.Read(t.Context(), read, false)
		require.NoError(t, err, "read %s", f.Name())
	}
}

func TestAReadFailsWithoutTheReplyOfOneShard(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	r.shards[2].down = job.NotApplied("no leader")
	_, err := r.Topic(t.Context(), "t", false)
	require.EqualError(t, err, "shard 2: no leader")
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
	_, err = r.Job(t.Context(), idIn(1, "t-", 0), false)
	require.NoError(t, err, "a job of another shard is found")
}

func TestPeekIsTheFirstOfAllShards(t *testing.T) {
	r := newRig(t, 4)
	for i := range 20 {
		op := add(fmt.Sprint("job-", i), "t")
		op.GetAdd().DelayMs = int64(1_000_000 - i)
		ready := add(fmt.Sprint("ready-", i), "t")
		ready.GetAdd().Priority = uint32(100 - i)
		r.do(t, op, ready)
	}
	j, err := r.Peek(t.Context(), "t", jobpb.State_STATE_DELAYED, false)
	require.NoError(t, err)
	require.Equal(t, "job-19", j.Id)
	j, err = r.Peek(t.Context(), "t", jobpb.State_STATE_READY, false)
	require.NoError(t, err)
	require.Equal(t, "ready-19", j.Id)
	_, err = r.Peek(t.Context(), "t", jobpb.State_STATE_DEAD, false)
	require.Equal(t, job.CodeNotFound, job.CodeOf(err))
	for _, i := range []int{4, 7, 2} {
		id := ref(fmt.Sprint("ready-", i))
		r.do(t, &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: id}}}, &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: id}}})
		r.clock += 10
	}
	j, err = r.Peek(t.Context(), "t", jobpb.State_STATE_DEAD, false)
	require.NoError(t, err)
	require.Equal(t, "ready-4", j.Id, "dead for longest")
}

func TestTopicsAreInOrderWhateverThePages(t *testing.T) {
	r := newRig(t, 4)
	for i := range 30 {
		for k := range 1 + i%3 {
			r.do(t, add(fmt.Sprintf("%d-%d", i, k), fmt.Sprintf("t%02d", i)))
		}
	}
	for _, most := range []int{1, 4, 7, 100} {
		var names []string
		for after := ""; ; {
			page, err := r.Topics(t.Context(), after, most, false)
			require.NoError(t, err)
			for _, c := range page {
				require.EqualValues(t, 1+len(names)%3, c.Ready, c.Name)
				names = append(names, c.Name)
			}
			if len(page) < most {
				break
			}
			after = page[len(page)-1].Name
		}
		require.Len(t, names, 30)
		require.IsIncreasing(t, names)
	}
}

func TestSchedulesAreFoundByNameAndListedInOrder(t *testing.T) {
	r := newRig(t, 4)
	for i := range 12 {
		s := &jobpb.Schedule{Spec: "@every 1h", Zone: "UTC", MissedAfterMs: 1000, Job: &jobpb.Add{Topic: "t", TtrMs: 1000, Body: make([]byte, 60_000)}}
		r.do(t, &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: fmt.Sprintf("s%02d", i), Schedule: s}}})
	}
	s, err := r.Schedule(t.Context(), "s07", false)
	require.NoError(t, err)
	require.Equal(t, "s07", s.Name)
	list, err := r.Schedules(t.Context(), "s01", 5, false)
	require.NoError(t, err)
	require.Len(t, list, 5)
	require.Equal(t, "s02", list[0].Name)
	require.Equal(t, "s06", list[4].Name)
	r.do(t, &jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: "s07"}}})
	_, err = r.Schedule(t.Context(), "s07", false)
	require.Equal(t, job.CodeNotFound, job.CodeOf(err))
}

func TestSchedulesBehindAPageThatEndedEarlyAreLeftOut(t *testing.T) {
	large := func(name string, bytes int) *jobpb.ScheduleInfo {
		return &jobpb.ScheduleInfo{Name: name, Schedule: &jobpb.Schedule{Job: &jobpb.Add{Body: make([]byte, bytes)}}}
	}
	full := []*jobpb.ScheduleInfo{large("b", 3<<20), large("d", 3<<20)}
	small := []*jobpb.ScheduleInfo{large("a", 1), large("c", 1), large("e", 1)}
	var names []string
	for _, s := range schedulesByName([][]*jobpb.ScheduleInfo{full, small}, 10) {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)
}

func TestANamespaceHoldsTheSumOfAllShards(t *testing.T) {
	r := newRig(t, 4)
	r.do(t, &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: &jobpb.PutNamespace{Namespace: &jobpb.Namespace{Name: "n", TopicPrefix: "n-"}}}})
	r.fill(t, "n-t", 20)
	a, err := r.Read(t.Context(), &jobpb.Read{What: &jobpb.Read_Namespaces{Namespaces: &jobpb.Empty{}}}, false)
	require.NoError(t, err)
	require.Len(t, a.Namespaces, 1)
	require.EqualValues(t, 20, a.Namespaces[0].Jobs)
	require.EqualValues(t, 1, a.Namespaces[0].Topics)
}

func TestDeadJobsAreGroupedOverAllShards(t *testing.T) {
	r := newRig(t, 4)
	for i := range 24 {
		op := add(fmt.Sprint("job-", i), fmt.Sprint("t", i%2))
		id := ref(op.GetAdd().Id)
		r.do(t, op, &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: id}}},
			&jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: id, Reason: []string{"timeout", "timeout", "parse"}[i%3]}}})
		r.clock++
	}
	d, err := r.DeadReasons(t.Context(), &jobpb.DeadReasonsQuery{Max: 1}, false)
	require.NoError(t, err)
	require.Equal(t, []uint64{24, 2}, []uint64{d.Jobs, d.Reasons})
	require.True(t, d.More)
	require.False(t, d.Incomplete)
	require.Equal(t, "timeout", d.Groups[0].Reason)
	require.EqualValues(t, 16, d.Groups[0].Jobs)
	d, err = r.DeadReasons(t.Context(), &jobpb.DeadReasonsQuery{Topic: "t0", Max: 5}, false)
	require.NoError(t, err)
	require.Equal(t, "job-0", d.Groups[0].FirstId)
	topics, err := r.DeadTopics(t.Context(), &jobpb.DeadTopicsQuery{Reason: "parse", Max: 5}, false)
	require.NoError(t, err)
	require.EqualValues(t, 8, topics.Jobs)
	require.Len(t, topics.Groups, 2)
}

func TestTheNewestSettingsOfAllShardsAreShown(t *testing.T) {
	of := func(revision uint64) *jobpb.Topic {
		return &jobpb.Topic{Name: "t", Ready: 1, Settings: &jobpb.TopicSettings{Revision: revision}}
	}
	sum := sumTopics([]*jobpb.Topic{of(1), of(3), {Name: "t", Ready: 1}, of(2)})
	require.EqualValues(t, 3, sum.Settings.Revision)
	require.EqualValues(t, 4, sum.Ready)
}

func TestRatesAreTheSumOfAllShards(t *testing.T) {
	r := newRig(t, 4)
	require.EqualValues(t, 10, r.TotalRates().Samples[0][job.TopicAdded])
	require.EqualValues(t, 10, r.Rates("t").Samples[0][job.TopicAdded])
}

// A field that is added to what a read answers must not be lost in the merge.
func TestEveryCountOfATopicIsSummed(t *testing.T) {
	one := &jobpb.Topic{}
	fields := one.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Kind().String() == "uint64" {
			one.ProtoReflect().Set(f, protoreflect.ValueOfUint64(uint64(i+1)))
		}
	}
	sum := sumTopics([]*jobpb.Topic{one, proto.CloneOf(one)})
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Kind().String() != "uint64" {
			continue
		}
		want := uint64(2 * (i + 1))
		if f.Name() == "pauses" {
			want /= 2 // each pause is one of all shards
		}
		require.Equal(t, want, sum.ProtoReflect().Get(f).Uint(), "%s", f.Name())
	}
}
