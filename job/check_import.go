package job

import "tarry/job/jobpb"

// checkImportJob leaves the rules that need the clock to CheckDue.
func (l *Limits) checkImportJob(op *jobpb.ImportJob) error {
	add := op.GetAdd()
	if add == nil {
		return Invalid("job", "is missing")
	}
	if err := l.checkAdd(add); err != nil {
		return err
	}
	switch {
	case add.DueMs == 0:
		return Invalid("due_at", "is missing; an imported job keeps its due time")
	case add.IfExists != jobpb.IfExists_IF_EXISTS_CONFLICT:
		return Invalid("if_exists", "is not for an import, which leaves a job with the same id as it is")
	case add.Condition != nil:
		return Invalid("if_revision", "and if_state are not for an import, which leaves a job with the same id as it is")
	case add.TopicTtr || add.TopicAttempts:
		return Invalid("ttr", "and max_attempts of an imported job are its own")
	case !op.Dead && add.MaxAttempts != 0 && op.Attempts >= add.MaxAttempts:
		return Invalid("attempts", "is %d of %d; a job that waits needs one more", op.Attempts, add.MaxAttempts)
	case op.DiedMs != 0 && !op.Dead:
		return Invalid("died_at", "is only for jobs with the state dead")
	}
	return firstOf(l.checkReason(op.Reason), l.checkReasonIn("last_error", op.LastError), Within("created_at", op.CreatedMs, 0, MaxInstantMS), Within("died_at", op.DiedMs, 0, MaxInstantMS),
		withinSeconds("delay", op.DelayMs, 0, l.MaxDelay+MaxSpread))
}
