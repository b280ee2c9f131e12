package waits

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/dispatch"
	"tarry/job/jobpb"
)

// A canceled waiter that was not sent to a leader ends at once, and is not sent.
func TestAWaiterThatWasNotSentIsCanceledHere(t *testing.T) {
	s := newStream(nil, 0, nil)
	ends := make([]error, 3)
	var ws []*dispatch.Waiter
	for i := range ends {
		w := &dispatch.Waiter{Reserve: &jobpb.Reserve{}, Done: func(_ []*jobpb.Reserved, err error) { ends[i] = err }}
		s.Add(w)
		ws = append(ws, w)
	}
	s.Cancel(ws[1], true)
	require.Equal(t, []error{nil, dispatch.ErrStopped, nil}, ends)
	sent := s.begin().close()
	require.Len(t, sent, 2)
	require.EqualValues(t, 1, sent[0].Waiter, "in the order in which they came")
	require.EqualValues(t, 3, sent[1].Waiter)
	s.end()
	require.Equal(t, []error{dispatch.ErrStopped, dispatch.ErrStopped, dispatch.ErrStopped}, ends)
}
