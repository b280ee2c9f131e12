package fsm

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// ahead is an advance for an instant with a reserve of one job of topic t.
func ahead(at int64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{
		AtMs: at, Number: uint64(at), Advance: &jobpb.Advance{Max: 10}, Reserves: []*jobpb.Reserve{{Topics: []string{"t"}, Max: 1, Consumer: "c"}},
	}}}
}

// apply applies operations as one entry of a term at an instant.
func (r *rig) apply(term uint64, now int64, ops ...*jobpb.Op) ([]*jobpb.Result, Changes) {
	r.t.Helper()
	r.index++
	results, changes, err := r.m.Apply([]Entry{{Index: r.index, Term: term, Data: encodeEntry(r.t, now, ops...)}}, true)
	require.NoError(r.t, err)
	return results[0], changes
}

func (r *rig) state(seq uint64) jobpb.State {
	r.t.Helper()
	if j := r.job(seq); j != nil {
		return j.State
	}
	return jobpb.State_STATE_NONE
}

func withDelayed(t *testing.T) *rig {
	r := newRig(t, Options{})
	r.apply(1, rigStart, opAdd(&jobpb.Add{Topic: "t", Id: "a", DelayMs: 5, TtrMs: 1000}), ahead(rigStart+5))
	require.EqualValues(t, rigStart+5, r.m.NextEffect())
	return r
}

func TestWhatIsCommittedAheadIsNotSeenBeforeItsInstant(t *testing.T) {
	r := withDelayed(t)
	r.reopen()
	require.EqualValues(t, rigStart+5, r.m.NextEffect())
	results, changes := r.apply(1, rigStart+4, opReserve(1, "t"), opAdvance(10))
	require.Empty(t, results[0].Jobs)
	require.Empty(t, changes.Effects)
	require.Equal(t, jobpb.State_STATE_DELAYED, r.state(1))

	results, changes = r.apply(1, rigStart+6, opReserve(1, "t"))
	require.Empty(t, results[0].Jobs, "the reserve that was committed ahead came first")
	require.Len(t, changes.Effects, 1)
	got := changes.Effects[0].Results[0].Jobs[0]
	require.EqualValues(t, rigStart+5+1000, got.ReservedUntilMs, "its time begins at the due instant")
	require.Equal(t, "c", r.job(1).ReservedBy)
	require.Zero(t, r.m.NextEffect())
}

func TestATakenEffectIsThatOfTheNextEntry(t *testing.T) {
	for name, next := range map[string]Entry{
		"of a later time":   {Term: 1, Data: encodeEntry(t, rigStart+7, opAdvance(1))},
		"of the same time":  {Term: 1, Data: encodeEntry(t, rigStart+5, opAdvance(1))},
		"of the next term":  {Term: 2, Data: encodeEntry(t, rigStart+1, opAdvance(1))},
		"which is a delete": {Term: 1, Data: encodeEntry(t, rigStart+5, opDelete(&jobpb.Ref{Id: "a"}))},
	} {
		t.Run(name, func(t *testing.T) {
			leader, follower := withDelayed(t), withDelayed(t)
			changes, err := leader.m.TakeEffect(rigStart+5, 1, 0)
			require.NoError(t, err)
			require.Len(t, changes.Effects, 1)
			require.Len(t, changes.Effects[0].Results[0].Jobs, 1)
			require.Equal(t, jobpb.State_STATE_RESERVED, leader.state(1))
			require.NotEqual(t, follower.digest(), leader.digest())
			leader.reopen()
			for _, r := range []*rig{leader, follower} {
				r.index++
				next.Index = r.index
				_, _, err := r.m.Apply([]Entry{next}, false)
				require.NoError(t, err)
			}
			require.Equal(t, follower.digest(), leader.digest())
		})
	}
}

func TestAJobThatIsDeletedOrPostponedMeanwhileIsNotHandedOut(t *testing.T) {
	for name, op := range map[string]*jobpb.Op{
		"deleted":   opDelete(&jobpb.Ref{Id: "a"}),
		"postponed": {Kind: &jobpb.Op_Update{Update: &jobpb.Update{Ref: &jobpb.Ref{Id: "a"}, DelayMs: new(int64(100))}}},
		"moved":     {Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: "t", To: "u", States: []jobpb.State{jobpb.State_STATE_DELAYED}, Max: 10}}},
		"reserved":  {Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: &jobpb.Ref{Id: "a"}}}},
		"paused":    {Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", PauseMs: 100}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := withDelayed(t)
			results, _ := r.apply(1, rigStart+4, op)
			require.Equal(t, jobpb.Code_OK, results[0].Code, results[0].Message)
			changes, err := r.m.TakeEffect(rigStart+5, 1, 0)
			require.NoError(t, err)
			require.Len(t, changes.Effects, 1)
			require.Empty(t, changes.Effects[0].Results[0].Jobs)
		})
	}
}

func TestOnlyWhatIsDueInThisTermAndEpochTakesEffectEarly(t *testing.T) {
	r := withDelayed(t)
	for _, c := range []struct {
		until       int64
		term, epoch uint64
	}{{rigStart + 4, 1, 0}, {rigStart + 5, 2, 0}, {rigStart + 5, 1, 1}} {
		changes, err := r.m.TakeEffect(c.until, c.term, c.epoch)
		require.NoError(t, err)
		require.Empty(t, changes.Effects)
	}
	require.Equal(t, jobpb.State_STATE_DELAYED, r.state(1))
}

func TestAnAdvanceForAnInstantOfAnotherClockIsDropped(t *testing.T) {
	r := withDelayed(t)
	_, changes := r.apply(1, rigStart+1, &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{ToMs: rigStart - 1000}}})
	require.Equal(t, []Effect{{Number: rigStart + 5}}, changes.Effects)
	require.Zero(t, r.m.NextEffect())
	results, _ := r.apply(1, rigStart+1, ahead(rigStart)) // in the epoch before
	require.Equal(t, jobpb.Code_CONDITION_FAILED, results[0].Code)
}

func TestTheNumberOfPendingAdvancesIsBounded(t *testing.T) {
	r := newRig(t, Options{})
	for range maxPending {
		require.Equal(t, jobpb.Code_OK, r.one(ahead(r.now+5)).Code)
	}
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(ahead(r.now+5)).Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(ahead(r.now+maxAheadMS+1)).Code)
	require.Equal(t, jobpb.Code_OK, r.one(ahead(r.now)).Code, "one that comes late does not wait")
}

// An entry that a leader proposes with a time before an effect that it has let happen comes before
// the effect on the other nodes. The leader stops, so that no two states differ.
func TestALeaderStopsAtAnEntryBeforeAnEffectThatItLetHappen(t *testing.T) {
	const at = rigStart + 5
	job := opAdd(&jobpb.Add{Topic: "t", TtrMs: 3})
	entry := func(index, term uint64, now int64, epoch uint64) []Entry {
		return []Entry{{Index: index, Term: term, Data: encodeEntryAt(t, now, epoch, opAdvance(1))}}
	}
	setBack := Entry{Index: 2, Term: 1, Data: encodeEntry(t, rigStart, &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{ToMs: rigStart - 5}}})}
	for name, c := range map[string]struct {
		next  []Entry
		fails bool
	}{
		"earlier":                          {entry(3, 1, at-1, 0), true},
		"then":                             {entry(3, 1, at, 0), false},
		"later":                            {entry(3, 1, at+1, 0), false},
		"of the next term":                 {entry(3, 2, at-1, 0), false},
		"of another clock":                 {entry(3, 1, at+1, 1), true},
		"sets the clock back":              {[]Entry{setBack}, true},
		"a configuration":                  {[]Entry{{Index: 3, Term: 1, Configuration: true}}, false},
		"earlier, behind a configuration":  {append([]Entry{{Index: 3, Term: 1, Configuration: true}}, entry(4, 1, at-1, 0)...), true},
		"earlier, behind one that decides": {append(entry(3, 1, at, 0), entry(4, 1, at-1, 0)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewCrashableMem()
			leader, follower := newRig(t, Options{FS: fsys}), newRig(t, Options{})
			for _, r := range []*rig{leader, follower} {
				r.apply(1, rigStart, job, opReserve(1, "t"), ahead(at))
				require.NoError(t, r.m.Flush())
			}
			before := fsys.CrashClone(vfs.CrashCloneCfg{})
			changes, err := leader.m.TakeEffect(at, 1, 0)
			require.NoError(t, err)
			require.Len(t, changes.Effects, 1)
			_, _, err = follower.m.Apply(c.next, true)
			require.NoError(t, err)
			require.NoError(t, leader.m.Flush())
			leader.reopen() // the effect is on disk, and what it must be compared with is, too
			_, _, err = leader.m.Apply(c.next, true)
			if !c.fails {
				require.NoError(t, err)
				for _, r := range []*rig{leader, follower} {
					r.index = 10
					r.apply(2, at+1) // a new leader's first
				}
				require.Equal(t, follower.digest(), leader.digest())
				return
			}
			require.ErrorIs(t, err, errOrder)
			leader.reopen()
			_, _, err = leader.m.Apply(c.next, true)
			require.ErrorIs(t, err, errOrder, "it does not go on later, either")
			require.NoError(t, leader.m.Close())
			leader.fs, leader.o.FS = before, before
			leader.open() // a state in which the effect did not happen yet
			_, _, err = leader.m.Apply(c.next, true)
			require.NoError(t, err)
			require.Equal(t, follower.digest(), leader.digest())
		})
	}
}

// After that failure the effect is not made durable, so that a restart does without it.
func TestALeaderThatStoppedForItsEffectIsClosedWithoutAFlush(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	r := newRig(t, Options{FS: fsys})
	r.apply(1, rigStart, opAdd(&jobpb.Add{Topic: "t", DelayMs: 5}), ahead(rigStart+5))
	require.NoError(t, r.m.Flush())
	_, err := r.m.TakeEffect(rigStart+5, 1, 0)
	require.NoError(t, err)
	late := []Entry{{Index: 2, Term: 1, Data: encodeEntry(t, rigStart+4, opAdvance(1))}}
	_, _, err = r.m.Apply(late, true)
	require.ErrorIs(t, err, errOrder)
	r.reopen()
	require.EqualValues(t, rigStart+5, r.m.NextEffect())
	_, _, err = r.m.Apply(late, true)
	require.NoError(t, err)
}

func TestTheRecordOfAnEffectStays(t *testing.T) {
	p := record.PendingAdvance{At: 0x0102030405, Term: 7}
	b := p.AppendTaken(nil)
	require.Equal(t, "\x0a\x00\x00\x00\x01\x02\x03\x04\x05\x00\x00\x00\x00\x00\x00\x00\x07", string(b))
	got, err := record.DecodeTaken(b)
	require.NoError(t, err)
	require.Equal(t, p, got)
	for _, bad := range [][]byte{nil, b[:16], append(b, 0), append([]byte{11}, b[1:]...)} {
		_, err := record.DecodeTaken(bad)
		require.Error(t, err)
	}
}
