package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSleepEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, For(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(began))

		early := make(chan struct{}, 1)
		early <- struct{}{}
		require.True(t, Until(t.Context(), time.Hour, early))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, Until(ctx, time.Hour, early))
		require.Equal(t, time.Hour, time.Since(began))
	})
}
