package fsm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// The clock never goes back, but for one operation: ResetClock, for a cluster whose
// clock has run away. What has happened by the clock that was ahead has happened:
// ready jobs stay ready. What was yet to happen is brought nearer, as if its delay
// had been asked for now, if by that it comes earlier: so nothing that was asked for
// while the clock was right moves at all, and nothing comes early but what was
// changed to an absolute instant while the clock was ahead.
//
// Topics and schedules, which are bounded, are done by the operation itself. Jobs
// are gone through by the Advances that follow, in the order of their seqs, a bounded
// number with each; nextDue asks for these at once. Until then a job that was not
// come to yet may be ready although its instant is ahead of the clock, but not of
// meta.reached: whoever tells states by instants asks that.
//
// Entries that were under way carry the time that has gone. So an entry names the
// epoch of the clock by which its time was told, and in another epoch its time does
// not count. Nothing else in the state assumes that the clock grows: the order of
// lists does not depend on it, and a window takes in a place before its head.

// clockReset is how the clock was set back. Its zero value: never.
type clockReset struct {
	epoch uint64 // how often
	// While jobs are still to be gone through, else 0:
	ahead int64  // the clock as it was
	back  int64  // how far it was set back
	limit uint64 // jobs from here on were added since
	next  uint64 // those before are done
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

// underWay says that jobs are still to be gone through.
func (c *clockReset) underWay() bool { return c.ahead != 0 }

// reached is the largest instant that can be behind anything in the state.
func (m *meta) reached() int64 { return max(m.state.clockMS, m.reset.ahead) }

// resetClock sets the clock back.
func (x *tx) resetClock(op *jobpb.ResetClock, r *jobpb.Result) error {
	c, was := &x.m.meta.reset, x.clock()
	switch {
	case c.underWay():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back just now, and the jobs are still being gone through")
	case op.Epoch != c.epoch:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since this was asked for")
	case op.ToMs < 1 || op.ToMs >= was:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock is not ahead of %d", op.ToMs)
	}
	*c = clockReset{epoch: c.epoch + 1, ahead: was, back: was - op.ToMs, limit: x.m.meta.state.nextSeq, next: 1}
	x.saveClockReset()
	x.clockSet = true

	topics := slices.SortedFunc(maps.Values(x.m.topics), func(a, b *topic) int { return cmp.Compare(a.number, b.number) })
	for _, t := range topics {
		x.touch(t) // fills its bucket by the old clock
	}
	x.m.meta.state.clockMS = op.ToMs
	for _, t := range topics {
		x.setTopicBack(t)
	}
	return x.setSchedulesBack()
}

func (x *tx) saveClockReset() {
	x.value = x.m.meta.reset.append(x.value[:0])
	must(x.batch.Set(keyClock, x.value, nil))
}

// setTopicBack brings a topic's own instants back.
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

// setSchedulesBack has the next instants worked out anew that the clock is not near.
// A run that came early is started again at its instant, unless its job is there.
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
		st.AnchorMs = min(st.AnchorMs, clock) // that of a paused one too
		if st.NextMs > clock || st.Unplanned {
			st.ChangedMs, st.NextMs, st.Unplanned = clock, 0, true
		}
		x.touchSchedule(s)
	}
	return nil
}

// setJobsBack goes through some of the jobs, most at most.
func (x *tx) setJobsBack(most uint32) error {
	c := &x.m.meta.reset
	if !c.underWay() || x.clockSet {
		return nil // in the entry of the reset the store does not have all jobs yet
	}
	it, err := x.db.NewIter(&pebble.IterOptions{
		LowerBound: appendSeqKey(nil, spaceOrigin, c.next), UpperBound: appendSeqKey(nil, spaceOrigin, c.limit),
	})
	if err != nil {
		return err
	}
	done, err := x.setBackFrom(it, most)
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err == nil && done {
		*c = clockReset{epoch: c.epoch}
	}
	x.saveClockReset()
	return err
}

// setBackFrom says whether no job is left. What it counts are jobs that are there
// still: how many of the store's are not depends on how the log was cut into batches.
func (x *tx) setBackFrom(it *pebble.Iterator, most uint32) (done bool, err error) {
	bytes := 0
	for it.First(); it.Valid(); it.Next() {
		seq, err := seqOfKey(it.Key())
		if err != nil {
			return false, err
		}
		rec, err := x.job(seq, false)
		if err != nil {
			return false, err
		}
		if rec == nil {
			continue
		}
		if most == 0 || bytes >= sweepBytes {
			return false, nil
		}
		if err := x.setJobBack(rec); err != nil {
			return false, err
		}
		bytes += rec.bodyLen
		most--
		x.m.meta.reset.next = seq + 1
	}
	return true, it.Error()
}

// setJobBack brings a job's instants back.
func (x *tx) setJobBack(rec *record) error {
	t, err := x.topicOf(rec)
	if err != nil {
		return err
	}
	state, err := x.stateOf(t, rec)
	if err != nil {
		return err
	}
	f := rec.fate
	x.setFateBack(rec, &f, state)
	switch {
	case f.dueMS == rec.fate.dueMS && f.reservedUntil == rec.fate.reservedUntil && f.diedMS == rec.fate.diedMS:
		return nil
	case state == jobpb.State_STATE_DEAD:
		rec.fate.dueMS, rec.fate.diedMS = f.dueMS, f.diedMS // its place is by rank
		x.save(rec)
		x.touch(t)
		return nil
	}
	list := listed(state)
	return x.move(t, rec, list, list, func(to *fate) {
		to.dueMS, to.reservedUntil, to.diedMS = f.dueMS, f.reservedUntil, f.diedMS
	})
}

// setFateBack changes the instants of f, which is rec's fate.
func (x *tx) setFateBack(rec *record, f *fate, state jobpb.State) {
	clock := x.clock()
	switch state {
	case jobpb.State_STATE_DELAYED:
		if rec.dueRequest == 0 || f.dueMS != rec.origin.dueMS {
			f.dueMS = min(f.dueMS, clock+f.lastDelayMS)
		}
		return
	case jobpb.State_STATE_RESERVED:
		// A reservation of the time that has gone ends as it would have; one of before
		// as it was to end, or after the job's time to run.
		f.reservedUntil = max(f.reservedUntil-x.m.meta.reset.back, min(f.reservedUntil, clock+f.ttrMS))
	case jobpb.State_STATE_FINISHED, jobpb.State_STATE_DELETED:
		if early := f.diedMS - clock; early > 0 {
			until := f.reservedUntil - early + retentionStepMS - 1
			f.reservedUntil, f.diedMS = until-until%retentionStepMS, clock
		}
	case jobpb.State_STATE_DEAD:
		f.diedMS = min(f.diedMS, clock)
	}
	f.dueMS = min(f.dueMS, clock)
}
