//go:build !chaos || !next

package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// What a build that stands for the next release has more: see next.go.

const nextFateVersion = fateVersion

// migrationTo is how the records of the version before become those of a cluster
// version; nil: their formats are the same.
func migrationTo(uint32) *migration { return nil }

// fateFormat is the format in which a cluster version writes what became of a job.
func fateFormat(uint32) byte { return fateVersion }

type nextFate struct{}

func (*nextFate) append(b []byte, _ byte) []byte          { return b }
func (*nextFate) decode(b []byte, _ byte) ([]byte, error) { return b, nil }
func (*nextFate) update(*jobpb.Update)                    {}
func (x *tx) nextOperation(op *jobpb.Op, _ *jobpb.Result) error {
	return fmt.Errorf("this release does not know the operation %T: it was written by a newer release; upgrade this node", op.Kind)
}
