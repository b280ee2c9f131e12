package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/internal/golden"
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

// replacement is the entries by which a staged state replaces that of a cluster. It ends the staged
// state.
func replacement(t testing.TB, s *Staged, upload uint64, part int) []*jobpb.Op {
	t.Helper()
	op := s.Replacement()
	from, _, err := s.Archive()
	require.NoError(t, err)
	data, err := io.ReadAll(from)
	require.NoError(t, err)
	require.NoError(t, from.Close())
	var ops []*jobpb.Op
	for at := 0; at < len(data); at += part {
		ops = append(ops, opChunk(upload, at, data[at:min(at+part, len(data))]))
	}
	op.Upload, op.Size, op.Checksum = upload, uint64(len(data)), crc32.Checksum(data, record.UploadTable)
	return append(ops, &jobpb.Op{Kind: &jobpb.Op_ReplaceState{ReplaceState: op}})
}

func opChunk(upload uint64, at int, data []byte) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PutStateChunk{PutStateChunk: &jobpb.PutStateChunk{Upload: upload, Offset: uint64(at), Data: data}}}
}

func opDropChunks(upload uint64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_DropStateChunks{DropStateChunks: &jobpb.DropStateChunks{Upload: upload}}}
}

// staged is the state of from, ready to replace that of to.
func staged(to, from *rig, o Restoration) *Staged {
	to.t.Helper()
	s := stage(to, from)
	o.NowMS = cmp.Or(o.NowMS, to.now)
	_, err := s.Restore(to.m, o)
	require.NoError(to.t, err)
	return s
}

// replaceBy replaces the state of to by that of from.
func replaceBy(to, from *rig, o Restoration) {
	to.t.Helper()
	for i, op := range replacement(to.t, staged(to, from, o), 7, 1000) {
		require.Equal(to.t, jobpb.Code_OK, to.one(op).Code, "operation %d", i)
	}
	require.Zero(to.t, to.m.Upload())
}

// The state of a cluster that was replaced before can replace that of one that never was, and the
// other way round.
func TestAStateThatWasReplacedReplacesAnother(t *testing.T) {
	old, r, third := newRig(t, Options{}), newRig(t, Options{}), newRig(t, Options{})
	for _, each := range []*rig{old, r, third} {
		each.do(opSetCluster("mine"), opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	}
	replaceBy(old, third, Restoration{})
	replaceBy(old, third, Restoration{})
	replaceBy(r, old, Restoration{})
	require.Equal(t, uint32(3), r.m.meta.Replaced.Count)
	replaceBy(r, third, Restoration{})
	require.Equal(t, uint32(4), r.m.meta.Replaced.Count)
	r.check()
}

// Any state can replace any other, and is consistent afterwards, has the same jobs, and no
// reservation.
func TestReplacedStatesAreConsistent(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		s.becomeGroup("cluster-0")
		r := s.replica("the backup", Options{bounds: s.smallWindows()})
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
		live := s.replica("the live state", Options{bounds: s.smallWindows()})
		s.applyLog(live, 1_000_000)
		id := live.m.ClusterID()
		was := live.m.Applied()
		now := max(was.ClockMS+s.pick(-resetDay, -1000, 0, 1000, resetDay), 1)
		ops := replacement(t, staged(live.rig, r.rig, Restoration{NowMS: now, FromNow: s.rng.IntN(2) == 0}), 7, 10_000)
		now = max(now, was.ClockMS)
		for i, op := range ops {
			live.index, now = was.Index+uint64(i)+1, max(now, live.m.Applied().ClockMS) // of what was committed ahead
			results, _, err := live.m.Apply([]Entry{{Index: live.index, Term: was.Term + 1, Data: encodeEntryAt(t, now, was.ClockEpoch, op)}}, true)
			require.NoError(t, err)
			require.Equal(t, jobpb.Code_OK, results[0][0].Code, results[0][0].Message)
		}
		live.check()
		digest := live.digest()
		live.reopen()
		live.check()
		require.Equal(t, digest, live.digest())
		after := totals(live.rig)
		require.Zero(t, after.Reserved)
		require.Equal(t, before.Delayed+before.Ready+before.Reserved+before.Dead+before.Retained, after.Delayed+after.Ready+after.Dead+after.Retained)
		a := live.m.Applied()
		require.Equal(t, live.index, a.Index)
		require.Equal(t, live.index, live.m.ReplacedAt())
		require.Equal(t, now, a.ClockMS, "the clock is that of the running cluster")
		require.Equal(t, id, live.m.ClusterID())
		require.Equal(t, a.Index, live.m.DurableIndex())
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
		next := r.m.meta.State.NextSeq
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
			require.Greater(t, r.m.meta.State.NextSeq, next)
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

// What must not replace the state is refused, and changes nothing but what is stored of it.
func TestAReplacementIsRefused(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
	last := func(ops []*jobpb.Op) *jobpb.ReplaceState { return ops[len(ops)-1].GetReplaceState() }
	for name, change := range map[string]func([]*jobpb.Op) []*jobpb.Op{
		"a part is missing at the end":  func(ops []*jobpb.Op) []*jobpb.Op { return append(ops[:len(ops)-2], ops[len(ops)-1]) },
		"nothing was sent":              func(ops []*jobpb.Op) []*jobpb.Op { return ops[len(ops)-1:] },
		"it was dropped":                func(ops []*jobpb.Op) []*jobpb.Op { return slices.Insert(ops, len(ops)-1, opDropChunks(7)) },
		"another one was sent":          func(ops []*jobpb.Op) []*jobpb.Op { return slices.Insert(ops, len(ops)-1, opChunk(8, 0, []byte("x"))) },
		"a byte has changed":            func(ops []*jobpb.Op) []*jobpb.Op { ops[1].GetPutStateChunk().Data[3] ^= 1; return ops },
		"the cluster's version is new":  func(ops []*jobpb.Op) []*jobpb.Op { last(ops).ClusterVersion++; return ops },
		"the state was replaced before": func(ops []*jobpb.Op) []*jobpb.Op { last(ops).Replacements--; return ops },
		"its clock is ahead":            func(ops []*jobpb.Op) []*jobpb.Op { last(ops).ClockMs = r.now + 1; return ops },
	} {
		t.Run(name, func(t *testing.T) {
			r.one(opDropChunks(7))
			r.one(opDropChunks(8))
			digest := r.digest()
			ops := change(replacement(t, staged(r, mon, Restoration{}), 7, 500))
			for _, op := range ops[:len(ops)-1] {
				require.Equal(t, jobpb.Code_OK, r.one(op).Code)
			}
			res := r.one(ops[len(ops)-1])
			require.Equal(t, jobpb.Code_CONDITION_FAILED, res.Code)
			r.check()
			r.reopen()
			r.one(opDropChunks(r.m.Upload()))
			require.Equal(t, digest, r.digest())
			require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, files(r))
		})
	}
	ops := replacement(t, staged(r, mon, Restoration{}), 7, 1<<20)
	require.Equal(t, jobpb.Code_INVALID, r.do(ops...)[1].Code, "it is not alone in its entry")
	require.NotNil(t, r.job(1))

	newer := stage(r, mon)
	newer.raiseToForTest(t, job.FirstVersion+1)
	_, err := newer.Restore(r.m, Restoration{})
	require.ErrorContains(t, err, "upgrade its nodes first")
	require.NoError(t, newer.Abort())
	require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, files(r))
}

// Parts of an archive are stored in their order, and those of another archive take their place only
// from the first on.
func TestPartsOfAStateAreStoredInTheirOrder(t *testing.T) {
	r := newRig(t, Options{})
	r.do()
	empty := r.digest()
	for _, step := range []struct {
		op   *jobpb.Op
		code jobpb.Code
		has  uint64
	}{
		{opChunk(1, 3, []byte("abc")), jobpb.Code_CONDITION_FAILED, 0},
		{opChunk(1, 0, []byte("abc")), jobpb.Code_OK, 1},
		{opChunk(1, 3, []byte("de")), jobpb.Code_OK, 1},
		{opChunk(1, 3, []byte("de")), jobpb.Code_CONDITION_FAILED, 1},
		{opChunk(1, 6, []byte("f")), jobpb.Code_CONDITION_FAILED, 1},
		{opChunk(2, 5, []byte("f")), jobpb.Code_CONDITION_FAILED, 1},
		{opChunk(2, 0, []byte("f")), jobpb.Code_OK, 2},
		{opChunk(1, 5, []byte("f")), jobpb.Code_CONDITION_FAILED, 2},
		{opDropChunks(1), jobpb.Code_OK, 2},
		{opDropChunks(2), jobpb.Code_OK, 0},
		{opDropChunks(0), jobpb.Code_OK, 0},
	} {
		require.Equal(t, step.code, r.one(step.op).Code)
		require.Equal(t, step.has, r.m.Upload())
		r.check()
		r.reopen()
		require.Equal(t, step.has, r.m.Upload())
	}
	require.Equal(t, empty, r.digest())
}

// However a node gets to the entry of a replacement, in one step with the entries around it, after
// crashes, or with a state that another node sent, it has the same state after it.
func TestAReplacementSurvivesCrashes(t *testing.T) {
	mon := newRig(t, Options{})
	mon.do(opSetCluster("theirs"), opAdd(&jobpb.Add{Id: "a", Topic: "t", Body: bytes.Repeat([]byte("a"), 5000)}), opAdd(&jobpb.Add{Id: "h", Topic: "held", TtrMs: hourMS}), opReserve(1, "held"))
	base := newRig(t, Options{})
	base.do(opSetCluster("mine"), opAdd(&jobpb.Add{Id: "b", Topic: "u"}))
	ops := replacement(t, staged(base, mon, Restoration{}), 7, 700)
	log := []Entry{{Index: 1, Term: 1, Data: encodeEntry(t, rigStart, opSetCluster("mine"), opAdd(&jobpb.Add{Id: "b", Topic: "u"}))}}
	for i, op := range ops {
		log = append(log,
			Entry{Index: uint64(2 + 2*i), Term: 1, Data: encodeEntry(t, rigStart, op)},
			Entry{Index: uint64(3 + 2*i), Term: 1, Data: encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: fmt.Sprint("u", i)}))})
	}
	calm := newRig(t, Options{})
	results, changes, err := calm.m.Apply(log, true)
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_OK, results[len(log)-2][0].Code, results[len(log)-2][0].Message)
	require.Len(t, changes.Events, len(changes.Topics))
	for _, c := range changes.Topics {
		require.Equal(t, c.Ready > 0, slices.Contains([]string{"t", "held", fmt.Sprint("u", len(ops)-1)}, c.Name), "topics that are gone are reported: %+v", c)
	}
	require.Equal(t, log[len(log)-2].Index, calm.m.ReplacedAt())
	require.Nil(t, calm.m.topics["u0"])
	want := calm.digest()

	for _, at := range []string{"before-swap", "after-swap"} {
		t.Run("the process ends "+at, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			var left vfs.FS
			r := newRig(t, Options{FS: disk, Point: func(name string) {
				if name == at && left == nil {
					left = disk.CrashClone(vfs.CrashCloneCfg{})
				}
			}})
			_, _, err := r.m.Apply(log, false)
			require.NoError(t, err)
			require.NotNil(t, left)
			back := newRig(t, Options{FS: left})
			require.Equal(t, at == "after-swap", back.m.ReplacedAt() != 0)
			_, _, err = back.m.Apply(log, false)
			require.NoError(t, err)
			require.Equal(t, want, back.digest())
		})
	}
}

// A replacement is an operation like any other: machines that apply a random log with one in it, in
// batches of any size, and go through crashes, restarts and snapshots, have the same state.
func TestAReplacementInARandomLog(t *testing.T) {
	replaced := 0
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		s.becomeGroup("cluster-0")
		grow := func() (n int) {
			for s.step = range *stepFlag / 3 {
				s.startTrouble()
				s.grow()
			}
			return len(s.log)
		}
		mon := s.replica("the backup", Options{})
		grow()
		s.applyLog(mon, 1_000_000)
		calm := s.replica("the calm machine", Options{})
		n := grow()
		s.applyLog(calm, 1_000_000)
		was := calm.m.Applied()
		ops := replacement(t, staged(calm.rig, mon.rig, Restoration{NowMS: was.ClockMS}), 7, 3000)
		grow()
		// The rest of the log, with the replacement in its first half.
		var rest []Entry
		tail := s.log[n:]
		for len(tail)+len(ops) > 0 {
			if len(ops) > 0 && (len(tail) == 0 || s.rng.IntN(3) == 0) {
				rest = append(rest, Entry{Term: was.Term, Data: encodeEntryAt(t, was.ClockMS, was.ClockEpoch, ops[0])})
				ops = ops[1:]
				continue
			}
			rest, tail = append(rest, tail[0]), tail[1:]
		}
		log := slices.Clone(s.log[:n])
		for _, e := range rest {
			e.Index, e.Term = log[len(log)-1].Index+1, max(e.Term, log[len(log)-1].Term)
			log = append(log, e)
		}
		_, _, err := calm.m.Apply(copyEntries(log[n:]), false)
		require.NoError(t, err)
		calm.check()
		if calm.m.ReplacedAt() != 0 {
			replaced++ // otherwise the clock was set back or the version raised meanwhile
		}

		r := s.replica("the troubled machine", Options{FS: vfs.NewCrashableMem(), MemTableBytes: 64 << 10, bounds: s.smallWindows()})
		fresh := s.replica("the fresh machine", Options{})
		s.replicas = nil // their logs are not that of the simulation
		end := log[len(log)-1].Index
		next := func(r *replica, most int) {
			first, _ := slices.BinarySearchFunc(log, r.m.Applied().Index+1, func(e Entry, index uint64) int { return cmp.Compare(e.Index, index) })
			_, _, err := r.m.Apply(copyEntries(log[first:min(first+most, len(log))]), s.rng.IntN(2) == 0)
			require.NoError(t, err)
		}
		for r.m.Applied().Index < end {
			next(r, 1+s.rng.IntN(30))
			switch s.rng.IntN(12) {
			case 0:
				clone := r.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: s.rng.IntN(101), RNG: s.rng})
				require.NoError(t, r.m.Close())
				r.fs, r.o.FS = clone, clone
				r.open()
				r.check()
			case 1:
				require.NoError(t, r.m.Flush())
			case 2:
				r.reopen()
			case 3:
				if r.m.Applied().Index > fresh.m.Applied().Index {
					install(t, r.rig, fresh.rig)
				}
			}
		}
		for fresh.m.Applied().Index < end {
			next(fresh, 1000)
		}
		require.Equal(t, calm.digest(), r.digest())
		require.Equal(t, calm.digest(), fresh.digest())
	})
	t.Logf("%d of %d logs had a replacement that was done", replaced, *roundFlag)
}

// A disk that has no room for the new state stops the node. The old state stays, and the entry is
// applied again when there is room.
func TestANodeWithoutRoomForANewStateKeepsTheOldOne(t *testing.T) {
	mon := newRig(t, Options{})
	mon.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	full := false
	disk := vfs.NewMem()
	o := Options{FS: errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "gen-000002") {
			return syscall.ENOSPC
		}
		return nil
	}))}
	r := newRig(t, o)
	r.one(opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
	ops := replacement(t, staged(r, mon, Restoration{}), 7, 1<<20)
	r.one(ops[0])
	require.NoError(t, r.m.Flush()) // a log that could be applied again is not there
	entry := []Entry{{Index: r.index + 1, Term: 1, Data: encodeEntry(t, r.now, ops[1])}}
	full = true
	_, _, err := r.m.Apply(entry, false)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, _, err = r.m.Apply(entry, false)
	require.Error(t, err, "nothing is applied after that")
	full = false
	r.reopen()
	require.Equal(t, "b", r.job(1).Id)
	_, _, err = r.m.Apply(entry, false)
	require.NoError(t, err)
	require.Equal(t, "a", r.job(1).Id)
}

// The clock of a backup may be far ahead of the cluster's. It stays behind: what it asked for later
// comes as much later as was asked for.
func TestABackupWhoseClockIsAheadDoesNotMoveTheClock(t *testing.T) {
	const year = 365 * resetDay
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.now += year
	mon.do(opAdd(&jobpb.Add{Id: "soon", Topic: "t", DelayMs: hourMS}), opAdd(&jobpb.Add{Id: "ready", Topic: "t"}), opAdd(&jobpb.Add{Id: "named", Topic: "t", DueMs: mon.now + 5}))
	mon.do(opAdd(&jobpb.Add{Id: "held", Topic: "h", TtrMs: hourMS, Options: &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{7000}}}}), opReserve(1, "h"))
	for _, from := range []bool{false, true} {
		replaceBy(r, mon, Restoration{FromNow: from})
		require.Equal(t, r.now, r.m.Applied().ClockMS)
		v := r.m.View()
		due := map[string]int64{}
		for _, id := range []string{"soon", "ready", "named", "held"} {
			j, found, err := v.Job(id)
			require.NoError(t, err)
			require.True(t, found)
			due[id] = j.DueMs - r.now
		}
		require.NoError(t, v.Close())
		require.Equal(t, map[string]int64{"soon": hourMS, "ready": 0, "named": year + 5, "held": 7000}, due)
		r.check()
	}
}

// A job whose reservation ends is delayed by its backoff, not by the time since the backup as well.
func TestTheBackoffOfARestoredReservationIsNotShifted(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.do(opAdd(&jobpb.Add{Id: "held", Topic: "h", TtrMs: hourMS, Options: &jobpb.JobOptions{Backoff: &jobpb.Backoff{DelaysMs: []int64{7000}}}}), opReserve(1, "h"))
	r.now += resetDay
	replaceBy(r, mon, Restoration{FromNow: true})
	require.EqualValues(t, 7000, r.job(1).DueMs-r.now)
}

// Generations of reservations do not begin again, however often the state is replaced.
func TestTooManyReplacementsAreRefused(t *testing.T) {
	r, mon := newRig(t, Options{}), newRig(t, Options{})
	mon.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	mon.m.meta.Replaced.Count = 3000
	require.NoError(t, mon.m.store.db.Set(record.KeyReplaced, mon.m.meta.Replaced.Append(nil), pebble.NoSync))
	s := stage(r, mon)
	_, err := s.Restore(r.m, Restoration{NowMS: r.now})
	require.NoError(t, err)
	require.NoError(t, s.Abort())
	mon.m.meta.Replaced.Count = 3840
	require.NoError(t, mon.m.store.db.Set(record.KeyReplaced, mon.m.meta.Replaced.Append(nil), pebble.NoSync))
	s = stage(r, mon)
	_, err = s.Restore(r.m, Restoration{NowMS: r.now})
	require.ErrorContains(t, err, "was replaced 3840 times")
	require.NoError(t, s.Abort())
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

// The records of an archive that arrives and of a replacement stay as they are on disk.
func TestBytesOfAReplacementStay(t *testing.T) {
	u := record.Upload{ID: 1, Size: 2, Sum: 3}
	got, err := record.DecodeUpload(golden.Frozen(t, "upload-10", u.Append(nil)))
	require.NoError(t, err)
	require.Equal(t, u, got)
	p := record.Replaced{Count: 1, Index: 2}
	was, err := record.DecodeReplaced(golden.Frozen(t, "replaced-10", p.Append(nil)))
	require.NoError(t, err)
	require.Equal(t, p, was)
}
