package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// A reserve that the state machine refuses would be refused at each attempt.
func TestARefusedReserveEndsItsWait(t *testing.T) {
	var submitted int
	d := New(func(ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
		submitted++
		require.Less(t, submitted, 3, "it is proposed again")
		done([]*jobpb.Result{{Code: jobpb.Code_INVALID, Message: "no such reserve"}}, nil)
	}, 10, nil)
	var got error
	d.Add(&Waiter{
		Reserve: &jobpb.Reserve{Topics: []string{"t"}, Max: 1},
		Done:    func(_ []*jobpb.Reserved, err error) { got = err },
	})
	d.Update([]Update{{Topic: "t", Ready: 1}})
	require.Equal(t, job.CodeInvalid, job.CodeOf(got))
	require.ErrorContains(t, got, "no such reserve")
	require.Zero(t, d.Waiting())
	require.Equal(t, 1, submitted)
}
