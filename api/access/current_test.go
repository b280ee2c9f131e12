package access

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// The first call waits for the election after a start. The next ones would wait in vain.
func TestANodeWithoutALeaderFailsAtOnceAfterItsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leads atomic.Bool
		l := newLeader(newChanging(enforced()), func(context.Context) (uint64, error) {
			if !leads.Load() {
				return 0, errors.New("there is no leader")
			}
			return 0, nil
		})
		c := newCurrent(l, 0)
		defer c.close()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, c.AwaitReady(ctx), "its client went away, so it says nothing of the next")
		for range 3 {
			err := c.AwaitReady(t.Context())
			require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
			require.Equal(t, time.Second+readyWait, time.Since(began))
		}
		leads.Store(true)
		<-c.Ready()
		require.NoError(t, c.AwaitReady(t.Context()))
	})
}
