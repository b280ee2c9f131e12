package oplog

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// The rules of operations on a whole topic; see CheckOp.

func checkKickTopic(l *job.Limits, op *jobpb.KickTopic) error {
	if err := job.Within("max", int64(op.Max), 1, int64(l.MaxKick)); err != nil {
		return err
	}
	if op.Sweep == nil {
		return nil
	}
	if err := checkSweep(l, op.Sweep); err != nil {
		return err
	}
	return checkToTopic(l, op.ToTopic)
}

func checkPurge(l *job.Limits, op *jobpb.Purge) error {
	switch op.State {
	case jobpb.State_STATE_DELAYED, jobpb.State_STATE_READY, jobpb.State_STATE_DEAD:
	default:
		return job.Invalid("state", "is %s; it must be delayed, ready or dead", job.StateName(op.State))
	}
	if err := job.Within("max", int64(op.Max), 1, int64(l.MaxKick)); err != nil {
		return err
	}
	return checkSweep(l, op.Sweep)
}

// MaxSweep bounds the jobs of one sweep, so that no product overflows. It is the same at
// every version.
const MaxSweep = 1 << 40

// checkSweep leaves the rule that needs the clock to the state machine: a sweep must not
// have begun ahead of it.
func checkSweep(l *job.Limits, s *jobpb.Sweep) error {
	from := s.GetFrom()
	switch {
	case s == nil:
		return job.Invalid("sweep", "is missing")
	case s.Scan < 1 || s.Scan > l.MaxKick:
		return job.Invalid("scan", "is %d; it must be between 1 and %d", s.Scan, l.MaxKick)
	case from.GetStartMs() < 0 || from.GetAfter().GetInstant() < 0:
		return job.Invalid("from", "is not a place that this sweep gave")
	case from.GetDone() > MaxSweep:
		return job.Invalid("from", "has done %d jobs; the limit is %d", from.GetDone(), uint64(MaxSweep))
	}
	if err := l.CheckFilter(s.Filter); err != nil {
		return job.Under("filter", err)
	}
	return nil
}

func checkMoveJobs(l *job.Limits, op *jobpb.MoveJobs) error {
	if err := l.CheckTopic("to", op.To); err != nil {
		return err
	}
	if op.Ref != nil {
		return checkRef(op.Ref)
	}
	if op.Topic == op.To {
		return job.Invalid("to", "is %.40q, the topic itself", op.To)
	}
	for _, s := range op.States {
		if s <= jobpb.State_STATE_NONE || s > jobpb.State_STATE_DEAD {
			return job.Invalid("states", "has %d; this release knows only 1 to 4", s)
		}
	}
	return job.Within("max", int64(op.Max), 1, int64(l.MaxKick))
}

// checkPauseTopic leaves the rule that needs the clock to CheckPauseEnd.
func checkPauseTopic(l *job.Limits, op *jobpb.PauseTopic) error {
	if op.Create {
		if err := l.CheckTopic("topic", op.Topic); err != nil {
			return err
		}
	}
	if err := job.WithinSeconds("for", op.PauseMs, 0, l.MaxPause); err != nil {
		return err
	}
	switch {
	case op.UntilMs < 0:
		return job.Invalid("until", "is before 1970")
	case op.PauseMs != 0 && op.UntilMs != 0:
		return job.Invalid("for", "and until are both given; give one")
	case op.Endless && (op.PauseMs != 0 || op.UntilMs != 0):
		return job.Invalid("for", "or until is given for a pause without end")
	}
	return nil
}

func checkSetTopic(l *job.Limits, op *jobpb.SetTopic) error {
	if err := l.CheckTopic("topic", op.Topic); err != nil {
		return err
	}
	return l.CheckSettings(op.Settings)
}
