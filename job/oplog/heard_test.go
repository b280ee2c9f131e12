package oplog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestAnEntrySaysWhenItsLeaderAskedTheConfigGroup(t *testing.T) {
	h := Heard{AskedMS: 1_700_000_000_123, Epoch: 3, Number: 300}
	head := AppendEntryTime(nil, time.UnixMilli(5).Add(time.Nanosecond), 2, job.MaxVersion)
	require.Equal(t, head, AppendHeard(head, Heard{}), "nothing is written of nothing")
	entry := AppendHeard(head, h)
	r := new(OpReader)
	now, err := r.ReadEntry(entry)
	require.NoError(t, err)
	require.EqualValues(t, 5, now)
	require.Equal(t, h, r.Heard())
	require.True(t, r.RoundedDown())
	e, err := DecodeEntry(entry)
	require.NoError(t, err)
	require.Equal(t, []any{h.AskedMS, h.Epoch, h.Number}, []any{e.HeardMs, e.HeardEpoch, e.HeardNumber})
	for cut := len(head) + 1; cut < len(entry); cut++ {
		_, err := r.ReadEntry(entry[:cut])
		require.Error(t, err, "%d bytes", cut)
	}
	_, err = r.ReadEntry(head)
	require.NoError(t, err)
	require.Zero(t, r.Heard(), "it is not that of the entry before")
}
