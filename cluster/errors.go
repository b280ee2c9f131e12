package cluster

import (
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/job"
)

// errRetry is the outcome of a batch or wait of which nothing was done and which
// another leader may take.
var errRetry = leaderrpc.ErrNotLeader

// errDiskLow is the answer to adds while disks are low.
func errDiskLow(why string) *job.Error {
	return &job.Error{Code: job.CodeDiskLow, RetryAfter: 5 * time.Second,
		Message: why + "; finish or delete jobs, or free disk space; everything but adds goes on"}
}
