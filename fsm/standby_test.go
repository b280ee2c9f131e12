package fsm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/internal/golden"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// followedSpaces are the keyspaces that a standby has from its primary. The others are about
// the nodes of a cluster, or are the history of a config group, which begins anew.
var followedSpaces = slices.DeleteFunc(slices.Clone(check.DigestSpaces[:]), func(space byte) bool {
	return slices.Contains([]byte{record.SpaceAdmission, record.SpaceForgotten, record.SpaceRemoved, record.SpaceConfigLog}, space)
})

// queueDigest is the digest of the part of the state that a standby has from its primary.
func queueDigest(t testing.TB, m *Machine) string {
	v := m.View()
	defer v.Close()
	h := sha256.New()
	require.NoError(t, v.With(func(r pebble.Reader) error {
		meta, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		s := &meta.State
		fmt.Fprintln(h, s.ClockMS, s.NextSeq, s.LastTopic, s.Topics, s.GatheredDue, s.Counts, s.DeadReasons, s.RecentDue, meta.Version, meta.Reset, meta.Walk, meta.Migrating)
		for _, p := range meta.Pending {
			fmt.Fprintln(h, p.At, p.Term, p.Op)
		}
		for _, space := range followedSpaces {
			err := v.Scan(r, []byte{space}, []byte{space + 1}, func(key, value []byte) error {
				fmt.Fprintf(h, "%x=%x\n", key, value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return hex.EncodeToString(h.Sum(nil))
}

func asStandby(m *Machine) NewCluster {
	a := m.Applied()
	return NewCluster{ID: "the standby", Index: a.Index + 1, Term: max(a.Term, 1), Configuration: []byte("one voter"), Standby: true}
}

// followed is the FollowLog of some entries of a log.
func followed(primary string, entries []Entry) *jobpb.Op {
	f := &jobpb.FollowLog{Primary: primary}
	for _, e := range entries {
		data := e.Data
		if e.Configuration {
			data = nil
		}
		f.Entries = append(f.Entries, &jobpb.FollowedEntry{Index: e.Index, Term: e.Term, Data: slices.Clone(data)})
	}
	return &jobpb.Op{Kind: &jobpb.Op_FollowLog{FollowLog: f}}
}

// standbyRig is a standby with its own log.
type standbyRig struct {
	*replica
	log  []Entry
	done int // entries of log that are applied
}

func (b *standbyRig) append(t *testing.T, ops ...*jobpb.Op) {
	last := b.m.Applied()
	if n := len(b.log); n > 0 {
		last.Index = max(last.Index, b.log[n-1].Index)
	}
	// The own time and term have no effect.
	b.log = append(b.log, Entry{Index: last.Index + 1, Term: last.Term + 1, Data: encodeEntry(t, 1<<40, ops...)})
}

func (b *standbyRig) catchUp(t *testing.T, batch int) (results []*jobpb.Result) {
	for b.done < len(b.log) {
		end := min(b.done+batch, len(b.log))
		rs, changes, err := b.m.Apply(copyEntries(b.log[b.done:end]), true)
		require.NoError(t, err)
		for _, p := range changes.Marks {
			require.NoError(t, p.View.Close())
		}
		for _, r := range rs {
			results = append(results, r...)
		}
		b.done = end
	}
	return results
}

// A standby that is given the entries of a random log in any pieces, repeated, mixed with entries
// of its own, across restarts and crashes, has the state of its primary.
func TestAStandbyHasTheStateOfItsPrimary(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		primary := s.replica("the primary", Options{})
		b := &standbyRig{replica: s.replica("the standby", Options{FS: vfs.NewCrashableMem(), MemTableBytes: 64 << 10, bounds: s.smallWindows()})}
		if !s.becomeGroup("the primary") {
			s.entry(s.now, 0, slices.Values([]*jobpb.Op{opSetCluster("the primary"), opRaise(2)}))
		}
		for range s.rng.IntN(20) {
			s.grow()
		}
		s.applyLog(primary, 1000)
		install(t, primary.rig, b.rig)
		require.NoError(t, b.m.EnterCluster(asStandby(b.m)))
		require.Equal(t, queueDigest(t, primary.m), queueDigest(t, b.m))
		for s.step = range *stepFlag {
			s.startTrouble()
			given := len(s.log)
			s.grow()
			from := max(given-s.trouble.IntN(4), 0) // some are there already
			for from < len(s.log) {
				end := min(from+1+s.trouble.IntN(5), len(s.log))
				b.append(t, followed("the primary", s.log[from:end]))
				from = end
			}
			s.disturbStandby(b)
			if s.trouble.IntN(10) == 0 || s.step == *stepFlag-1 {
				b.catchUp(t, 1000)
				s.applyLog(primary, 1000)
				require.Equal(t, queueDigest(t, primary.m), queueDigest(t, b.m))
				b.check()
				st := b.m.Standby()
				last := s.log[len(s.log)-1]
				require.Equal(t, [2]uint64{last.Index, last.Term}, [2]uint64{st.Index, st.Term})
			}
		}
		require.Equal(t, "the standby", b.m.ClusterID())
		promoteAndUse(t, s, b)
	})
}

// disturbStandby has own entries of a standby, restarts and crashes.
func (s *simulation) disturbStandby(b *standbyRig) {
	switch s.trouble.IntN(8) {
	case 0:
		b.append(s.t, opForget("s2.old"), opAdvance(100), opMark("m"))
	case 1:
		b.append(s.t, opAdd(&jobpb.Add{Topic: "a", Body: []byte("refused")}), opRaise(9))
	case 2:
		b.catchUp(s.t, 1+s.trouble.IntN(3))
		b.reopen()
	case 3:
		b.catchUp(s.t, 1+s.trouble.IntN(3))
		s.crash(b.replica)
		applied := b.m.Applied().Index
		for b.done > 0 && b.log[b.done-1].Index > applied {
			b.done--
		}
	default:
		b.catchUp(s.t, 1+s.trouble.IntN(5))
	}
}

// promoteAndUse ends the mode, after which the machine is like any other.
func promoteAndUse(t *testing.T, s *simulation, b *standbyRig) {
	seq := b.m.meta.State.NextSeq
	b.append(t, opPromote())
	rs := b.catchUp(t, 1000)
	require.Equal(t, jobpb.Code_OK, rs[len(rs)-1].Code, rs[len(rs)-1].Message)
	require.False(t, b.m.Follows())
	require.Empty(t, b.m.meta.Pending)
	require.GreaterOrEqual(t, b.m.meta.State.NextSeq, seq+seqGap)
	b.reopen()
	b.append(t, followed("the primary", s.log[:1]), opPromote())
	b.append(t, opAdvance(1000))
	rs = b.catchUp(t, 1)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, rs[0].Code)
	require.Equal(t, jobpb.Code_CONDITION_FAILED, rs[1].Code)
	b.check()
}

// newStandby returns a primary with one job, and its standby.
func newStandby(t *testing.T) (primary *rig, b *standbyRig) {
	primary = newRig(t, Options{})
	primary.do(opSetCluster("the primary"), opRaise(2))
	primary.do(opAdd(&jobpb.Add{Id: "a", Topic: "t", TtrMs: 1000}))
	b = &standbyRig{replica: &replica{rig: newRig(t, Options{}), name: "the standby"}}
	install(t, primary, b.rig)
	require.NoError(t, b.m.EnterCluster(asStandby(b.m)))
	return primary, b
}

// own applies operations of the standby's own log.
func (b *standbyRig) own(t *testing.T, ops ...*jobpb.Op) []*jobpb.Result {
	b.append(t, ops...)
	return b.catchUp(t, 1)
}

func (b *standbyRig) requireCode(t *testing.T, want jobpb.Code, op *jobpb.Op) {
	t.Helper()
	r := b.own(t, op)[0]
	require.Equal(t, want, r.Code, r.Message)
	require.Equal(t, want != jobpb.Code_OK, r.Message != "")
}

func TestAStandbyRefusesWhatItsPrimaryDidNot(t *testing.T) {
	_, b := newStandby(t)
	before := queueDigest(t, b.m)
	fields := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		op := new(jobpb.Op)
		m := op.ProtoReflect()
		m.Set(fields.Get(i), protoreflect.ValueOfMessage(m.NewField(fields.Get(i)).Message()))
		if TakenByStandby(op) {
			continue
		}
		b.requireCode(t, jobpb.Code_STANDBY, op)
	}
	require.Equal(t, before, queueDigest(t, b.m))
}

func TestAStandbyHasItsOwnMembers(t *testing.T) {
	primary, b := newStandby(t)
	at := b.m.Standby().Index
	entry := Entry{Index: at + 1, Term: 1, Data: encodeEntry(t, primary.now, opRemove("p2.server", "p2"), opSetCluster("other"))}
	b.requireCode(t, jobpb.Code_OK, followed("the primary", []Entry{entry}))
	require.Empty(t, b.m.RemovedNodes())
	require.False(t, b.m.Forgotten("p2.server"))
	b.own(t, opRemove("s2.server", "s2"))
	require.Contains(t, b.m.RemovedNodes(), "s2")
	require.True(t, b.m.Forgotten("s2.server"))
}

func TestAStandbyTakesNoOtherEntriesThanTheNextOfItsPrimary(t *testing.T) {
	_, b := newStandby(t)
	at := b.m.Standby().Index
	next := func(index, term uint64) []Entry {
		return []Entry{{Index: index, Term: term, Data: encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}))}}
	}
	jobs := func() uint64 { return b.topic("t").Ready }
	b.requireCode(t, jobpb.Code_CONDITION_FAILED, followed("the primary", next(at+2, 1))) // a gap
	b.requireCode(t, jobpb.Code_CLUSTER_MISMATCH, followed("another", next(at+1, 1)))
	b.requireCode(t, jobpb.Code_CONDITION_FAILED, followed("the primary", next(at+1, 0))) // an earlier term
	rs := b.own(t, followed("the primary", next(at+1, 1)), followed("the primary", next(at+2, 1)))
	require.Equal(t, []jobpb.Code{jobpb.Code_INVALID, jobpb.Code_INVALID}, []jobpb.Code{rs[0].Code, rs[1].Code})
	require.Equal(t, uint64(1), jobs())
	b.requireCode(t, jobpb.Code_OK, followed("the primary", next(at+1, 1)))
	b.requireCode(t, jobpb.Code_OK, followed("the primary", next(at+1, 1))) // again
	require.Equal(t, uint64(2), jobs())
	require.Equal(t, at+1, b.m.Standby().Index)
}

// What the primary did after the standby's last entry cannot meet what the standby does.
func TestWhatAPromotedStandbyGivesWasNeverGivenByItsPrimary(t *testing.T) {
	primary, b := newStandby(t)
	at := b.m.Standby().Index
	reserve := func(r *rig) *jobpb.Reserved { return r.one(opReserve(1, "t")).Jobs[0] }
	held := reserve(primary) // the standby has it
	b.requireCode(t, jobpb.Code_OK, followed("the primary", []Entry{{Index: at + 1, Term: 1, Data: encodeEntry(t, primary.now, opReserve(1, "t"))}}))
	primary.now += 2000
	primary.one(opAdvance(10))
	lost := reserve(primary) // the standby has not
	added := primary.one(opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}))

	require.Equal(t, uint64(1), b.topic("t").Reserved)
	b.append(t, opPromote())
	b.catchUp(t, 1)
	b.append(t, opAdvance(10), opReserve(1, "t")) // entries of a standby rig are far in the future
	rs := b.catchUp(t, 1)
	given := rs[len(rs)-1].Jobs[0]
	require.Equal(t, lost.Seq, given.Seq)
	require.Greater(t, given.Generation, lost.Generation+1000)
	for _, old := range []*jobpb.Reserved{held, lost} {
		b.requireCode(t, jobpb.Code_STALE_TOKEN, opFinish(&jobpb.Ref{Seq: old.Seq, Generation: old.Generation}))
	}
	b.append(t, opAdd(&jobpb.Add{Topic: "t", TtrMs: 1}))
	require.Greater(t, b.catchUp(t, 1)[0].Seq, added.Seq+1000)
}

// A reservation that the standby has goes on.
func TestAReservationOutlivesAPromotion(t *testing.T) {
	primary, b := newStandby(t)
	at := b.m.Standby().Index
	entry := Entry{Index: at + 1, Term: 1, Data: encodeEntry(t, primary.now, opReserve(1, "t"))}
	b.requireCode(t, jobpb.Code_OK, followed("the primary", []Entry{entry}))
	b.own(t, opPromote())
	b.requireCode(t, jobpb.Code_OK, opFinish(&jobpb.Ref{Seq: 1, Generation: 1}))
}

// What has arrived of a backup that was to replace the primary's state replaces no other.
func TestAPromotionDropsWhatWasSentOfABackup(t *testing.T) {
	primary, b := newStandby(t)
	at := b.m.Standby().Index
	entry := Entry{Index: at + 1, Term: 1, Data: encodeEntry(t, primary.now, opChunk(7, 0, []byte("a part")))}
	b.requireCode(t, jobpb.Code_OK, followed("the primary", []Entry{entry}))
	require.Equal(t, uint64(7), b.m.Upload())
	b.own(t, opPromote())
	require.Zero(t, b.m.Upload())
	b.check()
}

// A replacement that the primary refused is in its log like any operation.
func TestAStandbyFollowsBeyondARefusedReplacement(t *testing.T) {
	primary, b := newStandby(t)
	chunk, replace := opChunk(7, 0, []byte("a part")), &jobpb.ReplaceState{Upload: 7, Size: 7, ClusterVersion: 2, Replacements: 1}
	ops := []*jobpb.Op{chunk, {Kind: &jobpb.Op_ReplaceState{ReplaceState: replace}}, opDropChunks(7), opAdd(&jobpb.Add{Id: "later", Topic: "t"})}
	var entries []Entry
	for i, op := range ops {
		r := primary.one(op)
		require.Equal(t, i == 1, r.Code == jobpb.Code_CONDITION_FAILED, r)
		data := encodeEntry(t, primary.now, op)
		_, err := oplog.CheckFollowed(data)
		require.NoError(t, err)
		entries = append(entries, Entry{Index: b.m.Standby().Index + 1 + uint64(i), Term: 1, Data: data})
	}
	b.requireCode(t, jobpb.Code_OK, followed("the primary", entries))
	require.Equal(t, queueDigest(t, primary.m), queueDigest(t, b.m))
	b.check()
}

func TestWhichStatesCannotBecomeAStandby(t *testing.T) {
	old := newRig(t, Options{})
	old.do(opSetCluster("the primary"))
	require.ErrorContains(t, old.m.EnterCluster(asStandby(old.m)), "cluster version 1, and a standby needs 2")
	_, b := newStandby(t)
	again := asStandby(b.m)
	again.ID = "another"
	require.ErrorContains(t, b.m.EnterCluster(again), "of a standby")
	// It can be restored, and is not a standby then.
	require.NoError(t, b.m.EnterCluster(restored(b.rig, 0)))
	require.False(t, b.m.Follows())
	require.Equal(t, uint32(1), b.m.Standby().Promotions)
}

func TestTheRecordOfAStandbyKeepsItsBytes(t *testing.T) {
	s := &jobpb.StandbyState{
		Mode: jobpb.StandbyMode_STANDBY_PROMOTED, Primary: "the primary", Index: 300, Term: 2, SeenIndex: 301, SeenMs: 1_700_000_000_000,
		Promotions: 1, PromotedMs: 1_700_000_001_000, CaughtUpMs: 1_699_999_999_000,
	}
	written, err := record.AppendStandby(nil, s)
	require.NoError(t, err)
	read, err := record.DecodeStandby(golden.Frozen(t, "standby-10", written))
	require.NoError(t, err)
	require.True(t, proto.Equal(s, read))
	for n := range written {
		if cut, err := record.DecodeStandby(written[:n]); err == nil {
			require.False(t, proto.Equal(s, cut))
		}
	}
}
