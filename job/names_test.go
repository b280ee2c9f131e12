package job

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesRoundTrip(t *testing.T) {
	for _, c := range []Token{{0, 1, 1}, {7, 1 << 63, 1<<32 - 1}} {
		got, err := ParseToken(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
		shard, seq, ok := ParseServerID(ServerID(c.Shard, c.Seq))
		require.True(t, ok)
		require.Equal(t, []any{c.Shard, c.Seq}, []any{shard, seq})
	}
	for _, bad := range []string{"", "1-2", "0-0-1", "0-1-0", "00-1-1", "0-+1-1", "0-1-1-1", "0-1-4294967296", "a-b-c"} {
		_, err := ParseToken(bad)
		require.Error(t, err, bad)
	}
	for _, bad := range []string{"", "x", "$", "$0", "$0-", "$00-1", "$0-01", "$0-1 ", "0-1"} {
		_, _, ok := ParseServerID(bad)
		require.False(t, ok, bad)
	}
}

func TestMillisOfKeepsWhatIsOutOfRangeOut(t *testing.T) {
	for seconds, want := range map[float64]int64{
		0: 0, 1: 1000, 0.0004: 1, 0.0011: 2, 0.0016: 2, 0.1: 100, 1.001: 1001, 4.35: 4350, 1e9: 1e12, 999999999.999: 999999999999, -0.0004: -1, -1: -1000,
		1e300: math.MaxInt64, -1e300: math.MinInt64, math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64,
	} {
		require.Equal(t, want, MillisOf(seconds), seconds)
	}
	_, err := Millis("wait", math.NaN(), MaxWait)
	require.Error(t, err)
}
