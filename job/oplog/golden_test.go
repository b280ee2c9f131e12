package oplog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/internal/golden"
)

// An entry of the log is read by nodes of several releases, and after an upgrade.
func TestAnEntryKeepsItsBytes(t *testing.T) {
	entry := append(AppendClockEpoch(AppendEntryHeader(nil, 1_700_000_000_123), 7), sampleRun(t)...)
	e, err := DecodeEntry(golden.Frozen(t, "entry-1", entry))
	require.NoError(t, err)
	require.EqualValues(t, 1_700_000_000_123, e.NowMs)
	require.EqualValues(t, 7, e.ClockEpoch)
	require.Len(t, e.Ops, len(sampleOps()))
	for i, op := range sampleOps() {
		require.True(t, proto.Equal(op, e.Ops[i]), "operation %d", i)
	}
}

func TestAnEntryWhoseTimeIsRoundedKeepsItsBytes(t *testing.T) {
	entry := append(AppendEntryTime(nil, time.Unix(1_700_000_000, 123_400_000), 7, roundedDownSince), sampleRun(t)...)
	e, err := DecodeEntry(golden.Frozen(t, "entry-rounded-1", entry))
	require.NoError(t, err)
	require.EqualValues(t, 1_700_000_000_123, e.NowMs)
	require.EqualValues(t, 7, e.ClockEpoch)
	require.True(t, e.RoundedDown)
	require.Len(t, e.Ops, len(sampleOps()))
}
