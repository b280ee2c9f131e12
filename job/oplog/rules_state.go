package oplog

import (
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
)

// The rules of operations that replace the state, or follow another cluster's log.

// MaxStateChunk bounds the parts in which a state enters the log that is to replace another.
const MaxStateChunk = 1 << 20

func checkPutStateChunk(p *jobpb.PutStateChunk) error {
	if p.Upload == 0 {
		return job.Invalid("upload", "is missing")
	}
	return job.Within("data", int64(len(p.Data)), 1, MaxStateChunk)
}

// MaxFollowEntries bounds the entries of the primary that one entry of a standby's log has.
const MaxFollowEntries = 4096

// checkFollowLog checks that the entries of the primary's log are in order and without a gap.
func checkFollowLog(f *jobpb.FollowLog) error {
	switch {
	case f.Primary == "":
		return job.Invalid("primary", "is missing")
	case len(f.Entries) > MaxFollowEntries:
		return job.Invalid("entries", "has %d items; the limit is %d", len(f.Entries), MaxFollowEntries)
	}
	for i, e := range f.Entries {
		if e.GetIndex() == 0 || i > 0 && e.Index != f.Entries[i-1].GetIndex()+1 {
			return job.Invalid(fmt.Sprintf("entries[%d].index", i), "is %d; the entries must be in order and without a gap", e.GetIndex())
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
		case *jobpb.Op_FollowLog, *jobpb.Op_PromoteStandby:
			return 0, fmt.Errorf("%s: the cluster is a standby itself", KindOf(op))
		}
	}
}
