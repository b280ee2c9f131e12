package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// Every state has the list of its number on disk, and the list has the state.
func TestStatesAndLists(t *testing.T) {
	cases := []struct {
		state jobpb.State
		list  listKind
		disk  byte
		phase phase
	}{
		{jobpb.State_STATE_NONE, listNone, 0, phaseWaiting},
		{jobpb.State_STATE_DELAYED, listDelayed, 1, phaseWaiting},
		{jobpb.State_STATE_READY, listReady, 2, phaseWaiting},
		{jobpb.State_STATE_RESERVED, listReserved, 3, phaseReserved},
		{jobpb.State_STATE_DEAD, listDead, 4, phaseDead},
		{jobpb.State_STATE_FINISHED, listEnded, 5, phaseFinished},
		{jobpb.State_STATE_DELETED, listEnded, 5, phaseDeleted},
	}
	require.Len(t, cases, len(jobpb.State_name), "all states")
	for _, c := range cases {
		t.Run(c.state.String(), func(t *testing.T) {
			require.Equal(t, c.list, listOfState(c.state))
			require.Equal(t, c.state, c.list.state(c.phase))
			require.Equal(t, c.disk, listID{list: c.list}.appendPrefix(nil)[5])
		})
	}
	require.Equal(t, listNone, listOfState(7), "an unknown state")
	require.Equal(t, listNone, listOfState(-1))
	require.Equal(t, jobpb.State_STATE_READY, listExpiring.state(phaseWaiting))
	require.Equal(t, jobpb.State_STATE_NONE, listKind(listCount).state(phaseWaiting))
	require.EqualValues(t, 6, listExpiring)
	require.EqualValues(t, 7, listDeadline)
	require.Equal(t, jobpb.State_STATE_RESERVED, listReserved.state(phaseDeleted), "the phase matters for ended jobs only")
}
