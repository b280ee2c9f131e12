package history

// checkSpread: in a topic with a spread, a job that is to wait is due no earlier
// than asked and no later than the window allows, and comes no earlier than the
// answer to its add said. A clock that was ahead may have left the cluster's time
// ahead for good, which makes jobs due later, never earlier.
func (s *jobHistory) checkSpread() {
	if s.spread == 0 {
		return
	}
	for _, a := range s.adds {
		if a.Outcome != OK || a.Result != created || a.Due == 0 || a.Delay == 0 {
			continue
		}
		least := a.Invoke + a.Delay.Microseconds() - s.slack()
		most := a.Complete + a.Delay.Microseconds() + s.spread + s.options.furthest()
		if a.Due < least || a.Due > most {
			s.report.Violate("spread", s.id, "due at %d; it was to be from %d to %d", a.Due, least, most)
		}
		for _, d := range s.deliveries {
			if d.Seq == a.Seq && d.Complete < a.Due-s.slack() && !s.hastened(d) {
				s.report.Violate("spread", s.id, "delivered %v before the instant that its add was answered with", micros(a.Due-d.Complete))
			}
		}
	}
}
