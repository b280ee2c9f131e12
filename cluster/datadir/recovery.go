package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"tarry/cluster/diskspace"
	"tarry/job"
)

// WithRecovery adds to the failure to use a shard what an operator can do about it,
// unless the cause lies outside of the data.
func WithRecovery(err error, shardDir string) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*job.VersionError)), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EMFILE):
		return err
	}
	return WithRejoin(err, filepath.Dir(shardDir))
}

// WithRejoin adds to err how a node comes back whose data cannot be used.
func WithRejoin(err error, dataDir string) error {
	return fmt.Errorf("%w; %s", err, recovery(dataDir))
}

func recovery(dataDir string) string {
	return fmt.Sprintf("the node does not serve from it. To bring the node back, move %s away (keep it until the cluster is healthy) "+
		"and start the node again with --join: it rejoins as a new member and gets everything from the others. "+
		"A cluster of one node has no others: only a backup helps there", dataDir)
}

// WithRoom adds to a failure for want of disk space what to do about it. Other errors,
// and nil, it returns as they are.
func WithRoom(err error, dataDir string) error {
	// The state's store tells some of its failures as text only.
	if err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: free some space there and start the node again; "+
		"delete nothing in the directory but, if it is there, the file "+
		diskspace.BallastFile+"; nothing that was acknowledged is lost: %w", dataDir, err)
}
