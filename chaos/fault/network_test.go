package fault

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/network"
)

// silent reports whether rules drop everything from one node to another.
func silent(rules []network.Rule, from, to string) bool {
	return slices.ContainsFunc(rules, func(r network.Rule) bool {
		return (r.Loss == 1 || r.Reset == 1) && len(r.Ports) == 0 && slices.Contains(r.From, from) && slices.Contains(r.To, to)
	})
}

var five = []string{"n1", "n2", "n3", "n4", "n5"}

func TestOneNodeAside(t *testing.T) {
	others := []string{"n2", "n3"}
	for name, c := range map[string]struct {
		cut        cut
		sends, has bool // what the victim can still do
	}{
		"aside":         {aside, false, false},
		"cannotSend":    {cannotSend, false, true},
		"refused":       {refusing, false, false},
		"cannotReceive": {cannotReceive, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules := c.cut(nil, "n1", others)
			for _, other := range others {
				require.Equal(t, c.sends, !silent(rules, "n1", other))
				require.Equal(t, c.has, !silent(rules, other, "n1"))
			}
			require.False(t, silent(rules, "n2", "n3"))
		})
	}
}

func TestNeitherHalfIsEmpty(t *testing.T) {
	for seed := range uint64(100) {
		for size := 2; size <= len(five); size++ {
			e := &Env{Rand: rand.New(rand.NewPCG(seed, 0))}
			ids := five[:size]
			rules := halves(e, ids)
			cutOff := 0
			for _, id := range ids[1:] {
				require.Equal(t, silent(rules, ids[0], id), silent(rules, id, ids[0]))
				if silent(rules, ids[0], id) {
					cutOff++
				}
			}
			require.True(t, cutOff > 0 && cutOff < size, "seed %d: %v", seed, rules)
		}
	}
}

func TestInARingEachNodeReachesAnotherMajority(t *testing.T) {
	for _, ids := range [][]string{five, {"n1", "n2", "n3", "n4", "n5", "n6", "n7"}} {
		rules := ring(nil, ids)
		seen := map[string]bool{}
		for _, id := range ids {
			var sees []string
			for _, other := range ids {
				require.Equal(t, silent(rules, id, other), silent(rules, other, id))
				if !silent(rules, id, other) {
					sees = append(sees, other)
				}
			}
			require.Greater(t, len(sees), len(ids)/2)
			require.Less(t, len(sees), len(ids))
			seen[strings.Join(sees, " ")] = true
		}
		require.Len(t, seen, len(ids))
	}
}

func TestBridgeReachesBothSides(t *testing.T) {
	for _, ids := range [][]string{five, five[:4], five[:3]} {
		rules := bridge(nil, ids)
		middle := ids[len(ids)/2]
		for _, id := range ids {
			require.False(t, silent(rules, middle, id) || silent(rules, id, middle))
		}
		require.True(t, silent(rules, ids[0], ids[len(ids)-1]))
		require.True(t, silent(rules, ids[len(ids)-1], ids[0]))
	}
}
