package cluster

import (
	"errors"
	"time"

	"tarry/job"
)

// errRetry is the outcome of a batch or wait of which nothing was done and which
// another leader may take. It never leaves this package.
var errRetry = errors.New("not the leader any more")

func errNoLeader() *job.Error {
	e := job.NotApplied("there is no leader: fewer than a majority of the nodes can reach each other, or an election is under way")
	e.RetryAfter = time.Second
	return e
}

// errDiskLow is the answer to adds while disks are low.
func errDiskLow(why string) *job.Error {
	return &job.Error{Code: job.CodeDiskLow, RetryAfter: 5 * time.Second,
		Message: why + "; finish or delete jobs, or free disk space; everything but adds goes on"}
}

func errDraining() *job.Error {
	return job.NotApplied("this node is about to stop; ask another node")
}
