package fsm

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// The clock goes back by one operation only: ResetClock, for a cluster whose clock was
// far ahead. What has already happened stays: ready jobs stay ready. Every future
// instant becomes the new clock plus the delay that was requested, if that is earlier.
// So an instant that was requested while the clock was right does not move. Nothing
// comes early, except what was changed to an absolute instant while the clock was ahead.
//
// The operation itself changes topics and schedules, which are bounded. The next
// Advances change the jobs, in the order of their seqs, a bounded number each; nextDue
// requests these at once. A job that is not changed yet may be ready although its
// instant is after the clock, but never after meta.maxClock. Code that derives a job's
// state from its instants compares them with meta.maxClock.
//
// Entries that were proposed before the reset have times of the old clock. So an entry
// has the epoch of the clock of its time, and in another epoch its time is ignored.
// Nothing else in the state assumes that the clock only grows: the order of lists does
// not depend on it, and a window accepts a place before its head.

// resetClock sets the clock back.
func (x *tx) resetClock(op *jobpb.ResetClock, r *jobpb.Result) error {
	c, was := &x.m.meta.Reset, x.clock()
	switch {
	case c.UnderWay():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back just now, and jobs are still being changed; try again later")
	case op.Epoch != c.Epoch:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since this request was made")
	case op.ToMs < 1 || op.ToMs >= was:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock is not ahead of %d", op.ToMs)
	}
	*c = record.ClockReset{Epoch: c.Epoch + 1, Ahead: was, Back: was - op.ToMs, Limit: x.m.meta.State.NextSeq, Next: 1}
	x.saveClockReset()
	x.clockSet = true
	x.dropPending()

	topics := slices.SortedFunc(maps.Values(x.m.topics), func(a, b *topic) int { return cmp.Compare(a.Number, b.Number) })
	for _, t := range topics {
		x.touch(t) // fills its bucket by the old clock
	}
	x.m.meta.State.ClockMS = op.ToMs
	for _, t := range topics {
		x.setTopicBack(t)
	}
	if x.m.followsConfig() {
		x.outOfTouch() // when it heard is an instant of the clock before
	} else if err := x.setTokensBack(); err != nil {
		return err
	}
	if err := x.setInvitationsBack(); err != nil {
		return err
	}
	return x.setSchedulesBack()
}

func (x *tx) saveClockReset() {
	x.value = x.m.meta.Reset.Append(x.value[:0])
	must(x.batch.Set(record.KeyClock, x.value, nil))
}

// setTopicBack changes a topic's own instants.
func (x *tx) setTopicBack(t *topic) {
	clock := x.clock()
	t.EmptySince = min(t.EmptySince, clock)
	if t.Paused() && t.PausedUntil != job.NeverMS {
		t.PausedUntil = min(t.PausedUntil, clock+t.PauseMS)
	}
	if t.Bucket != nil {
		t.Bucket.At, t.Bucket.Since = clock, clock
	}
}

// setTokensBack lets the text that a token had before its last rotation be accepted no longer
// than was left of its time. When a token ends is an instant that was named: it stays.
func (x *tx) setTokensBack() error {
	back, clock := x.m.meta.Reset.Back, x.clock()
	var changed []*auth.Token
	for t := range x.m.auth.All() {
		set := proto.CloneOf(t.Token)
		set.CreatedMs = min(set.CreatedMs, clock)
		if set.OldUntilMs -= back; set.OldUntilMs <= clock {
			set.OldHash, set.OldUntilMs = nil, 0
		}
		if proto.Equal(set, t.Token) {
			continue
		}
		encoded, err := record.EncodeToken(set)
		if err != nil {
			return err
		}
		x.setConfig(x.nameKey(record.SpaceToken, set.Id), encoded)
		changed = append(changed, auth.NewToken(set))
	}
	if len(changed) > 0 {
		x.m.auth, x.authChanged = x.m.auth.WithTokens(x.m.auth.Revision, changed), true
	}
	return nil
}

// setSchedulesBack marks the schedules whose next instant is ahead of the clock, so that
// the leader plans them again. A run that started early starts again at its instant,
// unless its job still exists.
func (x *tx) setSchedulesBack() error {
	clock := x.clock()
	names := maps.Clone(x.schedules)
	if names == nil {
		names = make(map[string]*schedule)
	}
	err := record.EachScheduleState(x.db, func(key, _ []byte) error {
		names[string(key[2:])] = nil
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s, err := x.schedule(name)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		st := s.state
		st.AnchorMs = min(st.AnchorMs, clock) // also if it is paused
		if st.NextMs > clock || st.Unplanned {
			st.ChangedMs, st.NextMs, st.Unplanned = clock, 0, true
		}
		x.touchSchedule(s)
	}
	return nil
}

// setJobsBack changes the next jobs, at most most of them.
func (x *tx) setJobsBack(most uint32) error {
	c := &x.m.meta.Reset
	if !c.UnderWay() || x.clockSet {
		return nil // in the entry of the reset the store does not have all jobs yet
	}
	done, err := x.eachJob(c.Next, c.Limit, most, func(rec *record.Job) error {
		c.Next = rec.Seq + 1
		return x.setJobBack(rec)
	})
	if err == nil && done {
		*c = record.ClockReset{Epoch: c.Epoch}
	}
	x.saveClockReset()
	return err
}

// setJobBack changes a job's instants.
func (x *tx) setJobBack(rec *record.Job) error {
	t, err := x.topicOf(rec)
	if err != nil {
		return err
	}
	list, err := x.listOf(t, rec)
	if err != nil {
		return err
	}
	back := rec.Status
	x.setStatusBack(rec, &back, list)
	switch {
	case back == rec.Status:
		return nil
	case list == record.ListDead:
		rec.Status = back // its place is by rank
		x.save(rec)
		x.touch(t)
		return nil
	}
	return x.move(t, rec, list, list, func(s *record.Status) { *s = back })
}

// setStatusBack changes the instants of s, a copy of rec's status.
func (x *tx) setStatusBack(rec *record.Job, s *record.Status, list record.List) {
	clock := x.clock()
	switch list {
	case record.ListDelayed:
		if rec.Spec.DueRequest == 0 || s.DueMS != rec.Spec.DueMS {
			s.DueMS = min(s.DueMS, clock+s.LastDelayMS)
		}
		return
	case record.ListReserved:
		// A reservation that was made while the clock was ahead keeps its remaining time.
		// An older one keeps its end, but lasts at most the job's time to run from now.
		until := s.ReservedUntilMS()
		s.SetReserved(max(until-x.m.meta.Reset.Back, min(until, clock+s.TtrMS)))
	case record.ListEnded:
		if early := s.EndedMS() - clock; early > 0 {
			until := s.RetainedUntilMS() - early + retentionStepMS - 1
			s.SetEnded(s.Phase, clock, until-until%retentionStepMS)
		}
	case record.ListDead:
		s.SetDead(s.Rank, min(s.DiedMS(), clock))
	}
	s.DueMS = min(s.DueMS, clock)
}
