package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// stage stages the state of from beside that of to.
func stage(to, from *rig) *Staged {
	to.t.Helper()
	data, want := archive(from)
	rec, err := receive(to, data)
	require.NoError(to.t, err)
	s, err := to.m.Stage(rec, want)
	require.NoError(to.t, err)
	return s
}

func replaceAt(r *rig) Applied {
	a := r.m.Applied()
	return Applied{Index: a.Index + 1, Term: max(a.Term, 1), Configuration: []byte("the voters"), ConfigurationIndex: 2}
}

// replaceBy replaces the state of to by that of from.
func replaceBy(to, from *rig, o Restoration) {
	to.t.Helper()
	s := stage(to, from)
	require.NoError(to.t, s.Restore(to.m, o))
	require.NoError(to.t, to.m.Replace(s, replaceAt(to)))
	to.index, to.now = to.m.Applied().Index, max(to.now, to.m.Applied().ClockMS)
}

// Any state can replace any other, and is consistent afterwards, has the same jobs, and no
// reservation.
func TestReplacedStatesAreConsistent(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		r := s.replica("the backup", Options{windowCap: 2 + s.rng.IntN(12), windowBudget: 100})
		for s.step = range *stepFlag {
			s.startTrouble()
			s.grow()
		}
		s.applyLog(r, 1_000_000)
		before := totals(r.rig)
		for s.step = range *stepFlag {
			s.startTrouble()
			s.grow()
		}
		live := s.replica("the live state", Options{windowCap: 2 + s.rng.IntN(12), windowBudget: 100})
		s.applyLog(live, 1_000_000)
		clock, id := live.m.Applied().ClockMS, live.m.ClusterID()
		staged := stage(live.rig, r.rig)
		require.NoError(t, staged.Restore(live.m, Restoration{ShiftMS: s.pick(0, 1, 1000, 3_700_000, resetDay)}))
		at := replaceAt(live.rig)
		require.NoError(t, live.m.Replace(staged, at))
		live.check()
		require.True(t, live.m.Unconfirmed())
		digest := live.digest()
		live.reopen()
		live.check()
		require.Equal(t, digest, live.digest())
		require.True(t, live.m.Unconfirmed(), "also after a crash")
		after := totals(live.rig)
		require.Zero(t, after.Reserved)
		require.Equal(t, before.Delayed+before.Ready+before.Reserved+before.Dead+before.Retained, after.Delayed+after.Ready+after.Dead+after.Retained)
		a := live.m.Applied()
		require.Equal(t, at.Index, a.Index)
		require.Equal(t, at.Configuration, a.Configuration)
		require.GreaterOrEqual(t, a.ClockMS, clock)
		require.Equal(t, id, live.m.ClusterID())
		require.Equal(t, at.Index, live.m.DurableIndex())
	})
}

func totals(r *rig) *jobpb.Totals {
	v := r.m.View()
	defer v.Close()
	n, err := v.Totals()
	require.NoError(r.t, err)
	return n
}

func TestWhatAReplacementKeepsOfTheRunningCluster(t *testing.T) {
	for _, reset := range []bool{false, true} {
		old, r := newRig(t, Options{}), newRig(t, Options{})
		old.do(opSetCluster("other"), first(1), opPutToken("revoked", "a=add"), opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
		old.one(&jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: "theirs", NodeId: "n7"}}})
		r.do(opSetCluster("mine"), first(1), opPutToken("present", "a=add"), opSetAuth(authEnforce, ""))
		r.one(&jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: "ours", NodeId: "n9"}}})
		r.now += 5 * hourMS
		r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
		next := r.m.meta.state.nextSeq
		replaceBy(r, old, Restoration{ResetAuth: reset})
		for range 2 {
			require.Equal(t, "mine", r.m.ClusterID())
			require.True(t, r.m.Forgotten("ours"))
			require.False(t, r.m.Forgotten("theirs"))
			require.Contains(t, r.m.RemovedNodes(), "n9")
			require.NotContains(t, r.m.RemovedNodes(), "n7")
			require.Nil(t, r.m.Auth().Token("revoked"))
			require.Equal(t, reset, r.m.Auth().Token("present") == nil)
			require.Equal(t, r.now, r.m.Applied().ClockMS, "the clock does not go back")
			require.Greater(t, r.m.meta.state.nextSeq, next)
			require.Equal(t, "a", r.job(1).Id)
			r.check()
			r.reopen()
		}
	}
}

// A consumer that reserved a job before the replacement can do nothing to it after, however
// often the job was handed out in both states, and however often the state is replaced.
func TestAReplacementMakesOldTokensStale(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	for _, each := range []*rig{r, mon} {
		each.one(opSetCluster("one"))
		each.one(opAdd(&jobpb.Add{Id: "held", Topic: "t", TtrMs: hourMS, MaxAttempts: 9}))
		each.one(opAdd(&jobpb.Add{Id: "waits", Topic: "t", TtrMs: hourMS}))
	}
	mon.one(opReserve(1, "t"))
	given := map[job.Token]bool{}
	for range 4 {
		var tokens []*jobpb.Ref
		for _, j := range r.one(opReserve(2, "t")).Jobs {
			token := job.Token{Seq: j.Seq, Generation: j.Generation}
			require.False(t, given[token], "a token is given twice")
			given[token] = true
			tokens = append(tokens, &jobpb.Ref{Seq: j.Seq, Generation: j.Generation})
		}
		require.Len(t, tokens, 2)
		replaceBy(r, mon, Restoration{})
		for _, ref := range tokens {
			res := r.one(opFinish(ref))
			require.Equal(t, jobpb.Code_STALE_TOKEN, res.Code, res.Message)
		}
		require.EqualValues(t, 1, r.job(1).Attempts, "that of the backup")
	}
	jobs := r.one(opReserve(2, "t")).Jobs
	require.Len(t, jobs, 2)
	for _, j := range jobs {
		require.Equal(t, jobpb.Code_OK, r.one(opFinish(&jobpb.Ref{Seq: j.Seq, Generation: j.Generation})).Code)
	}
}

// Watches of reservations end with the state in which these were.
func TestAReplacementEndsWatchedReservations(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opSetCluster("one"))
	mon.one(opAdd(&jobpb.Add{Id: "held", Topic: "t", TtrMs: hourMS}))
	r.one(opAdd(&jobpb.Add{Id: "held", Topic: "t", TtrMs: hourMS}))
	r.one(opReserve(1, "t"))
	w := r.m.Watch()
	defer w.Close()
	require.NoError(t, w.Add([]job.Token{{Seq: 1, Generation: 1}}))
	require.Empty(t, w.Take())
	replaceBy(r, mon, Restoration{})
	require.Len(t, w.Take(), 1)
}

func TestAReplacementIsUnconfirmedUntilAnEntryFollows(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opSetCluster("one"))
	r.one(opSetCluster("two"))
	require.False(t, r.m.Unconfirmed())
	replaceBy(r, mon, Restoration{})
	require.NoError(t, r.m.MarkDurable(r.index+1, 1, nil, 0))
	require.True(t, r.m.Unconfirmed(), "an entry of Raft's own says nothing here")
	r.reopen()
	require.True(t, r.m.Unconfirmed())
	data, at := archive(r)
	other := newRig(t, Options{})
	rec, err := receive(other, data)
	require.NoError(t, err)
	require.NoError(t, other.m.Install(rec, at))
	require.True(t, other.m.Unconfirmed(), "a node that gets it as a snapshot knows no more")
	r.index++
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	require.False(t, r.m.Unconfirmed())
}

func TestAStagedStateOfTheWrongKindReplacesNothing(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
	digest := r.digest()
	fails := func(at Applied, prepare func(*Staged), says string) {
		s := stage(r, mon)
		prepare(s)
		require.ErrorContains(t, r.m.Replace(s, at), says)
		require.Equal(t, digest, r.digest())
		require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, files(r))
	}
	restore := func(s *Staged) { require.NoError(t, s.Restore(r.m, Restoration{})) }
	fails(replaceAt(r), func(*Staged) {}, "was not restored")
	fails(r.m.Applied(), restore, "cannot be replaced at entry")
	aborted := stage(r, mon)
	require.NoError(t, aborted.Abort())
	require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, files(r))
	require.Error(t, r.m.Replace(aborted, replaceAt(r)))

	newer := stage(r, mon)
	newer.raiseToForTest(t, job.FirstVersion+1)
	require.ErrorContains(t, newer.Restore(r.m, Restoration{}), "upgrade its nodes first")
	require.NoError(t, newer.Abort())
}

func (s *Staged) raiseToForTest(t *testing.T, version uint32) {
	s.tx.replies = false
	require.NoError(t, s.raiseTo(version))
}

// A state of an older cluster version becomes one of the running cluster's.
func TestAStagedStateIsRaisedToTheClustersVersion(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	for v := uint32(job.FirstVersion + 1); v <= job.MaxVersion; v++ {
		require.Equal(t, jobpb.Code_OK, r.one(&jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: v}}}).Code)
	}
	replaceBy(r, mon, Restoration{})
	require.EqualValues(t, job.MaxVersion, r.m.Version())
	r.reopen()
	require.EqualValues(t, job.MaxVersion, r.m.Version())
	r.check()
	require.Equal(t, "a", r.job(1).Id)
}
