package oplog

import (
	"cmp"
	"tarry/job"
	"tarry/job/jobpb"
)

// checkImportJob leaves the rules that need the clock to CheckDue.
func checkImportJob(l *job.Limits, op *jobpb.ImportJob) error {
	add := op.GetAdd()
	if add == nil {
		return job.Invalid("job", "is missing")
	}
	if err := checkAdd(l, add); err != nil {
		return err
	}
	switch {
	case add.DueMs == 0:
		return job.Invalid("due_at", "is missing; an imported job keeps its due time")
	case add.IfExists != jobpb.IfExists_IF_EXISTS_CONFLICT:
		return job.Invalid("if_exists", "is not for an import, which leaves a job with the same id as it is")
	case add.Condition != nil:
		return job.Invalid("if_revision", "and if_state are not for an import, which leaves a job with the same id as it is")
	case add.TopicTtr || add.TopicAttempts:
		return job.Invalid("ttr", "and max_attempts of an imported job are its own")
	case !op.Dead && add.MaxAttempts != 0 && op.Attempts >= add.MaxAttempts:
		return job.Invalid("attempts", "is %d of %d; a job that waits needs one more", op.Attempts, add.MaxAttempts)
	case op.DiedMs != 0 && !op.Dead:
		return job.Invalid("died_at", "is only for jobs with the state dead")
	}
	return cmp.Or(
		l.CheckReason(op.Reason),
		l.CheckReasonIn("last_error", op.LastError),
		job.Within("created_at", op.CreatedMs, 0, job.MaxInstantMS),
		job.Within("died_at", op.DiedMs, 0, job.MaxInstantMS),
		job.WithinSeconds("delay", op.DelayMs, 0, l.MaxDelay+job.MaxSpread),
	)
}
