package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/job"
)

// The client takes a longer silence of a node for its end.
func TestTheClientKnowsTheLongestPauseOfABackup(t *testing.T) {
	require.Equal(t, 16*time.Second, time.Duration(backup.BlockBytes)*time.Second/job.MinBackupRate)
}
