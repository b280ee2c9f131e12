package job

import (
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Only the forms that String and ServerID write are accepted.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"0-1-1", "4294967295-18446744073709551615-4294967295", "$0-1", "$00-1", "0-+1-1", "order-1", "\x7f", "\xc2\x85"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if token, err := ParseToken(s); err == nil {
			require.Equal(t, s, token.String())
		} else {
			require.Less(t, len(err.Error()), 300, "an error repeats little of what was sent")
		}
		if shard, seq, ok := ParseServerID(s); ok {
			require.Equal(t, s, ServerID(shard, seq))
			require.NoError(t, CheckRefID("id", s))
			require.Error(t, CheckID("id", s))
		}
		err := CheckTopic("topic", s)
		if err == nil {
			require.True(t, utf8.ValidString(s) && len(s) <= MaxNameBytes && s != "")
		} else {
			require.Equal(t, CodeInvalid, CodeOf(err))
			require.Less(t, len(err.Error()), 300)
		}
	})
}

// Any number of seconds becomes milliseconds within the bounds, or an error.
func FuzzMillis(f *testing.F) {
	for _, s := range []float64{0, math.Copysign(0, -1), 0.0004999, 1e9, 1e9 + 1, 1e300, math.NaN(), math.Inf(1)} {
		f.Add(s, int64(MaxDelay))
	}
	f.Fuzz(func(t *testing.T, seconds float64, most int64) {
		limit := time.Duration(most)
		if limit < 0 || limit > MaxDelay {
			return
		}
		ms, err := Millis("delay", seconds, limit)
		if err != nil {
			require.Equal(t, CodeInvalid, CodeOf(err))
			return
		}
		require.Equal(t, seconds > 0, ms > 0, "0 stands for never in some places")
		require.LessOrEqual(t, time.Duration(ms)*time.Millisecond, max(limit+time.Millisecond/2, time.Millisecond))
		require.InDelta(t, seconds, float64(ms)/1000, 0.001)
	})
}
