package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestHistoryCutsAtACharacter(t *testing.T) {
	require.Equal(t, "aü", Cut("aüü", 4))
	require.Equal(t, "aü", Cut("aü", 3))
	require.Empty(t, Cut("ü", 1))
}

func TestDamagedHistoryIsAnError(t *testing.T) {
	whole := AddEvent("", 5, &jobpb.Event{Kind: jobpb.Event_RELEASED, AtMs: 9, DueMs: 3, State: 2}, "why")
	_, _, err := DecodeHistory(whole, 5)
	require.NoError(t, err)
	for n := 1; n < len(whole); n++ {
		_, _, err := DecodeHistory(whole[:n], 5)
		require.Error(t, err, "the first %d bytes", n)
	}
	for _, bad := range []string{whole + "x", "\x02" + whole[1:], "\xff" + whole[1:]} {
		_, _, err := DecodeHistory(bad, 5)
		require.Error(t, err)
	}
}
