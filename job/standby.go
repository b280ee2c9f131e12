package job

import (
	"fmt"
	"io"

	"tarry/job/jobpb"
)

// MaxFollowEntries bounds the entries of the primary that one entry of a standby's log has.
const MaxFollowEntries = 4096

// checkFollowLog checks that the entries of the primary's log are in order and without a gap.
func checkFollowLog(f *jobpb.FollowLog) error {
	switch {
	case f.Primary == "":
		return Invalid("primary", "is missing")
	case len(f.Entries) > MaxFollowEntries:
		return Invalid("entries", "has %d items; the limit is %d", len(f.Entries), MaxFollowEntries)
	}
	for i, e := range f.Entries {
		if e.GetIndex() == 0 || i > 0 && e.Index != f.Entries[i-1].GetIndex()+1 {
			return Invalid(fmt.Sprintf("entries[%d].index", i), "is %d; the entries must be in order and without a gap", e.GetIndex())
		}
	}
	return nil
}

// CheckFollowed checks that this release can apply an entry of another cluster's log, and
// returns the highest cluster version that it raises to; 0: it raises none.
func CheckFollowed(data []byte) (raises uint32, err error) {
	r := new(OpReader)
	if _, err := r.ReadEntry(data); err != nil {
		return 0, err
	}
	for {
		op, err := r.Next()
		if err != nil || op == nil {
			return raises, err
		}
		switch k := op.Kind.(type) {
		case *jobpb.Op_RaiseVersion:
			raises = max(raises, k.RaiseVersion.GetTo())
		case *jobpb.Op_ReplaceState:
			return 0, fmt.Errorf("a backup has replaced the state")
		case *jobpb.Op_FollowLog, *jobpb.Op_PromoteStandby:
			return 0, fmt.Errorf("%s: the cluster is a standby itself", KindOf(op))
		}
	}
}

// LogOptions is which part of the log a reader wants.
type LogOptions struct {
	ClusterID string // whose log it is
	// After and Term are the last entry that the reader has.
	After, Term uint64
}

// LogWriter takes a stream of the log. Flush sends what was written.
type LogWriter interface {
	io.Writer
	Flush() error
}
