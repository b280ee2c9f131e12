package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// go vet, in a caller's module, does not complain of how a Duration is made.
func TestADurationIsMadeOfATime(t *testing.T) {
	text, err := json.Marshal(Backoff{Base: DurationOf(1500 * time.Millisecond)})
	require.NoError(t, err)
	require.JSONEq(t, `{"base":1.5}`, string(text))
}

// A number of seconds is a duration or is refused. A duration in whole milliseconds is
// encoded and decoded without a change.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"0", "1.5", "-0.001", "1e9", "1e300", "null", `"1"`, "NaN", "0x10", "9223372036.854775807"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d, again Duration
		if json.Unmarshal(text, &d) != nil {
			return
		}
		require.Zero(t, d.Duration%time.Millisecond)
		out, err := json.Marshal(d)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, d, again)
		var seconds float64
		require.NoError(t, json.Unmarshal(text, &seconds))
		require.InDelta(t, seconds, d.Seconds(), 0.00051+1e-9*max(seconds, -seconds))
	})
}
