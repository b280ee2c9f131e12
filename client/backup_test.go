package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/job"
)

// A node pauses for the time of a block; at the lowest rate that must not look like silence.
func TestTheLowestRateOfABackupIsNotSilence(t *testing.T) {
	pause := time.Duration(backup.BlockBytes) * time.Second / job.MinBackupRate
	require.Less(t, 4*pause, backupSilence)
}
