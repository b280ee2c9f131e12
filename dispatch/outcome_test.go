package dispatch

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// A consumer gives up after its reserve was applied, and before its Done is called: the dispatcher
// cannot cancel the waiter any more, and its consumer has not seen the outcome.
func TestAConsumerThatGivesUpBetweenTheResultAndItsDelivery(t *testing.T) {
	var back []*jobpb.Reserved
	out := NewOutcome(func(jobs []*jobpb.Reserved) { back = append(back, jobs...) })
	w := &Waiter{Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, Done: out.Done}
	var reserved func([]*jobpb.Result, error)
	var d *Dispatcher
	d = New(func(_ []*jobpb.Op, done func([]*jobpb.Result, error)) { reserved = done }, 10, func([]*jobpb.Reserved) {
		d.Cancel(w, false)
		out.Abandon()
		require.Empty(t, back, "it is not known yet")
	})
	d.Add(w)
	d.Update([]Update{{Topic: "t", Ready: 1}})
	require.NotNil(t, reserved)
	reserved([]*jobpb.Result{{Jobs: []*jobpb.Reserved{{Seq: 7}}}}, nil)
	require.Len(t, back, 1)
	require.EqualValues(t, 7, back[0].Seq)
	require.Empty(t, out.C)
}

// Whatever comes first, the jobs are received or given back, once.
func TestAnOutcomeIsReceivedOrGivenBackOnce(t *testing.T) {
	for range 2000 {
		var back, received atomic.Int64
		out := NewOutcome(func(jobs []*jobpb.Reserved) { back.Add(int64(len(jobs))) })
		delivered := make(chan struct{})
		go func() {
			defer close(delivered)
			out.Done([]*jobpb.Reserved{{Seq: 1}}, nil)
		}()
		select {
		case got := <-out.C:
			received.Add(int64(len(got.Jobs)))
		default:
		}
		out.Abandon()
		<-delivered
		require.EqualValues(t, 1, back.Load()+received.Load())
	}
}
