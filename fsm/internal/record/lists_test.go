package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// Every state has the list of its number on disk, and the list has the state.
func TestStatesAndLists(t *testing.T) {
	cases := []struct {
		state jobpb.State
		list  List
		disk  byte
		phase phase
	}{
		{jobpb.State_STATE_NONE, ListNone, 0, PhaseWaiting},
		{jobpb.State_STATE_DELAYED, ListDelayed, 1, PhaseWaiting},
		{jobpb.State_STATE_READY, ListReady, 2, PhaseWaiting},
		{jobpb.State_STATE_RESERVED, ListReserved, 3, PhaseReserved},
		{jobpb.State_STATE_DEAD, ListDead, 4, PhaseDead},
		{jobpb.State_STATE_FINISHED, ListEnded, 5, PhaseFinished},
		{jobpb.State_STATE_DELETED, ListEnded, 5, PhaseDeleted},
	}
	require.Len(t, cases, len(jobpb.State_name), "all states")
	for _, c := range cases {
		t.Run(c.state.String(), func(t *testing.T) {
			require.Equal(t, c.list, ListOfState(c.state))
			require.Equal(t, c.state, c.list.State(c.phase))
			require.Equal(t, c.disk, ListID{List: c.list}.appendPrefix(nil)[5])
		})
	}
	require.Equal(t, ListNone, ListOfState(7), "an unknown state")
	require.Equal(t, ListNone, ListOfState(-1))
	require.Equal(t, jobpb.State_STATE_READY, ListExpiring.State(PhaseWaiting))
	require.Equal(t, jobpb.State_STATE_NONE, List(ListCount).State(PhaseWaiting))
	require.EqualValues(t, 6, ListExpiring)
	require.EqualValues(t, 7, ListDeadline)
	require.Equal(t, jobpb.State_STATE_RESERVED, ListReserved.State(PhaseDeleted), "the phase matters for ended jobs only")
}
