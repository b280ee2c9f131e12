package history

// The part of the model about changes of a job that waits: updates, adds that
// find their id taken, and the conditions of both.

// held reports whether the job was certainly in the hands of a consumer when the
// call was answered.
func (l life) held(c call) bool { return l.phase == reserved && !c.by(l.until) }

// died reports whether the job was certainly dead when the call was answered.
func (l life) died(c call) bool {
	over := l.phase == dead || (l.phase == reserved && l.exhausted())
	return over && !c.story.kickedSince(l.until, c)
}

// hidden reports whether the job can have changed without a client's knowledge.
func (l life) hidden(c call) bool { return l.phase == reserved || l.ready(c) }

// addAgain is an add whose id is taken.
func (l life) addAgain(c call) []life {
	gives := !l.held(c) && l.meets(c) // way, or room to move
	if c.Outcome == Unknown {
		switch {
		case gives && c.IfExists == replace:
			return []life{l.fresh(c)}
		case gives && c.IfExists == postpone && !l.died(c):
			return []life{l.postponed(c)}
		}
		return nil // as if nothing was done
	}
	switch c.Result {
	case created:
		return nil
	case replaced:
		if gives && c.Seq > max(l.past, l.seq) {
			return []life{l.fresh(c)}
		}
		return nil
	case postponed:
		if gives && !l.died(c) && l.is(c.Seq) && l.hasRevision(c, 1) {
			return []life{l.postponed(c)}
		}
		return nil
	}
	if l.is(c.Seq) && l.hasRevision(c, 0) {
		return []life{l.learn(c)}
	}
	return nil
}

// addRetained is an add whose id belongs to a job that has ended and is retained.
func (l life) addRetained(c call) []life {
	known := l.past == 0 || c.Seq == l.past
	if c.Outcome == Unknown || !known || c.Result == created || c.Result == replaced {
		return nil
	}
	return []life{l}
}

func (l life) postponed(c call) life {
	l = l.wrote(c)
	l.late = false
	l.phase, l.until = waiting, c.Invoke+c.Delay.Microseconds()
	return l
}

// update changes a job that waits or is dead, in place.
func (l life) update(c call) []life {
	refused := l.phase == absent || l.held(c) || (c.Moves && l.died(c))
	if refused || !l.is(c.Seq) || !l.meets(c) || !l.hasRevision(c, 1) {
		return nil
	}
	next := l.wrote(c)
	next.late = false
	switch {
	case c.Moves:
		next = l.postponed(c)
	case l.died(c):
		next.phase = dead
	case l.phase == reserved && l.exhausted(): // and kicked since
		next.phase = waiting
	case l.phase == reserved:
		next.phase, next.until = waiting, l.until+c.story.backoff(l.attempts)
	}
	if c.Body != "" {
		next.body = c.Body
	}
	if c.MaxAttempts != 0 {
		next.limit = c.MaxAttempts
	}
	return []life{next}
}

// wrote notes that the call changed the job. The revision is known when it was
// answered.
func (l life) wrote(c call) life {
	l = l.learn(c)
	l.rev = c.Revision
	return l
}

// hasRevision reports whether the revision in an answer is right for a call that
// adds by to it.
func (l life) hasRevision(c call, by uint64) bool {
	if c.Revision == 0 || l.rev == 0 {
		return true
	}
	return c.Revision == l.rev+by || (c.Revision > l.rev+by && l.hidden(c))
}

// meets reports whether the job can have been as the call's condition wants it.
func (l life) meets(c call) bool {
	revision := c.IfRevision == 0 || l.rev == 0 || l.rev == c.IfRevision || l.hidden(c)
	return revision && (c.IfState == "" || l.canBe(c.IfState, c))
}

var states = []string{"delayed", "ready", "reserved", "dead"}

// forbids reports whether a living job can have been such that the call was
// refused with its code.
func (l life) forbids(c call) bool {
	switch c.Code {
	case alreadyReserved:
		return l.canBe("reserved", c)
	case alreadyDead:
		return l.canBe("dead", c)
	}
	revision := c.IfRevision != 0 && (l.rev != c.IfRevision || l.hidden(c))
	return revision || (c.IfState != "" && l.canBeOther(c.IfState, c))
}
