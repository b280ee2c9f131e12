package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// raiseVersion raises the cluster version by one.
func (m *model) raiseVersion(to uint32, r *jobpb.Result) {
	switch present := max(m.version, job.FirstVersion); {
	case to == present+1:
		m.version = to
	case to > present:
		r.Code = jobpb.Code_CONDITION_FAILED
	}
}
