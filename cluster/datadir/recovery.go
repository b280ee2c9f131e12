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

// WithRecovery adds to the failure to use a shard what an operator can do about it. It
// does not advise to move the directory if the cause is not in the data.
func WithRecovery(err error, shardDir string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EAGAIN): // the lock of the state's store
		return fmt.Errorf("another process has a file below %s open: stop it and start the node again: %w", shardDir, err)
	case errors.As(err, new(*job.VersionError)), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EMFILE):
		return err
	}
	return WithRejoin(err, filepath.Dir(shardDir))
}

// ErrUnusable is in the chain of each error of a directory that no node can use until somebody
// has acted.
var ErrUnusable = errors.New("the data directory cannot be used as it is")

// unusable adds ErrUnusable to an error without a change of its text.
type unusable struct{ error }

func (u unusable) Unwrap() []error { return []error{u.error, ErrUnusable} }

// WithRejoin adds to err how an operator brings back a node whose data cannot be used.
func WithRejoin(err error, dataDir string) error {
	return unusable{fmt.Errorf("%w; %s", err, recovery(dataDir))}
}

func recovery(dataDir string) string {
	return fmt.Sprintf("the node does not serve from it. tarry check --data-dir %s says what is damaged. If it is one of several nodes, and the others are a majority and run: "+
		"move %s away (keep it until the cluster is healthy) and start the node again with --join: "+
		"it rejoins as a new member and gets everything from the others. If it is the only node, or a majority is lost: "+
		"do not remove the directory, it may be all that is left of the jobs; "+
		"restore a backup with tarry restore into a new directory, or put a copy of the directory in its place that you made while the node was stopped; later changes are lost. "+
		"If another node is left, tarry recover shows what it has", dataDir, dataDir)
}

// WithRoom adds to an error of a full disk what to do about it. It returns other errors,
// and nil, unchanged.
func WithRoom(err error, dataDir string) error {
	// The state's store returns some of its failures as text only.
	if err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: free some space there and start the node again; "+
		"delete nothing in the directory but, if it is there, the file "+
		diskspace.BallastFile+"; nothing that was acknowledged is lost: %w", dataDir, err)
}
