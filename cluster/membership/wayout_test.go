package membership

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Advice that is followed must never remove the last copy of a job.
func TestTheWayOutOfAnIDThatTwoNodesHaveRemovesNoData(t *testing.T) {
	require.Contains(t, wayOut(true, false), "stop the other, move its data directory away")
	require.Contains(t, wayOut(false, true), "stop this one, move its data directory away")
	require.NotContains(t, wayOut(true, true), "remove")
	require.Contains(t, wayOut(true, true), "keep its data directory")
}
