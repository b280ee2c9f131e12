package cluster

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/job"
)

func TestARateMustEndABackupInTime(t *testing.T) {
	const seconds = int64(job.MaxBackupTime / time.Second)
	require.NoError(t, checkBackupRate(0, 1<<50), "without a limit")
	require.NoError(t, checkBackupRate(job.MinBackupRate, job.MinBackupRate*seconds))
	err := checkBackupRate(job.MinBackupRate, job.MinBackupRate*seconds+1)
	require.Equal(t, job.CodeInvalid, job.CodeOf(err))
	require.EqualError(t, err, "rate is 65536 bytes a second; this state of 2831155201 bytes takes at least 65537, so that its backup ends within 12h0m0s")
	require.NoError(t, checkBackupRate(job.MaxBackupRate, 1<<55))
}

func TestThePacerKeepsTheRateWithoutLongPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPacer(t.Context(), io.Discard, job.MinBackupRate)
		const blocks = 10
		for range blocks {
			before := time.Now()
			n, err := p.Write(make([]byte, backup.BlockBytes))
			require.NoError(t, err)
			require.Equal(t, backup.BlockBytes, n)
			require.LessOrEqual(t, time.Since(before), 16*time.Second)
		}
		require.Equal(t, (blocks-1)*16*time.Second, time.Since(began), "the first block is due at once")
		require.EqualValues(t, blocks*backup.BlockBytes, p.written)
	})
}

// slowReader takes its time for each write.
type slowReader time.Duration

func (r slowReader) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(r))
	return len(b), nil
}

// A client that reads just fast enough for the deadline of each write must not keep the
// checkpoint and the only place for a backup.
func TestASlowReaderDoesNotHoldABackupForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPacer(t.Context(), slowReader(29*time.Second), 0)
		var err error
		block := make([]byte, backup.BlockBytes)
		for i := 0; err == nil && i < 10_000; i++ {
			_, err = p.Write(block)
		}
		require.ErrorContains(t, err, "12h0m0s")
		require.InDelta(t, job.MaxBackupTime, time.Since(began), float64(time.Minute))
	})
}

func TestThePacerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPacer(ctx, io.Discard, job.MinBackupRate)
		_, err := p.Write(make([]byte, 2*backup.BlockBytes))
		require.NoError(t, err)
		time.AfterFunc(time.Second, cancel)
		_, err = p.Write([]byte("x"))
		require.ErrorIs(t, err, context.Canceled)
	})
}
