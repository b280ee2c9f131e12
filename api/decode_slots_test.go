package api

import (
	"context"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/addrlimit"
	"tarry/job"
)

// Large requests wait for a slot, small ones do not. A client that disconnects stops
// waiting.
func TestLargeRequestsAreDecodedInTurns(t *testing.T) {
	s := &server{Options: Options{MaxBodyBytes: 1 << 20}, decoding: newDecodeSlots(), buffered: addrlimit.New(1<<30, 1<<29)}
	require.NoError(t, s.decoding.Acquire(t.Context(), int64(runtime.GOMAXPROCS(0))))
	for _, decode := range []func(*call) error{
		func(x *call) error { return x.decode(1<<20, &struct{}{}) },
		func(x *call) error { return x.decodeOptional(1<<20, &struct{}{}) },
	} {
		decode := func(ctx context.Context, spaces int) error {
			r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader("{}"+strings.Repeat(" ", spaces)))
			x := newCall(s, httptest.NewRecorder(), r)
			defer x.close()
			return decode(x)
		}
		require.NoError(t, decode(t.Context(), 0))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, job.CodeNotApplied, job.CodeOf(decode(gone, largeRequest)))
		s.decoding.Release(1)
		require.NoError(t, decode(t.Context(), largeRequest))
		require.True(t, s.decoding.TryAcquire(1), "the turn is given back")
	}
}
