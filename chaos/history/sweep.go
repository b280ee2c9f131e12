package history

import (
	"maps"
	"slices"
)

// Sweeps are calls on all jobs of a topic: a move to another topic, a kick of the
// dead into one, and a purge of those in one state. To a single job a sweep is a call of its own, which does
// something when the job is in the topic and in the state.

// takeSweeps gives each job the sweeps that may have met it.
func takeSweeps(ops []Op, jobs []*jobHistory, kicks map[string][]*Op) {
	var sweeps []*Op
	topics := map[string]bool{} // between which jobs are moved
	for i := range ops {
		switch op := &ops[i]; {
		case op.Kind == MoveTopic, op.Kind == KickTopic && op.To != "":
			topics[op.Topic], topics[op.To] = true, true
			sweeps = append(sweeps, op)
		case op.Kind == Move:
			topics[op.Topic], topics[op.To] = true, true
		case op.Kind == Purge:
			sweeps = append(sweeps, op)
		}
	}
	if len(topics)+len(sweeps) == 0 {
		return
	}
	var all []*Op // kicks of these topics
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		all = append(all, kicks[topic]...)
	}
	for _, s := range jobs {
		moves := topics[s.topic()]
		if moves {
			s.kicks = all
		}
		first, _ := s.span()
		for _, sweep := range sweeps {
			if sweep.maybe() && s.matches(sweep) && (moves || sweep.Topic == s.topic()) && (sweep.Outcome == Unknown || sweep.Complete >= first) {
				s.sweeps = append(s.sweeps, sweep)
			}
		}
	}
}

// span is the time from the first call on the job to the end of the last that was
// answered.
func (s *jobHistory) span() (first, last int64) {
	for i, ops := range [][]*Op{s.adds, s.updates, s.moves, s.deliveries, s.fenced, s.deletes, s.jobKicks, s.gets} {
		for j, op := range ops {
			if (i == 0 && j == 0) || op.Invoke < first {
				first = op.Invoke
			}
			last = max(last, op.Complete)
		}
	}
	return first, last
}

// mayBeIn reports whether a move may have brought the job into a topic before an
// instant.
func (s *jobHistory) mayBeIn(topic string, instant int64) bool {
	moved := func(m *Op) bool { return m.Kind != Purge && m.To == topic && m.maybe() && m.Invoke <= instant }
	return slices.ContainsFunc(s.moves, moved) || slices.ContainsFunc(s.sweeps, moved)
}

// purgedFrom is when a purge may first have taken the job.
func (s *jobHistory) purgedFrom() (at int64, ok bool) {
	for _, p := range s.sweeps {
		if p.Kind == Purge && (!ok || p.Invoke < at) {
			at, ok = p.Invoke, true
		}
	}
	return at, ok
}

// move is a move of the job, or of its topic.
func (m jobModel) move(c call) []jobModel {
	if c.Kind == MoveTopic {
		if m.phase != absent && m.topic == c.Topic {
			m.topic, m.rev = c.To, 0
		}
		return []jobModel{m}
	}
	if m.phase == absent || !m.is(c.Seq) {
		return nil
	}
	stays := m.topic == c.To && m.hasRevision(c, 0)
	if !stays && !m.hasRevision(c, 1) {
		return nil
	}
	m = m.wrote(c)
	m.topic = c.To
	return []jobModel{m}
}

// purge takes the job when it is in the topic and the state.
func (m jobModel) purge(c call) []jobModel {
	if m.phase == absent || m.topic != c.Topic {
		return []jobModel{m}
	}
	var to []jobModel
	if m.canBe(c.State, c) {
		to = append(to, m.end(c, "deleted"))
	}
	if m.canBeOther(c.State, c) {
		to = append(to, m)
	}
	return to
}
