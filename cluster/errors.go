package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"tarry/job"
)

// errRetry is the outcome of a batch or wait of which nothing was done and which
// another leader may take. It never leaves this package.
var errRetry = errors.New("not the leader any more")

func errBusy() *job.Error {
	return &job.Error{Code: job.CodeOverloaded, RetryAfter: time.Second,
		Message: "too much is waiting to be committed on this node; try again later"}
}

func errEntryTooLarge(bytes int) *job.Error {
	return job.Errorf(job.CodeTooLarge, "the request takes %d bytes in the log; it may take %d at most", bytes, maxEntryBytes)
}

func errNoLeader() *job.Error {
	e := job.NotApplied("there is no leader: fewer than a majority of the nodes can reach each other, or an election is under way")
	e.RetryAfter = time.Second
	return e
}

// errDeposed is the answer to what this node proposed as the leader.
func errDeposed() *job.Error { return job.NotApplied("this node does not lead any more") }

// errDiskLow is the answer to adds while disks are low.
func errDiskLow(why string) *job.Error {
	return &job.Error{Code: job.CodeDiskLow, RetryAfter: 5 * time.Second,
		Message: why + "; finish or delete jobs, or free disk space; everything but adds goes on"}
}

func errDraining() *job.Error {
	return job.NotApplied("this node is about to stop; ask another node")
}

// withWayOut adds to the failure to open a shard what an operator can do about it,
// unless the reason lies outside of the data.
func withWayOut(err error, shardDir string) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*job.VersionError)), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EMFILE):
		return err
	}
	return fmt.Errorf("%w; %s", err, wayOut(filepath.Dir(shardDir)))
}

// wayOut says how a node comes back whose data cannot be used.
func wayOut(dataDir string) string {
	return fmt.Sprintf("the node does not serve from it. To bring the node back, move %s away (keep it until the cluster is healthy) "+
		"and start the node again with --join: it rejoins as a new member and gets everything from the others. "+
		"A cluster of one node has no others: only a backup helps there", dataDir)
}
