package tracing

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// adds returns n operations.
func adds(n int) []*jobpb.Op {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", TtrMs: 1000}}}
	}
	return ops
}

// A collector that takes a request and never replies must cost nothing but its spans.
func TestACollectorThatHangsStopsNoOperation(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000") // ms; longer than the test on any machine
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "600000")
	r := newRig(t)
	var requests atomic.Int32
	release := make(chan struct{})
	defer close(release)
	r.receiver.status = func() int {
		requests.Add(1)
		<-release
		return http.StatusOK
	}
	const rounds, each = 10, 500
	for range rounds {
		results, err := r.traced.Do(t.Context(), adds(each))
		require.NoError(t, err)
		for _, one := range results {
			require.NoError(t, job.ResultError(one))
		}
	}
	require.EqualValues(t, rounds*each-maxPending, testutil.ToFloat64(r.tracer.export.dropped), "what waits is bounded")
	require.Eventually(t, func() bool { return requests.Load() > 0 }, 30*time.Second, time.Millisecond)
	require.EqualValues(t, 1, requests.Load(), "one request at a time")

	// No time is left for the rest.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.tracer.Close(ctx)
	require.EqualValues(t, rounds*each, testutil.ToFloat64(r.tracer.export.dropped))
	require.Zero(t, r.tracer.export.pending.Load())
	require.Equal(t, 1, strings.Count(r.log.String(), "\n"), r.log.String())
	require.Contains(t, r.log.String(), "level=WARN")

	results, err := r.traced.Do(t.Context(), adds(1))
	require.NoError(t, err)
	require.NoError(t, job.ResultError(results[0]), "operations go on after the end of the spans")
}

func TestACollectorThatRefusesSpansIsLoggedOnce(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	r := newRig(t)
	refuses := atomic.Bool{}
	refuses.Store(true)
	r.receiver.status = func() int {
		if refuses.Load() {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	_, err := r.traced.Do(t.Context(), adds(10))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return testutil.ToFloat64(r.tracer.export.dropped) == 10 }, 30*time.Second, time.Millisecond)
	refuses.Store(false)
	_, err = r.traced.Do(t.Context(), adds(5))
	require.NoError(t, err)
	require.Len(t, r.close(), 5)
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	require.Len(t, lines, 2, r.log.String())
	require.Contains(t, lines[0], "level=WARN")
	require.Contains(t, lines[0], "400")
	require.Contains(t, lines[1], "takes spans again")
}

func TestACollectorThatIsDownCostsOnlySpans(t *testing.T) {
	r := newRig(t)
	r.receiver.Close()
	_, err := r.traced.Do(t.Context(), adds(3))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.tracer.Close(ctx)
	require.EqualValues(t, 3, testutil.ToFloat64(r.tracer.export.dropped))
	require.Equal(t, 2, testutil.CollectAndCount(r.tracer))
}

func TestWhatACollectorSaysIsCutShort(t *testing.T) {
	text := brief(job.Invalid("field", "%s", strings.Repeat("ü", 1000)))
	require.Less(t, len(text), errorBytes+10)
	require.True(t, strings.HasSuffix(text, "..."))
}
