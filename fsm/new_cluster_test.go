package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func restored(r *rig, shift int64) NewCluster {
	a := r.m.Applied()
	return NewCluster{ID: "restored", Index: a.Index + 1, Term: max(a.Term, 1), Configuration: []byte("one voter"), Restored: true, ShiftMS: shift}
}

// Any state can be restored, and is consistent afterwards, has the same jobs, and no
// reservation.
func TestRestoredStatesAreConsistent(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		s.becomeGroup("cluster-0")
		r := s.replica("the restored machine", Options{bounds: s.smallWindows()})
		for s.step = range *stepFlag {
			s.startTrouble()
			s.grow()
		}
		s.applyLog(r, 1_000_000)
		totals := func() *jobpb.Totals {
			v := r.m.View()
			defer v.Close()
			n, err := v.Totals()
			require.NoError(t, err)
			return n
		}
		before, clock := totals(), r.m.Applied().ClockMS
		shift := s.pick(0, 1, 1000, 3_700_000, resetDay)
		require.NoError(t, r.m.EnterCluster(restored(r.rig, shift)))
		r.check()
		r.reopen()
		r.check()
		after := totals()
		require.Zero(t, after.Reserved)
		require.Equal(t, before.Delayed+before.Ready+before.Reserved+before.Dead+before.Retained, after.Delayed+after.Ready+after.Dead+after.Retained)
		require.Equal(t, before.Topics, after.Topics)
		require.Equal(t, "restored", r.m.ClusterID())
		require.Equal(t, clock+shift, r.m.Applied().ClockMS)
		require.Equal(t, []byte("one voter"), r.m.Applied().Configuration)
	})
}

// A restore keeps the tokens, but not the texts before a rotation, or removes all.
func TestWhatARestoreDoesToTokens(t *testing.T) {
	for _, reset := range []bool{false, true} {
		r := newRig(t, Options{})
		res := r.do(opSetCluster("old"), first(1), opPutToken("w", "a=add"),
			put(&jobpb.Token{Id: "w", Hash: hashOf(2), Rules: rulesOf("a=add")}, func(p *jobpb.PutToken) { p.OverlapMs = hourMS }), opSetAuth(authEnforce, ""))
		require.Equal(t, jobpb.Code_OK, res[4].Code, res[4].Message)
		require.NotEmpty(t, r.m.Auth().Token("w").OldHash)
		c := restored(r, 0)
		c.ResetAuth = reset
		require.NoError(t, r.m.EnterCluster(c))
		for range 2 {
			require.NoError(t, checkAuth(r.m))
			s := r.m.Auth()
			if reset {
				require.Zero(t, s.Tokens())
				require.False(t, s.Bootstrapped)
				require.Equal(t, authOff, s.Mode())
			} else {
				require.Equal(t, authEnforce, s.Mode())
				require.Equal(t, hashOf(2), s.Token("w").Hash)
				require.Empty(t, s.Token("w").OldHash)
				require.Zero(t, s.Token("w").OldUntilMs)
				require.True(t, s.HasLastingAdmin())
			}
			r.reopen()
		}
		want := jobpb.Code_CONDITION_FAILED
		r.index++ // that at which the new log begins
		if reset {
			want = jobpb.Code_OK
		}
		require.Equal(t, want, r.one(first(3)).Code)
	}
}

func TestWhatARestoreDoesToJobs(t *testing.T) {
	for _, shift := range []int64{0, 1000 * hourMS} {
		t.Run(fmt.Sprint("by ", shift), func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opSetCluster("old"))
			r.one(opAdd(&jobpb.Add{Id: "delayed", Topic: "t", DelayMs: hourMS}))
			r.one(opAdd(&jobpb.Add{Id: "at", Topic: "t", DueMs: r.now + 2*hourMS}))
			r.one(opAdd(&jobpb.Add{Id: "held", Topic: "h", TtrMs: hourMS, MaxAttempts: 2}))
			r.one(opAdd(&jobpb.Add{Id: "last", Topic: "h", TtrMs: hourMS, MaxAttempts: 1}))
			r.one(opReserve(2, "h"))
			r.one(opAdd(&jobpb.Add{Id: "ready", Topic: "t"}))
			r.one(opPause("t", hourMS, false))
			require.NoError(t, r.m.EnterCluster(restored(r, shift)))
			r.check()
			require.EqualValues(t, r.now+hourMS+shift, r.job(1).DueMs)
			require.EqualValues(t, r.now+2*hourMS, r.job(2).DueMs, "an instant that the producer named stays")
			require.Equal(t, jobpb.State_STATE_READY, r.job(3).State)
			require.EqualValues(t, 1, r.job(3).Attempts)
			require.Equal(t, jobpb.State_STATE_DEAD, r.job(4).State, "it had its last attempt")
			require.Equal(t, r.now+shift, r.job(5).DueMs)
			require.Equal(t, r.now+hourMS+shift, r.topic("t").PausedUntilMs)

			r.index, r.now = r.m.Applied().Index, r.now+shift
			held := r.one(opFinish(fenced(3, 1)))
			require.Equal(t, jobpb.Code_OK, held.Code, "its consumer may still finish it, as after any expired lease")
			added := r.one(opAdd(&jobpb.Add{Topic: "t"}))
			require.Greater(t, added.Seq, uint64(seqGap), "seqs that the old cluster may have given are skipped")
			require.Less(t, added.Seq, uint64(maxNextSeq))
		})
	}
}

// The consumers for which the old cluster committed ahead are not the new one's.
func TestARestoredStateReservesForNoConsumerOfTheOldCluster(t *testing.T) {
	r := withDelayed(t)
	r.one(opSetCluster("old"))
	require.EqualValues(t, rigStart+5, r.m.NextEffect())
	require.NoError(t, r.m.EnterCluster(restored(r, 0)))
	require.Zero(t, r.m.NextEffect())
	r.reopen()
	require.Zero(t, r.m.NextEffect())
	a := r.m.Applied()
	r.index = a.Index
	_, changes := r.apply(a.Term+1, rigStart+6, opAdvance(10))
	require.Empty(t, changes.Effects)
	require.Equal(t, jobpb.State_STATE_READY, r.state(1))
}

// The last node of a lost cluster goes on as it is.
func TestAStateThatEntersANewClusterKeepsItsJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opSetCluster("old"))
	r.one(opAdd(&jobpb.Add{Id: "held", Topic: "t", TtrMs: hourMS}))
	r.one(opReserve(1, "t"))
	a := r.m.Applied()
	c := NewCluster{ID: "new", Index: a.Index + 1, Term: a.Term + 1, Configuration: []byte("one")}
	for _, bad := range []NewCluster{{ID: "old", Index: c.Index, Term: c.Term}, {ID: "", Index: c.Index, Term: c.Term}, {ID: "new", Index: a.Index, Term: c.Term}, {ID: "new", Index: c.Index, Term: a.Term - 1}} {
		require.Error(t, r.m.EnterCluster(bad))
	}
	require.NoError(t, r.m.EnterCluster(c))
	require.Equal(t, "new", r.m.ClusterID())
	require.Equal(t, jobpb.State_STATE_RESERVED, r.job(1).State)
	require.Equal(t, c.Index, r.m.DurableIndex())
	r.reopen()
	require.Equal(t, c.Index, r.m.Applied().Index)
	require.Equal(t, c.Term, r.m.Applied().Term)
	require.EqualValues(t, job.FirstVersion, r.m.Version())
}

// A state that is behind only changes its cluster: the log of the new cluster goes on where it is.
func TestAStateThatIsBehindStaysWhereItIs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opSetCluster("old"))
	before := r.m.Applied()
	c := NewCluster{ID: "new", Index: before.Index, Term: before.Term, Configuration: []byte("the source votes"), Behind: true}
	for _, bad := range []NewCluster{
		{ID: "new", Index: before.Index + 1, Term: before.Term, Behind: true},
		{ID: "new", Index: before.Index, Term: before.Term + 1, Behind: true},
		{ID: "new", Index: before.Index, Term: before.Term, Behind: true, Restored: true},
		{ID: "old", Index: before.Index, Term: before.Term, Behind: true},
	} {
		require.Error(t, r.m.EnterCluster(bad))
	}
	require.NoError(t, r.m.EnterCluster(c))
	r.check()
	r.reopen()
	r.check()
	after := r.m.Applied()
	require.Equal(t, "new", r.m.ClusterID())
	require.Equal(t, []byte("the source votes"), after.Configuration)
	require.Equal(t, before.Index, after.Index)
	require.Equal(t, before.Term, after.Term)
	require.Equal(t, before.ClockMS, after.ClockMS)
}
