package fsm

import "tarry/job/jobpb"

// checkRef returns OK if the job and the token are as an operation needs them.
func (m *model) checkRef(op *jobpb.Op, ref *jobpb.Ref, j *modelJob) jobpb.Code {
	held, settings := j.State == jobpb.State_STATE_RESERVED, m.settings[j.Topic]
	fenced := ref.Generation != 0
	live := held && ref.Generation == j.generation
	switch op.Kind.(type) {
	case *jobpb.Op_Delete, *jobpb.Op_ReserveJob, *jobpb.Op_Kick:
		if fenced && !live {
			return jobpb.Code_STALE_TOKEN
		}
		return jobpb.Code_OK
	case *jobpb.Op_Finish:
		if fenced && j.late && ref.Generation == j.generation && settings.GetLateFinish() == 0 {
			return jobpb.Code_OK
		}
	}
	switch {
	case fenced && !live:
		return jobpb.Code_STALE_TOKEN
	case !fenced && settings.GetRequireToken():
		return jobpb.Code_TOKEN_REQUIRED
	case !held:
		return jobpb.Code_NOT_RESERVED
	}
	return jobpb.Code_OK
}
