package history

// The part of the model about changes of a job that waits: updates, adds that
// find their id taken, and the conditions of both.

// held reports whether the job was certainly reserved when the call was answered.
func (m jobModel) held(c call) bool { return m.phase == reserved && !c.by(m.until) }

// died reports whether the job was certainly dead when the call was answered.
func (m jobModel) died(c call) bool {
	over := m.phase == dead || (m.phase == reserved && m.exhausted())
	return over && !c.job.kickedSince(m.until, c)
}

// hidden reports whether the job can have changed without any client seeing it.
func (m jobModel) hidden(c call) bool { return m.phase == reserved || m.ready(c) }

// addAgain is an add whose id is taken.
func (m jobModel) addAgain(c call) []jobModel {
	gives := !m.held(c) && m.meets(c) // way, or room to move
	if c.IfExists == replaceEnded {
		gives = gives && m.canBe("dead", c)
	}
	if c.Outcome == Unknown {
		switch {
		case gives && c.mayReplace():
			return []jobModel{m.fresh(c)}
		case gives && c.IfExists == postpone && !m.died(c):
			return []jobModel{m.postponed(c)}
		}
		return nil // as if nothing was done
	}
	switch c.Result {
	case created:
		return nil
	case replaced:
		if gives && c.Seq > max(m.past, m.seq) {
			return []jobModel{m.fresh(c)}
		}
		return nil
	case postponed:
		if gives && !m.died(c) && m.is(c.Seq) && m.hasRevision(c, 1) {
			return []jobModel{m.postponed(c)}
		}
		return nil
	}
	if m.is(c.Seq) && m.hasRevision(c, 0) {
		return []jobModel{m.learn(c)}
	}
	return nil
}

// addRetained is an add whose id belongs to a job that has ended and is retained.
func (m jobModel) addRetained(c call) []jobModel {
	known := m.past == 0 || c.Seq == m.past
	if c.Outcome == Unknown || !known || c.Result == created || c.Result == replaced {
		return nil
	}
	return []jobModel{m}
}

func (m jobModel) postponed(c call) jobModel {
	m = m.wrote(c)
	m.late = false
	m.phase, m.until = waiting, c.Invoke+c.Delay.Microseconds()
	return m
}

// update changes a job that waits or is dead, in place.
func (m jobModel) update(c call) []jobModel {
	refused := m.phase == absent || m.held(c) || (c.Moves && m.died(c))
	if refused || !m.is(c.Seq) || !m.meets(c) || !m.hasRevision(c, 1) {
		return nil
	}
	next := m.wrote(c)
	next.late = false
	switch {
	case c.Moves:
		next = m.postponed(c)
	case m.died(c):
		next.phase = dead
	case m.phase == reserved && m.exhausted(): // and kicked since
		next.phase = waiting
	case m.phase == reserved:
		next.phase, next.until = waiting, m.until+c.job.backoff(m.attempts)
	}
	if c.Body != "" {
		next.body = c.Body
	}
	if c.MaxAttempts != 0 {
		next.limit = c.MaxAttempts
	}
	return []jobModel{next}
}

// wrote notes that the call changed the job. The revision is known when it was
// answered.
func (m jobModel) wrote(c call) jobModel {
	m = m.learn(c)
	m.rev = c.Revision
	return m
}

// hasRevision reports whether the revision in an answer is right for a call that
// adds by to it.
func (m jobModel) hasRevision(c call, by uint64) bool {
	if c.Revision == 0 || m.rev == 0 {
		return true
	}
	return c.Revision == m.rev+by || (c.Revision > m.rev+by && m.hidden(c))
}

// meets reports whether the job can have been as the call's condition wants it.
func (m jobModel) meets(c call) bool {
	revision := c.IfRevision == 0 || m.rev == 0 || m.rev == c.IfRevision || m.hidden(c)
	return revision && (c.IfState == "" || m.canBe(c.IfState, c))
}

var states = []string{"delayed", "ready", "reserved", "dead"}

// forbids reports whether a living job can have been such that the call was
// refused with its code.
func (m jobModel) forbids(c call) bool {
	switch c.Code {
	case alreadyReserved:
		return m.canBe("reserved", c)
	case alreadyDead:
		return m.canBe("dead", c)
	}
	revision := c.IfRevision != 0 && (m.rev != c.IfRevision || m.hidden(c))
	return revision || (c.IfState != "" && m.canBeOther(c.IfState, c))
}
