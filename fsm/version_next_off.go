//go:build !chaos || !next

package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// What a build that stands for the next release has more: see version_next.go.

const nextStatusVersion = statusVersion

// migrationTo is how the records of the version before become those of a cluster
// version; nil: their formats are the same.
func migrationTo(uint32) *migration { return nil }

// statusFormat is the format in which a cluster version writes what became of a job.
func statusFormat(uint32) byte { return statusVersion }

type nextStatus struct{}

func (*nextStatus) append(b []byte, _ byte) []byte          { return b }
func (*nextStatus) decode(b []byte, _ byte) ([]byte, error) { return b, nil }
func (*nextStatus) update(*jobpb.Update)                    {}
func (x *tx) nextOperation(op *jobpb.Op, _ *jobpb.Result) error {
	return fmt.Errorf("this release does not know the operation %T: it was written by a newer release; upgrade this node", op.Kind)
}
