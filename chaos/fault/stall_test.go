//go:build linux

package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnotherNodeLeadsInPlaceOfASuspendedLeader(t *testing.T) {
	e := onLoopback(t)
	passed := 0
	e.Count = func(_ string, n int) { passed += n }
	load := startAdds(t, e, "stall")
	require.NoError(t, stalledLeader(t.Context(), e))
	require.Equal(t, stalls, passed)
	load.check(t, e)
}
