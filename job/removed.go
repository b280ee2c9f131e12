package job

import "time"

// RemovedNode is a node that was removed from the cluster, and must not join again before it
// is admitted.
type RemovedNode struct {
	ID string
	At time.Time // when it was removed
}
