package fsm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
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

// clockReset is how the clock was set back. Its zero value: never.
type clockReset struct {
	epoch uint64 // how often
	// While jobs remain to be changed, else 0:
	ahead int64  // the clock before
	back  int64  // how far it was set back
	limit uint64 // jobs from this seq on were added since
	next  uint64 // jobs before this seq are done
}

const clockResetLen = 1 + 5*8

func (c *clockReset) numbers() [5]uint64 {
	return [...]uint64{c.epoch, uint64(c.ahead), uint64(c.back), c.limit, c.next}
}

func (c *clockReset) append(b []byte) []byte {
	b = append(b, formatVersion)
	for _, v := range c.numbers() {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func decodeClockReset(b []byte) (c clockReset, err error) {
	if err := checkVersion("clock record", b, formatVersion); err != nil {
		return clockReset{}, err
	}
	if len(b) != clockResetLen {
		return clockReset{}, fmt.Errorf("clock record has %d bytes, want %d", len(b), clockResetLen)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[1+8*i:]) }
	return clockReset{epoch: n(0), ahead: int64(n(1)), back: int64(n(2)), limit: n(3), next: n(4)}, nil
}

// underWay reports whether jobs remain to be changed.
func (c *clockReset) underWay() bool { return c.ahead != 0 }

// maxClock returns the largest clock by which the state may have acted.
func (m *meta) maxClock() int64 { return max(m.state.clockMS, m.reset.ahead) }

// resetClock sets the clock back.
func (x *tx) resetClock(op *jobpb.ResetClock, r *jobpb.Result) error {
	c, was := &x.m.meta.reset, x.clock()
	switch {
	case c.underWay():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back just now, and jobs are still being changed; try again later")
	case op.Epoch != c.epoch:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since this request was made")
	case op.ToMs < 1 || op.ToMs >= was:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock is not ahead of %d", op.ToMs)
	}
	*c = clockReset{epoch: c.epoch + 1, ahead: was, back: was - op.ToMs, limit: x.m.meta.state.nextSeq, next: 1}
	x.saveClockReset()
	x.clockSet = true
	x.dropPending()

	topics := slices.SortedFunc(maps.Values(x.m.topics), func(a, b *topic) int { return cmp.Compare(a.number, b.number) })
	for _, t := range topics {
		x.touch(t) // fills its bucket by the old clock
	}
	x.m.meta.state.clockMS = op.ToMs
	for _, t := range topics {
		x.setTopicBack(t)
	}
	if err := errors.Join(x.setTokensBack(), x.setInvitationsBack()); err != nil {
		return err
	}
	return x.setSchedulesBack()
}

func (x *tx) saveClockReset() {
	x.value = x.m.meta.reset.append(x.value[:0])
	must(x.batch.Set(keyClock, x.value, nil))
}

// setTopicBack changes a topic's own instants.
func (x *tx) setTopicBack(t *topic) {
	clock := x.clock()
	t.emptySince = min(t.emptySince, clock)
	if t.paused() && t.pausedUntil != job.NeverMS {
		t.pausedUntil = min(t.pausedUntil, clock+t.pauseMS)
	}
	if t.bucket != nil {
		t.bucket.at, t.bucket.since = clock, clock
	}
}

// setTokensBack lets the text that a token had before its last rotation be accepted no longer
// than was left of its time. When a token ends is an instant that was named: it stays.
func (x *tx) setTokensBack() error {
	back, clock := x.m.meta.reset.back, x.clock()
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
		record, err := encodeToken(set)
		if err != nil {
			return err
		}
		must(x.batch.Set(x.nameKey(spaceToken, set.Id), record, nil))
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
	err := scan(x.db, []byte{spaceSchedule, scheduleState}, []byte{spaceSchedule, scheduleState + 1}, func(key, _ []byte) error {
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
	c := &x.m.meta.reset
	if !c.underWay() || x.clockSet {
		return nil // in the entry of the reset the store does not have all jobs yet
	}
	done, err := x.eachJob(c.next, c.limit, most, func(rec *record) error {
		c.next = rec.seq + 1
		return x.setJobBack(rec)
	})
	if err == nil && done {
		*c = clockReset{epoch: c.epoch}
	}
	x.saveClockReset()
	return err
}

// setJobBack changes a job's instants.
func (x *tx) setJobBack(rec *record) error {
	t, err := x.topicOf(rec)
	if err != nil {
		return err
	}
	list, err := x.listOf(t, rec)
	if err != nil {
		return err
	}
	back := rec.status
	x.setStatusBack(rec, &back, list)
	switch {
	case back == rec.status:
		return nil
	case list == listDead:
		rec.status = back // its place is by rank
		x.save(rec)
		x.touch(t)
		return nil
	}
	return x.move(t, rec, list, list, func(s *jobStatus) { *s = back })
}

// setStatusBack changes the instants of s, a copy of rec's status.
func (x *tx) setStatusBack(rec *record, s *jobStatus, list listKind) {
	clock := x.clock()
	switch list {
	case listDelayed:
		if rec.spec.dueRequest == 0 || s.dueMS != rec.spec.dueMS {
			s.dueMS = min(s.dueMS, clock+s.lastDelayMS)
		}
		return
	case listReserved:
		// A reservation that was made while the clock was ahead keeps its remaining time.
		// An older one keeps its end, but lasts at most the job's time to run from now.
		until := s.reservedUntilMS()
		s.setReserved(max(until-x.m.meta.reset.back, min(until, clock+s.ttrMS)))
	case listEnded:
		if early := s.endedMS() - clock; early > 0 {
			until := s.retainedUntilMS() - early + retentionStepMS - 1
			s.setEnded(s.phase, clock, until-until%retentionStepMS)
		}
	case listDead:
		s.setDead(s.rank, min(s.diedMS(), clock))
	}
	s.dueMS = min(s.dueMS, clock)
}
