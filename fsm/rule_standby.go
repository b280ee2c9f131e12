package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// TakenByStandby reports whether a standby does an operation of its own log, not of its
// primary's.
func TakenByStandby(op *jobpb.Op) bool { return job.OfCluster(job.Number(op)) }

// offStandby reports whether a standby does not do the operation with this number. In that case
// r says why.
func (x *tx) offStandby(number uint64, r *jobpb.Result) bool {
	if x.followed {
		return job.OfCluster(number)
	}
	if job.OfCluster(number) {
		return false
	}
	_ = x.refuse(r, jobpb.Code_STANDBY, "%s", RefusedByStandby)
	return true
}

// RefusedByStandby is the message of what a standby refuses.
const RefusedByStandby = "this cluster is a standby: it only follows its primary, and can be read; send this to the primary, or end the mode with \"tarry standby promote\""
