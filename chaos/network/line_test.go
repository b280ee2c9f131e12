package network

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1000, 0)

// carry sends count packets of 100 bytes, gap apart, and returns the order and the times of
// their arrivals.
func carry(r Rule, count int, gap time.Duration) (ids []uint32, after []time.Duration, lost int) {
	l := newLine(r)
	for i := range count {
		if !l.send(uint32(i), 100, start.Add(time.Duration(i)*gap)) {
			lost++
		}
	}
	for {
		at := l.next()
		id, ok := l.arrive(at)
		if !ok {
			return ids, after, lost
		}
		ids = append(ids, id)
		after = append(after, at.Sub(start)-time.Duration(id)*gap)
	}
}

// overtaken counts the packets that arrived after one that was sent later.
func overtaken(ids []uint32) int {
	n, latest := 0, uint32(0)
	for _, id := range ids {
		if id < latest {
			n++
		}
		latest = max(latest, id)
	}
	return n
}

func TestDelayedLineKeepsTheOrder(t *testing.T) {
	for name, r := range map[string]Rule{
		"delay":            {Delay: 100 * time.Millisecond},
		"delay and jitter": {Delay: 100 * time.Millisecond, Jitter: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			ids, after, lost := carry(r, 500, time.Millisecond)
			require.Len(t, ids, 500)
			require.Zero(t, lost)
			require.Zero(t, overtaken(ids))
			different := map[time.Duration]bool{}
			for _, d := range after {
				require.GreaterOrEqual(t, d, r.Delay-r.Jitter)
				require.LessOrEqual(t, d, r.Delay+r.Jitter)
				different[d] = true
			}
			require.Equal(t, r.Jitter > 0, len(different) > 1)
		})
	}
}

func TestReorderedPacketsOvertake(t *testing.T) {
	ids, after, _ := carry(Rule{Delay: 10 * time.Millisecond, Reorder: 0.2}, 500, time.Millisecond)
	require.Len(t, ids, 500)
	require.Greater(t, overtaken(ids), 20)
	early := 0
	for _, d := range after {
		if d == 0 {
			early++
		}
	}
	require.InDelta(t, 100, early, 50)
}

func TestNarrowLineCarriesItsRateAndDropsABacklog(t *testing.T) {
	// 100 bytes each at 1,000 bytes a second: ten packets a second.
	ids, after, lost := carry(Rule{Rate: 1000}, 50, 0)
	require.Equal(t, 50-len(ids), lost)
	require.Len(t, ids, 11, "what one second carries, and the packet that exceeds it")
	require.Equal(t, 100*time.Millisecond, after[0])
	require.Equal(t, 1100*time.Millisecond, after[10])
}

func TestRuleAsText(t *testing.T) {
	r := Rule{From: []string{"n1"}, To: []string{"n2", "n3"}, Ports: []int{7302}, Loss: 0.123456, Delay: 250 * time.Millisecond}
	require.Equal(t, "[n1] to [n2 n3], ports [7302], loss 12%, delay 250ms", r.String())
}

func TestASeedRepeatsTheChoices(t *testing.T) {
	r := Rule{Delay: time.Second, Jitter: time.Second, Reorder: 0.5, Seed: 7}
	a, _, _ := carry(r, 100, time.Millisecond)
	b, _, _ := carry(r, 100, time.Millisecond)
	require.Equal(t, a, b)
	r.Seed = 8
	c, _, _ := carry(r, 100, time.Millisecond)
	require.NotEqual(t, a, c)
}
