package waits

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// A node waits for jobs as its own work only while it leads.
func TestAnotherNodesOwnWorkDoesNotWaitHere(t *testing.T) {
	leader := &remoteWaiters{waiters: map[uint64]*dispatch.Waiter{}} // a queue would be used
	leader.out.init()
	require.NoError(t, leader.handle(waitFor(1, &jobpb.Reserve{Topics: []string{"u"}, Max: 1, Principal: job.SystemPrincipal})))
	answers := leader.out.close()
	require.Len(t, answers, 1)
	require.Equal(t, uint64(1), answers[0].Waiter)
	require.NotNil(t, answers[0].Failure)
}

// A waiter on another node gets a refusal of the leader's state machine unchanged.
func TestARefusalReachesTheNodeThatWaits(t *testing.T) {
	leader := &remoteWaiters{waiters: map[uint64]*dispatch.Waiter{}}
	leader.out.init()
	leader.answer(1, nil, &job.Error{Code: job.CodeInvalid, Message: "no such reserve"})
	answers := leader.out.close()
	require.Len(t, answers, 1)

	s := newStream(nil, 0, nil)
	s.begin()
	var got error
	s.Add(&dispatch.Waiter{Reserve: &jobpb.Reserve{}, Done: func(_ []*jobpb.Reserved, err error) { got = err }})
	require.NoError(t, s.answer(answers[0]))
	require.Equal(t, job.CodeInvalid, job.CodeOf(got))
	require.ErrorContains(t, got, "no such reserve")
}
