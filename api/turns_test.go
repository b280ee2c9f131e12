package api

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// Large requests wait for a turn, small ones never, and who goes away waits no
// longer.
func TestLargeRequestsAreDecodedInTurns(t *testing.T) {
	s := &server{Options: Options{MaxBodyBytes: 1 << 20}, decoding: newTurns(), buffered: NewBudget(1 << 30)}
	for range cap(s.decoding) {
		require.NoError(t, s.decoding.take(t.Context()))
	}
	for _, decode := range []func(*exchange) error{
		func(x *exchange) error { return x.decode(1<<20, &struct{}{}) },
		func(x *exchange) error { return x.decodeOptional(1<<20, &struct{}{}) },
	} {
		decode := func(ctx context.Context, spaces int) error {
			r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader("{}"+strings.Repeat(" ", spaces)))
			x := newExchange(s, httptest.NewRecorder(), r)
			defer x.close()
			return decode(x)
		}
		require.NoError(t, decode(t.Context(), 0))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, job.CodeNotApplied, job.CodeOf(decode(gone, largeRequest)))
		s.decoding.end()
		require.NoError(t, decode(t.Context(), largeRequest))
		require.Len(t, s.decoding, cap(s.decoding)-1, "the turn is given back")
		require.NoError(t, s.decoding.take(t.Context()))
	}
}
