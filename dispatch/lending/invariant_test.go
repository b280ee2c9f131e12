package lending

import "fmt"

// invariant returns what is wrong although it must hold in every state.
func (w *world) invariant() string {
	var granted [maxJobs]int
	var places, live [maxWaiters]int
	for h := range w.c.nodes {
		for s := range w.c.nodes {
			x := &w.streams[h][s]
			whole := !x.homeStale && !x.suppStale
			for _, m := range append(x.up[:len(x.up):len(x.up)], x.down...) {
				if whole && (m.Kind == Lend || m.Kind == Granted || m.Kind == Returned) {
					places[m.Waiter]++
				}
				for j := range w.c.jobs {
					if m.Jobs != nil && m.Jobs.(uint8)>>j&1 == 1 {
						granted[j]++
					}
				}
			}
			for i := range w.c.waiters {
				if whole && w.c.home[i] == h && w.guests[s][i] != noGuest {
					places[i]++
				}
				if w.c.poll[i] && w.guests[s][i] == guestWaits {
					return fmt.Sprintf("waiter %d does not wait, and waits at n%d", i, s)
				}
			}
		}
	}
	for _, r := range w.reserves {
		h := w.c.home[r.waiter]
		if x := &w.streams[h][r.node]; !r.abandoned && !x.homeStale && !x.suppStale {
			live[r.waiter]++
		}
	}
	for j := range w.c.jobs {
		if is := w.jobs[j] == reserved; is != (granted[j] == 1) || granted[j] > 1 {
			return fmt.Sprintf("job %d is reserved: %v, and in %d grants", j, is, granted[j])
		}
	}
	for i := range w.c.waiters {
		if s := w.waiters[i].state; s == here || s == busy {
			places[i]++
		}
		if (w.waiters[i].state == lent) != w.lenders[w.c.home[i]].Lent(uint64(i)) {
			return fmt.Sprintf("its home and its Lender disagree whether waiter %d is lent", i)
		}
		if places[i] > 1 {
			return fmt.Sprintf("waiter %d is in %d places", i, places[i])
		}
		if live[i] > 1 {
			return fmt.Sprintf("waiter %d has %d reserves under way", i, live[i])
		}
	}
	return w.notAsked()
}

// notAsked returns what a supplier needs and has not asked for although a home has told its interest.
func (w *world) notAsked() string {
	for n := range w.c.nodes {
		sure := true // the node knows whether it leads
		for g := range w.c.groups {
			sure = sure && w.leads[n][g] == (int(w.leader[g]) == n)
		}
		for _, t := range topicNames {
			r := room{w, n}
			need := r.Free(t) + max(0, r.Soon(t)-r.Waiting(t))
			could := false
			for _, h := range w.lenders[n].homes {
				need -= h.asked[t]
				could = could || h.interest[t] && h.asked[t] == 0
			}
			if sure && need > 0 && could {
				return fmt.Sprintf("n%d needs waiters of %s and asks nobody", n, t)
			}
		}
	}
	return ""
}

// unfinished returns what is wrong in a state in which nothing happens any more by itself.
func (w *world) unfinished() string {
	for i := range w.c.waiters {
		x := w.waiters[i]
		if x.state == busy || x.state == lent || x.state == here && w.c.poll[i] {
			return fmt.Sprintf("waiter %d never comes back", i)
		}
		if x.state != here {
			continue
		}
		for j := range w.c.jobs {
			if w.jobs[j] == ready && w.waitsFor(i, w.c.jobTopic[j]) {
				return fmt.Sprintf("lost wakeup: job %d of group %d is ready, and waiter %d waits", j, w.c.jobGroup[j], i)
			}
		}
	}
	for n := range w.c.nodes {
		for i := range w.c.waiters {
			if w.guests[n][i] != noGuest {
				return fmt.Sprintf("a guest is left at n%d", n)
			}
		}
		for _, h := range w.lenders[n].homes {
			if len(h.asked)+len(h.guests) > 0 {
				return fmt.Sprintf("a want of n%d to %s is never answered, or a guest never leaves", n, h.name)
			}
		}
	}
	return ""
}
