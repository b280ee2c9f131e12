package membership

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Advice that is followed must never remove the last copy of a job.
func TestTheWayOutOfAnIDThatTwoNodesHaveRemovesNoData(t *testing.T) {
	require.Contains(t, wayOut(true, false), "stop the other, remove its data directory")
	require.Contains(t, wayOut(false, true), "stop this one, remove its data directory")
	require.NotContains(t, wayOut(true, true), "remove")
	require.Contains(t, wayOut(true, true), "keep its data directory")
}
