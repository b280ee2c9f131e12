package history

import "slices"

// Kicks of a topic's dead jobs. A plain one is no call of the model: it may have
// met a job or not (kickedSince). One into another topic is a sweep.

// matches reports whether the job may have the reason that a kick asks for.
// Reasons are the clients' own, so the job has those of its buries.
func (s *jobHistory) matches(k *Op) bool {
	return k.Reason == "" || slices.ContainsFunc(s.fenced, func(b *Op) bool {
		return b.Kind == Bury && b.maybe() && b.Reason == k.Reason
	})
}

// kickedSince reports whether a kick of the whole topic may have come between an
// instant and the end of the call. Kicks of the job, and those into another topic,
// are steps of their own.
func (s *jobHistory) kickedSince(instant int64, c call) bool {
	return s.kickedBy(instant, c, func(*Op) bool { return true })
}

// pacedSince is kickedSince for kicks at a rate, which leave jobs delayed.
func (s *jobHistory) pacedSince(instant int64, c call) bool {
	return s.kickedBy(instant, c, func(k *Op) bool { return k.Rate > 0 })
}

func (s *jobHistory) kickedBy(instant int64, c call, which func(k *Op) bool) bool {
	return slices.ContainsFunc(s.kicks, func(k *Op) bool {
		return k.Kind == KickTopic && k.To == "" && which(k) && k.maybe() && k.Invoke <= c.Complete && (k.Outcome == Unknown || k.Complete >= instant)
	})
}

// kickAway takes the job to another topic when it is dead; when the kick asks for
// a reason, it may have another.
func (m jobModel) kickAway(c call) []jobModel {
	if m.phase == absent || m.topic != c.Topic || !m.canBe("dead", c) {
		return []jobModel{m}
	}
	moved := m
	moved.late = m.late || m.phase == reserved
	moved.phase, moved.attempts, moved.until, moved.topic, moved.rev = waiting, 0, 0, c.To, 0
	if c.Reason == "" && !m.canBeOther("dead", c) {
		return []jobModel{moved}
	}
	return []jobModel{moved, m}
}

// canBeOther reports whether a living job can have been in another state.
func (m jobModel) canBeOther(than string, c call) bool {
	return slices.ContainsFunc(states, func(state string) bool { return state != than && m.canBe(state, c) })
}
