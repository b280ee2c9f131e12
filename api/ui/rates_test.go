package ui

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

func TestRatesAreLinesOfCompleteSteps(t *testing.T) {
	const n = shownSteps
	r := client.Rates{Step: client.Duration{Duration: 10 * time.Second}}
	for range n + 1 {
		r.Added, r.Finished = append(r.Added, 20), append(r.Finished, 4)
		r.Deleted, r.Expired = append(r.Deleted, 5), append(r.Expired, 1)
		r.Died = append(r.Died, 0)
	}
	r.Added[n] = 1_000_000 // under way
	f := newFlow(&r)
	require.InDelta(t, 2, f.In, 0.001)
	require.InDelta(t, 1, f.Out, 0.001)
	require.Zero(t, f.Died)
	require.InDelta(t, 2, f.Lines.Peak, 0.001)
	require.Equal(t, 15, f.Lines.Minutes)
	require.Equal(t, n+2, strings.Count(f.Lines.In, ","), "the line, and two corners below it")
	require.Equal(t, n, strings.Count(f.Lines.Out, ","))
	require.True(t, strings.HasPrefix(f.Lines.Out, "0.0,"))
	require.Empty(t, f.Lines.Died)

	require.Nil(t, newFlow(&client.Rates{Step: r.Step}), "nothing is recorded")
	require.Nil(t, newFlow(&client.Rates{Step: r.Step, Added: []uint64{1}}), "no step is complete")
}

func TestLateJobsAreCountedUpToABound(t *testing.T) {
	r := newRig(t)
	for range maxLate + 1 {
		r.add(`{"topic":"many","body":0}`)
	}
	r.add(`{"topic":"one","body":0}`)
	r.add(`{"topic":"paused","body":0}`)
	r.api(http.MethodPost, "/v1/topics/paused/pause", "")
	require.Contains(t, mainText(t, r.open(Root)), "many 0 101 0 0 0", "nobody waits for long yet")
	r.dashboard.now = func() time.Time { return time.Now().Add(time.Minute) }
	text := mainText(t, r.open(Root))
	require.Contains(t, text, "many 0 101 100+ 0 0 1 min ago")
	require.Contains(t, text, "one 0 1 1 0 0 1 min ago")
	require.Contains(t, text, "paused paused 0 1 0 0 0")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=many")), "Late jobs 100+")
}
