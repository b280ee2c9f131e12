package cluster

import (
	"time"

	"tarry/job"
)

// errDiskLow is the error of adds while disks are low.
func errDiskLow(why string) *job.Error {
	return &job.Error{Code: job.CodeDiskLow, RetryAfter: 5 * time.Second,
		Message: why + "; finish or delete jobs, or free disk space; all other operations continue"}
}
