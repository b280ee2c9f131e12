package history

import "slices"

// putLateFirst corrects the order of reservations over beanstalkd, which are sorted by when their
// replies arrived. A node that stands still sends its replies when it goes on. By then a reservation
// may have expired, and others may have had the job. It was certainly before theirs if one of them
// had ended the job, or delayed it, when the reply came.
func (s *jobHistory) putLateFirst(leased []*Op) {
	for i, late := range leased {
		first := slices.IndexFunc(leased[:i], func(d *Op) bool { return d.Seq == late.Seq && late.ReservedUntil <= d.Complete })
		if first < 0 || !s.stalled(late) || !slices.ContainsFunc(leased[first:i], func(d *Op) bool { return s.goneAt(d, late.Complete) }) {
			continue
		}
		copy(leased[first+1:i+1], leased[first:i])
		leased[first] = late
	}
}

// stalled reports whether a node stood still while the reply to a call was awaited.
func (s *jobHistory) stalled(d *Op) bool {
	return slices.ContainsFunc(s.options.Stalls, func(w Window) bool {
		return d.Invoke <= w.To && d.Complete >= w.From || w.To == 0 && d.Complete >= w.From
	})
}

// goneAt reports whether the holder of the reservation d has certainly kept the job from everybody
// at an instant.
func (s *jobHistory) goneAt(d *Op, at int64) bool {
	by := func(f *Op) bool {
		if f.Lease != d.Lease || f.Outcome != OK {
			return false
		}
		switch f.Kind {
		case Delete, Finish:
			return f.Complete < at
		case Release:
			return f.Complete < at && at < f.Invoke+f.Delay.Microseconds()
		}
		return false
	}
	return slices.ContainsFunc(s.deletes, by) || slices.ContainsFunc(s.fenced, by)
}
