package job

import "tarry/job/jobpb"

// CheckOp checks everything about an operation that needs neither the clock nor the state.
// All such rules are here. APIs call it with the newest limits before an operation enters
// the log, so that clients learn which field is wrong. The state machine calls it with the
// limits of the cluster version before it applies an operation, because an entry may come
// from a node of another release.
//
// Fields in errors are those of the HTTP API. Names that are only looked up are not
// checked: no job or topic has an invalid one. CheckOp accepts operations that this release
// does not know; the schema refuses them.
func CheckOp(op *jobpb.Op, l *Limits) error {
	if check := of(op).check; check != nil {
		return check(l, op)
	}
	return nil
}

// checkRef checks that a job is named.
func checkRef(ref *jobpb.Ref) error {
	if ref.GetId() == "" && ref.GetSeq() == 0 {
		return Invalid("id", "is missing; a job is named by its id, its token or both")
	}
	return nil
}

// checkAdd leaves the rule that needs the clock to CheckDue.
func (l *Limits) checkAdd(op *jobpb.Add) error {
	if err := l.CheckTopic("topic", op.Topic); err != nil {
		return err
	}
	if op.Id != "" {
		if err := l.CheckID("id", op.Id); err != nil {
			return err
		}
	}
	if op.DueMs < 0 {
		return Invalid("due_at", "is before 1970")
	}
	if op.DueMs == 0 {
		if err := withinSeconds("delay", op.DelayMs, 0, l.MaxDelay); err != nil {
			return err
		}
	}
	if err := l.checkTTR(op.TtrMs); err != nil {
		return err
	}
	if err := l.checkBody(op.Body, op.BodyKind); err != nil {
		return err
	}
	if op.IfExists < 0 || op.IfExists > jobpb.IfExists_IF_EXISTS_REPLACE_ENDED {
		return Invalid("if_exists", "is %d; this release knows only 0 to 4", op.IfExists)
	}
	if err := l.checkCondition(op.Condition); err != nil {
		return err
	}
	return l.CheckJobOptions(op.Options)
}

// checkAtomicAdd names the list of an add in errors as the client knows it.
func (l *Limits) checkAtomicAdd(op *jobpb.AtomicAdd) error {
	list := "jobs"
	if op.Finish != nil {
		list = "then"
		if err := checkRef(op.Finish.Ref); err != nil {
			return err
		}
	}
	if n := len(op.Adds); n == 0 || n > l.MaxBatch {
		return Invalid(list, "has %d items; it takes 1 to %d", n, l.MaxBatch)
	}
	bodies, ids := 0, make(map[string]bool)
	for i, add := range op.Adds {
		err := l.checkAdd(add)
		bodies += len(add.Body)
		switch {
		case err != nil:
		case bodies > l.MaxAtomicAddBytes:
			err = Errorf(CodeTooLarge, "the bodies have more than %d bytes together, which is the limit of an all-or-nothing request", l.MaxAtomicAddBytes).In("body")
		case add.IfExists > jobpb.IfExists_IF_EXISTS_KEEP:
			err = Invalid("if_exists", "must be conflict or keep in an all-or-nothing request")
		case add.Id != "" && ids[add.Id]:
			err = Invalid("id", "%.40q is given twice", add.Id)
		}
		if err != nil {
			return InItem(list, i, err)
		}
		ids[add.Id] = true
	}
	return nil
}

// CheckReserve checks a Reserve. An invalid one must not wait for jobs: the state machine
// would refuse it at each attempt.
func (l *Limits) CheckReserve(op *jobpb.Reserve) error {
	if n := len(op.Topics); n == 0 || n > l.MaxReserveTopics {
		return Invalid("topics", "has %d names; it takes 1 to %d", n, l.MaxReserveTopics)
	}
	if err := Within("max", int64(op.Max), 1, int64(l.MaxReserve)); err != nil {
		return err
	}
	if err := withinSeconds("ttr", op.TtrMs, 0, l.MaxTTR); err != nil {
		return err
	}
	if op.MaxBytes < 0 {
		return Invalid("max_bytes", "is %d; it must not be negative", op.MaxBytes)
	}
	if err := Within("hold_ms", op.HoldMs, 0, maxHoldMS); err != nil {
		return err
	}
	if op.Principal != "" && op.Principal != SystemPrincipal {
		if err := l.checkPrincipal(op.Principal); err != nil {
			return err
		}
	}
	return l.CheckConsumer("consumer", op.Consumer)
}

// maxHoldMS bounds by how much a Reserve prolongs reservations, in milliseconds.
const maxHoldMS = 1000

func (l *Limits) checkReserveJob(op *jobpb.ReserveJob) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := withinSeconds("ttr", op.TtrMs, 0, l.MaxTTR); err != nil {
		return err
	}
	return l.CheckConsumer("consumer", op.Consumer)
}

func (l *Limits) checkRelease(op *jobpb.Release) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := withinSeconds("delay", op.DelayMs, 0, l.MaxDelay); err != nil {
		return err
	}
	return l.checkReason(op.Reason)
}

func (l *Limits) checkTouch(op *jobpb.Touch) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return withinSeconds("ttr", op.TtrMs, 0, l.MaxTTR)
}

func (l *Limits) checkBury(op *jobpb.Bury) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return l.checkReason(op.Reason)
}

// checkUpdate leaves the rule that needs the clock to CheckDue.
func (l *Limits) checkUpdate(op *jobpb.Update) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := l.checkCondition(op.Condition); err != nil {
		return err
	}
	switch {
	case op.DueMs != nil && op.DelayMs != nil:
		return Invalid("delay", "and due_at are both given; give one")
	case op.DueMs != nil && *op.DueMs < 1:
		return Invalid("due_at", "is before 1970")
	}
	if err := withinSeconds("delay", op.GetDelayMs(), 0, l.MaxDelay); err != nil {
		return err
	}
	if op.TtrMs != nil {
		if err := l.checkTTR(*op.TtrMs); err != nil {
			return err
		}
	}
	if err := l.checkBody(op.Body, op.BodyKind); err != nil {
		return err
	}
	if op.Backoff.SizeVT() != 0 { // an empty one removes the job's
		if err := l.CheckBackoff(op.Backoff); err != nil {
			return err
		}
	}
	if err := checkExpires(op.GetExpiresMs()); err != nil {
		return err
	}
	if err := l.checkPushURL(op.GetPushUrl()); err != nil {
		return err
	}
	return l.checkHeaders(op.Headers.GetList())
}

func (l *Limits) checkKick(op *jobpb.Kick) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	if err := l.checkCondition(op.Condition); err != nil {
		return err
	}
	return l.checkToTopic(op.ToTopic)
}

// checkCondition checks a condition; nil is none. A topic only looks jobs up.
func (l *Limits) checkCondition(c *jobpb.Condition) error { return l.CheckFilter(c.GetFilter()) }

func (l *Limits) checkDelete(op *jobpb.Delete) error {
	if err := checkRef(op.Ref); err != nil {
		return err
	}
	return l.checkCondition(op.Condition)
}

func (l *Limits) checkToTopic(topic string) error {
	if topic == "" {
		return nil // its own
	}
	return l.CheckTopic("to_topic", topic)
}

// checkTTR checks the TTR of a job. That of a reservation may be 0, which means the job's.
func (l *Limits) checkTTR(ms int64) error { return withinSeconds("ttr", ms, 1, l.MaxTTR) }

func (l *Limits) checkBody(body []byte, kind jobpb.BodyKind) error {
	switch {
	case len(body) > l.HardMaxBodyBytes:
		return Invalid("body", "has %d bytes; the limit is %d", len(body), l.HardMaxBodyBytes)
	case kind != jobpb.BodyKind_BODY_BYTES && kind != jobpb.BodyKind_BODY_JSON:
		return Invalid("body_kind", "is %d; this release knows only 0 and 1", kind)
	}
	return nil
}

// CheckDue checks that a due instant is not too far ahead of a clock. CheckOp checks the
// rest.
func (l *Limits) CheckDue(field string, dueMS, clockMS int64) error {
	return ahead(field, dueMS, clockMS, l.MaxDelay)
}

// CheckPauseEnd is CheckDue for the instant at which a pause ends.
func (l *Limits) CheckPauseEnd(untilMS, clockMS int64) error {
	return ahead("until", untilMS, clockMS, l.MaxPause)
}

func (l *Limits) checkAdvance(a *jobpb.Advance) error {
	return Within("max", int64(a.GetMax()), 1, int64(l.MaxKick))
}

// MaxReservesAhead bounds the reserves of one AdvanceAt.
const MaxReservesAhead = 256

func (l *Limits) checkAdvanceAt(a *jobpb.AdvanceAt) error {
	err := firstOf(Within("at_ms", a.AtMs, 1, MaxInstantMS), l.checkAdvance(a.Advance), Within("reserves", int64(len(a.Reserves)), 0, MaxReservesAhead))
	for i := 0; err == nil && i < len(a.Reserves); i++ {
		err = l.CheckReserve(a.Reserves[i])
	}
	return err
}

func (l *Limits) checkForgetMember(op *jobpb.ForgetMember) error {
	if err := l.CheckRefID("server_id", op.ServerId); err != nil || op.NodeId == "" {
		return err
	}
	return l.CheckRefID("node_id", op.NodeId)
}
