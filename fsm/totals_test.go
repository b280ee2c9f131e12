package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// compareTotals adds up what the model says of each topic.
func (s *simulation) compareTotals(v *View, topics []*jobpb.Topic) {
	want := &jobpb.Totals{Topics: uint64(len(topics))}
	for _, t := range topics {
		want.Delayed += t.Delayed
		want.Ready += t.Ready
		want.Reserved += t.Reserved
		want.Dead += t.Dead
		want.Retained += t.Retained
	}
	got, err := v.Totals()
	require.NoError(s.t, err)
	require.Truef(s.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}

func TestTotalsCountAllTopicsAlsoAfterARestart(t *testing.T) {
	r := newRig(t, Options{})
	totals := func() *jobpb.Totals {
		v := r.m.View()
		defer v.Close()
		got, err := v.Totals()
		require.NoError(t, err)
		return got
	}
	require.True(t, proto.Equal(&jobpb.Totals{}, totals()))
	r.retain("t", 5000)
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opAdd(&jobpb.Add{Id: "b", Topic: "t"}), opAdd(&jobpb.Add{Topic: "u", DelayMs: 50}))
	r.do(opReserve(2, "t"), opFinish(byID("a")), opBury(&jobpb.Bury{Ref: byID("b")}))
	want := &jobpb.Totals{Topics: 2, Delayed: 1, Dead: 1, Retained: 1}
	require.Truef(t, proto.Equal(want, totals()), "got %v", totals())
	r.reopen()
	require.Truef(t, proto.Equal(want, totals()), "got %v", totals())
	r.do(opMove(&jobpb.MoveJobs{Topic: "u", To: "v", Max: 10}))
	want.Topics = 3
	require.Truef(t, proto.Equal(want, totals()), "got %v", totals())
	r.now += 3_700_000
	r.one(opAdvance(10))
	want = &jobpb.Totals{Topics: 2, Ready: 1, Dead: 1}
	require.Truef(t, proto.Equal(want, totals()), "got %v", totals())
}
