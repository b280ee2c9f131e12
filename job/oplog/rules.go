package oplog

import (
	"cmp"
	"tarry/job"
	"tarry/job/jobpb"
)

// CheckOp checks everything about an operation that needs neither the clock nor the state.
// All such rules are here. APIs call it with the newest limits before an operation enters
// the log, so that clients learn which field is wrong. The state machine calls it with the
// limits of the cluster version before it applies an operation, because an entry may come
// from a node of another release.
//
// Fields in errors are those of the HTTP API. Names that are only looked up are not
// checked: no job or topic has an invalid one. CheckOp accepts operations that this release
// does not know; the schema refuses them.
func CheckOp(op *jobpb.Op, l *job.Limits) error {
	if check := of(op).check; check != nil {
		return check(l, op)
	}
	return nil
}

// checkRef checks that a job is named.
func checkRef(ref *jobpb.Ref) error {
	if ref.GetId() == "" && ref.GetSeq() == 0 {
		return job.Invalid("id", "is missing; a job is named by its id, its token or both")
	}
	return nil
}

// checkAdd leaves the rule that needs the clock to CheckDue.
func checkAdd(l *job.Limits, op *jobpb.Add) error {
	if err := l.CheckTopic("topic", op.Topic); err != nil {
		return err
	}
	if op.Id != "" {
		if err := l.CheckID("id", op.Id); err != nil {
			return err
		}
	}
	if op.DueMs < 0 {
		return job.Invalid("due_at", "is before 1970")
	}
	if op.DueMs == 0 {
		if err := job.WithinSeconds("delay", op.DelayMs, 0, l.MaxDelay); err != nil {
			return err
		}
	}
	if err := l.CheckTTR(op.TtrMs); err != nil {
		return err
	}
	if err := l.CheckBody(op.Body, op.BodyKind); err != nil {
		return err
	}
	if op.IfExists < 0 || op.IfExists > jobpb.IfExists_IF_EXISTS_REPLACE_ENDED {
		return job.Invalid("if_exists", "is %d; this release knows only 0 to 4", op.IfExists)
	}
	if err := checkCondition(l, op.Condition); err != nil {
		return err
	}
	return l.CheckJobOptions(op.Options)
}

// checkAtomicAdd names the list of an add in errors as the client knows it.
func checkAtomicAdd(l *job.Limits, op *jobpb.AtomicAdd) error {
	list := "jobs"
	if op.Finish != nil {
		list = "then"
		if err := checkRef(op.Finish.Ref); err != nil {
			return err
		}
	}
	if n := len(op.Adds); n == 0 || n > l.MaxBatch {
		return job.Invalid(list, "has %d items; it takes 1 to %d", n, l.MaxBatch)
	}
	bodies, ids := 0, make(map[string]bool)
	for i, add := range op.Adds {
		err := checkAdd(l, add)
		bodies += len(add.Body)
		switch {
		case err != nil:
		case bodies > l.MaxAtomicAddBytes:
			err = job.Errorf(job.CodeTooLarge, "the bodies have more than %d bytes together, which is the limit of an all-or-nothing request", l.MaxAtomicAddBytes).In("body")
		case add.IfExists > jobpb.IfExists_IF_EXISTS_KEEP:
			err = job.Invalid("if_exists", "must be conflict or keep in an all-or-nothing request")
		case add.Id != "" && ids[add.Id]:
			err = job.Invalid("id", "%.40q is given twice", add.Id)
		}
		if err != nil {
			return job.InItem(list, i, err)
		}
		ids[add.Id] = true
	}
	return nil
}

// CheckReserve checks a Reserve. An invalid one must not wait for jobs: the state machine
// would refuse it at each attempt.
func CheckReserve(l *job.Limits, op *jobpb.Reserve) error {
	if n := len(op.Topics); n == 0 || n > l.MaxReserveTopics {
		return job.Invalid("topics", "has %d names; it takes 1 to %d", n, l.MaxReserveTopics)
	}
	if err := job.Within("max", int64(op.Max), 1, int64(l.MaxReserve)); err != nil {
		return err
	}
	if err := job.WithinSeconds("ttr", op.TtrMs, 0, l.MaxTTR); err != nil {
		return err
	}
	if op.MaxBytes < 0 {
		return job.Invalid("max_bytes", "is %d; it must not be negative", op.MaxBytes)
	}
	if err := job.Within("hold_ms", op.HoldMs, 0, maxHoldMS); err != nil {
		return err
	}
	if op.Principal != "" && op.Principal != job.SystemPrincipal {
		if err := l.CheckPrincipal(op.Principal); err != nil {
			return err
		}
	}
	return l.CheckConsumer("consumer", op.Consumer)
}

// maxHoldMS bounds by how much a Reserve prolongs reservations, in milliseconds.
const maxHoldMS = 1000

func checkReserveJob(l *job.Limits, op *jobpb.ReserveJob) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := job.WithinSeconds("ttr", op.TtrMs, 0, l.MaxTTR); err != nil {
		return err
	}
	return l.CheckConsumer("consumer", op.Consumer)
}

func checkRelease(l *job.Limits, op *jobpb.Release) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := job.WithinSeconds("delay", op.DelayMs, 0, l.MaxDelay); err != nil {
		return err
	}
	return l.CheckReason(op.Reason)
}

func checkTouch(l *job.Limits, op *jobpb.Touch) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return job.WithinSeconds("ttr", op.TtrMs, 0, l.MaxTTR)
}

func checkBury(l *job.Limits, op *jobpb.Bury) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return l.CheckReason(op.Reason)
}

// checkUpdate leaves the rule that needs the clock to CheckDue.
func checkUpdate(l *job.Limits, op *jobpb.Update) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := checkCondition(l, op.Condition); err != nil {
		return err
	}
	switch {
	case op.DueMs != nil && op.DelayMs != nil:
		return job.Invalid("delay", "and due_at are both given; give one")
	case op.DueMs != nil && *op.DueMs < 1:
		return job.Invalid("due_at", "is before 1970")
	}
	if err := job.WithinSeconds("delay", op.GetDelayMs(), 0, l.MaxDelay); err != nil {
		return err
	}
	if op.TtrMs != nil {
		if err := l.CheckTTR(*op.TtrMs); err != nil {
			return err
		}
	}
	if err := l.CheckBody(op.Body, op.BodyKind); err != nil {
		return err
	}
	if op.Backoff.SizeVT() != 0 { // an empty one removes the job's
		if err := l.CheckBackoff(op.Backoff); err != nil {
			return err
		}
	}
	if err := job.CheckExpires(op.GetExpiresMs()); err != nil {
		return err
	}
	if err := l.CheckPushURL(op.GetPushUrl()); err != nil {
		return err
	}
	return l.CheckHeaders(op.Headers.GetList())
}

func checkKick(l *job.Limits, op *jobpb.Kick) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := checkCondition(l, op.Condition); err != nil {
		return err
	}
	return checkToTopic(l, op.ToTopic)
}

// checkCondition checks a condition; nil is none. A topic only looks jobs up.
func checkCondition(l *job.Limits, c *jobpb.Condition) error { return l.CheckFilter(c.GetFilter()) }

func checkDelete(l *job.Limits, op *jobpb.Delete) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return checkCondition(l, op.Condition)
}

func checkToTopic(l *job.Limits, topic string) error {
	if topic == "" {
		return nil // its own
	}
	return l.CheckTopic("to_topic", topic)
}

func checkAdvance(l *job.Limits, a *jobpb.Advance) error {
	return job.Within("max", int64(a.GetMax()), 1, int64(l.MaxKick))
}

// MaxReservesAhead bounds the reserves of one AdvanceAt.
const MaxReservesAhead = 256

func checkAdvanceAt(l *job.Limits, a *jobpb.AdvanceAt) error {
	err := cmp.Or(
		job.Within("at_ms", a.AtMs, 1, job.MaxInstantMS), checkAdvance(l, a.Advance),
		job.Within("reserves", int64(len(a.Reserves)), 0, MaxReservesAhead),
	)
	for i := 0; err == nil && i < len(a.Reserves); i++ {
		err = CheckReserve(l, a.Reserves[i])
	}
	return err
}
