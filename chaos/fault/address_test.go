//go:build linux

package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSideWithTheGivenAddressIsOneShortOfAMajority(t *testing.T) {
	for size := 3; size <= 7; size += 2 {
		nodes := make([]int, size)
		for i := range nodes {
			nodes[i] = i
		}
		majority := size/2 + 1
		few, rest := sides(nodes)
		require.Contains(t, few, 1, "the heir")
		require.Len(t, few, majority-1)
		require.NotContains(t, append(few, rest...), 0, "the dead node")
		require.Less(t, len(rest), majority)
		require.GreaterOrEqual(t, len(rest)+1, majority, "with the dead node back they go on")
	}
}
