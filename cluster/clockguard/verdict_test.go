package clockguard

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestClocksAreComparedWithTheMajoritys(t *testing.T) {
	const most = 5 * time.Second
	for _, c := range []struct {
		name    string
		voters  int
		clocks  string // seconds of the voters a, b, c...; - is silent; +1s/30 was measured with an error of 30 s
		median  float64
		unknown bool
		agreed  bool
		off     string
	}{
		{name: "a single voter is right", voters: 1, clocks: "3600", median: 3600, agreed: true},
		{name: "all alike", voters: 3, clocks: "0 1 2", median: 1, agreed: true},
		{name: "one ahead", voters: 3, clocks: "3600 0 1", median: 1, agreed: true, off: "a"},
		{name: "one behind", voters: 3, clocks: "0 1 -3600", median: 0, agreed: true, off: "c"},
		{name: "one ahead, one silent", voters: 3, clocks: "3600 0 -", median: 0},
		{name: "one silent", voters: 3, clocks: "2 0 -", median: 0, agreed: true},
		{name: "two silent", voters: 3, clocks: "0 - -", unknown: true},
		{name: "two voters that disagree", voters: 2, clocks: "3600 0", median: 0},
		{name: "all disagree", voters: 3, clocks: "7200 0 3600", median: 3600},
		{name: "two of five are off", voters: 5, clocks: "3600 0 1 2 -3600", median: 1, agreed: true, off: "ae"},
		{name: "two of five are off, two silent", voters: 5, clocks: "3600 0 -3600 - -", median: 0},
		{name: "four voters, two and two", voters: 4, clocks: "3600 3600 0 0", median: 0},
		{name: "just within", voters: 3, clocks: "5 0 0", median: 0, agreed: true},
		{name: "just beyond", voters: 3, clocks: "5.1 0 0", median: 0, agreed: true, off: "a"},
		{name: "the error is on its side", voters: 3, clocks: "30/30 0 0", median: 0, agreed: true},
		{name: "a non-voter has no say", voters: 1, clocks: "0 3600 3600", median: 0, agreed: true, off: "bc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, epoch := time.Now(), time.Unix(1_700_000_000, 0)
			readings := make(map[raft.ServerID]reading)
			var voters []raft.ServerID
			for i, text := range strings.Fields(c.clocks) {
				id := raft.ServerID(string(rune('a'+i)) + ".1")
				if i < c.voters {
					voters = append(voters, id)
				}
				if text == "-" {
					continue
				}
				by, within, _ := strings.Cut(text, "/")
				// Each clock was read at another instant and has advanced since.
				ago := time.Duration(i) * time.Second
				readings[id] = reading{wall: epoch.Add(seconds(t, by) - ago), at: at.Add(-ago), within: seconds(t, within)}
			}
			v := compare(voters, readings, at, most)
			require.Equal(t, c.unknown, v.majority.IsZero())
			if c.unknown {
				require.False(t, v.agreed)
				return
			}
			require.InDelta(t, c.median, v.majority.Sub(epoch).Seconds(), 1e-6)
			require.Equal(t, c.agreed, v.agreed)
			off := ""
			for i := range strings.Fields(c.clocks) {
				if v.off(raft.ServerID(string(rune('a'+i)) + ".1")) {
					off += string(rune('a' + i))
				}
			}
			require.Equal(t, c.off, off)
			require.Equal(t, c.off == "" && c.agreed, len(v.problems()) == 0, "%v", v.problems())
		})
	}
}

func seconds(t *testing.T, text string) time.Duration {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return time.Duration(n * float64(time.Second))
}
