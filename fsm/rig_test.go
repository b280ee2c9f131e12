package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// rig drives one machine and checks all of its state when the test ends.
type rig struct {
	t     testing.TB
	fs    vfs.FS
	o     Options
	m     *Machine
	index uint64
	now   int64
}

// Limits and units, in milliseconds.
const (
	maxTTRMS   = int64(job.MaxTTR / 1e6)
	maxDelayMS = int64(job.MaxDelay / 1e6)
	maxPauseMS = int64(job.MaxPause / 1e6)
	hourMS     = 60 * record.MinuteMS
)

const rigDir = "state"

// rigStart is the clock at which tests start.
const rigStart = 1_000_000

func newRig(t testing.TB, o Options) *rig {
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 1 << 20
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 1 << 20
	}
	o.OnFatal = func(err error) { t.Errorf("the store failed: %v", err) }
	r := &rig{t: t, fs: o.FS, o: o, now: rigStart}
	r.open()
	t.Cleanup(func() {
		r.check()
		require.NoError(t, r.m.Close())
	})
	return r
}

func (r *rig) open() {
	m, err := Open(rigDir, r.o)
	require.NoError(r.t, err)
	r.m = m
}

// reopen closes the machine and opens its files again.
func (r *rig) reopen() {
	require.NoError(r.t, r.m.Close())
	r.open()
}

// check checks that the whole state is consistent, in the store and in memory.
func (r *rig) check() {
	r.t.Helper()
	v := r.m.View()
	require.NoError(r.t, check.Records(v, nil))
	require.NoError(r.t, v.Close())
	require.NoError(r.t, checkMemory(r.m))
}

// do applies operations as one entry and returns their results.
func (r *rig) do(ops ...*jobpb.Op) []*jobpb.Result {
	r.t.Helper()
	r.index++
	results, _, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntry(r.t, r.now, ops...)}}, true)
	require.NoError(r.t, err)
	require.Len(r.t, results, 1)
	require.Len(r.t, results[0], len(ops))
	return results[0]
}

// one applies one operation.
func (r *rig) one(op *jobpb.Op) *jobpb.Result {
	r.t.Helper()
	return r.do(op)[0]
}

func (r *rig) job(seq uint64) *jobpb.Job {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	j, found, err := v.JobBySeq(seq)
	require.NoError(r.t, err)
	if !found {
		return nil
	}
	return j
}

func (r *rig) topic(name string) *jobpb.Topic {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	t, err := v.Topic(name)
	require.NoError(r.t, err)
	return t
}

func (r *rig) digest() string {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	d, err := check.Digest(v, nil)
	require.NoError(r.t, err)
	return d
}

func encodeEntry(t testing.TB, now int64, ops ...*jobpb.Op) []byte {
	return encodeEntryAt(t, now, 0, ops...)
}

// encodeEntryAt is encodeEntry in an epoch of the clock.
func encodeEntryAt(t testing.TB, now int64, epoch uint64, ops ...*jobpb.Op) []byte {
	return encodeEntryOf(t, now, false, epoch, ops...)
}

// encodeHeard is encodeEntryAt for an entry whose leader has asked the config group.
func encodeHeard(t testing.TB, now int64, epoch uint64, h oplog.Heard, ops ...*jobpb.Op) []byte {
	data := oplog.AppendHeard(oplog.AppendEntryTime(nil, time.UnixMilli(now), epoch, job.MaxVersion), h)
	for _, op := range ops {
		var err error
		data, err = oplog.AppendOp(data, op)
		require.NoError(t, err)
	}
	return data
}

// encodeEntryOf is encodeEntryAt for a time that may be rounded down.
func encodeEntryOf(t testing.TB, now int64, rounded bool, epoch uint64, ops ...*jobpb.Op) []byte {
	at := time.UnixMilli(now)
	if rounded {
		at = at.Add(time.Nanosecond)
	}
	data := oplog.AppendEntryTime(nil, at, epoch, job.MaxVersion)
	for _, op := range ops {
		var err error
		data, err = oplog.AppendOp(data, op)
		require.NoError(t, err)
	}
	return data
}

// checkMemory compares everything the machine keeps in memory with its store.
func checkMemory(m *Machine) error {
	for _, t := range m.topics {
		for list := record.ListDelayed; list < record.ListCount; list++ {
			if err := checkWindow(m, t, list); err != nil {
				return fmt.Errorf("topic %q, %s: %w", t.name, list, err)
			}
		}
		if (t.position >= 0) != (t.next != 0) || (t.position >= 0 && m.due[t.position] != t) {
			return fmt.Errorf("topic %q is not at its position in the due heap", t.name)
		}
	}
	for i := 1; i < len(m.due); i++ {
		if m.due.Less(i, (i-1)/2) {
			return fmt.Errorf("topic %q is too far down in the due heap", m.due[i].name)
		}
	}
	for _, generation := range []map[uint64]*record.Job{m.recent.young, m.recent.old} {
		for seq, rec := range generation {
			stored, err := record.ReadJob(m.store.db, seq, false)
			if err != nil {
				return err
			}
			if stored == nil || stored.Spec != rec.Spec || stored.Status != rec.Status || stored.BodyLen != rec.BodyLen {
				return fmt.Errorf("job %d is cached as %+v, the store has %+v", seq, rec, stored)
			}
		}
	}
	if err := checkDueChanges(m); err != nil {
		return err
	}
	if err := checkScheduleTimes(m); err != nil {
		return err
	}
	if err := checkSettings(m); err != nil {
		return err
	}
	if err := checkRemoved(m); err != nil {
		return err
	}
	if err := checkAdmission(m); err != nil {
		return err
	}
	if err := checkAuth(m); err != nil {
		return err
	}
	if err := checkNamespaceMemory(m); err != nil {
		return err
	}
	if len(m.topics) != len(m.byNumber) || len(m.topics) != len(m.public.topics) {
		return fmt.Errorf("%d topics, %d by number, %d public", len(m.topics), len(m.byNumber), len(m.public.topics))
	}
	return nil
}

// checkDueChanges compares the gathered changes in memory with those in the store.
func checkDueChanges(m *Machine) error {
	stored, err := record.ReadDueCounts(m.store.db, record.KeyDueChanges)
	if err != nil {
		return err
	}
	if has := m.dueChanges.gathered.Sum(); !slices.Equal(has, stored) || len(m.dueChanges.entry) > 0 {
		return fmt.Errorf("gathered changes of due counts are %v, the store has %v; %v are in no entry", has, stored, m.dueChanges.entry)
	}
	return nil
}

func checkWindow(m *Machine, t *topic, list record.List) error {
	w := &t.windows[list]
	stored, err := record.PlacesFrom(m.store.db, t.listID(list), record.Place{})
	if err != nil {
		return err
	}
	defer stored.Close()
	var want []record.Place
	for {
		p, ok, err := stored.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if w.Covers(p) {
			want = append(want, p)
		}
	}
	if !slices.Equal(want, w.Live()) {
		return fmt.Errorf("the window holds %v, the store has %v below its bound", w.Live(), want)
	}
	if !w.Settled() {
		return errors.New("changes are left over from a transaction")
	}
	return nil
}

// Short forms of the operations.

func opAdd(a *jobpb.Add) *jobpb.Op {
	if a.TtrMs == 0 {
		a.TtrMs = 60_000
	}
	return &jobpb.Op{Kind: &jobpb.Op_Add{Add: a}}
}

// opImport imports a job that waits.
func opImport(a *jobpb.Add) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: &jobpb.ImportJob{Add: opAdd(a).GetAdd()}}}
}

func opReserve(most uint32, topics ...string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: topics, Max: most}}}
}

func opFinish(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}
}

func opDelete(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}
}

func opDeleteSparing(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, SpareReserved: true}}}
}

func opReserveJob(ref *jobpb.Ref, ttr int64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: ref, TtrMs: ttr}}}
}

func opPause(topic string, ms int64, create bool) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: topic, PauseMs: ms, Create: create}}}
}

func opRelease(rel *jobpb.Release) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Release{Release: rel}}
}

func opTouch(ref *jobpb.Ref, ttr int64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref, TtrMs: ttr}}}
}

func opBury(b *jobpb.Bury) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: b}} }

func opKick(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref}}}
}

func opKickTopic(topic string, most uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: topic, Max: most}}}
}

func opKickTopicOrDelayed(topic string, most uint32) *jobpb.Op {
	op := opKickTopic(topic, most)
	op.GetKickTopic().OrDelayed = true
	return op
}

func opAdvance(most uint32) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: most}}}
}

func opAtomicAdd(c *jobpb.AtomicAdd) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: c}}
}

func opUpdate(u *jobpb.Update) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Update{Update: u}} }

// retain sets a topic's retention.
func (r *rig) retain(topic string, ms int64) {
	r.t.Helper()
	require.Equal(r.t, jobpb.Code_OK, r.one(opRetain(topic, ms)).Code)
}

func opRetain(topic string, ms int64) *jobpb.Op {
	return opSettings(&jobpb.SetTopic{Topic: topic, Settings: &jobpb.TopicSettings{RetainMs: ms}})
}

func opMark(name string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Mark{Mark: &jobpb.Mark{Name: name}}}
}

func opSetCluster(id string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id}}}
}

func opForget(id string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: id}}}
}

// opRemove removes a server and its node.
func opRemove(server, node string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: server, NodeId: node}}}
}

func opAdmit(node string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_AdmitNode{AdmitNode: &jobpb.AdmitNode{NodeId: node}}}
}

// opInvite makes an invitation with a key of its id's letters; node "": for any.
func opInvite(id, node string, expiresInMS int64) *jobpb.Op {
	v := &jobpb.Invitation{Id: id, NodeId: node, PublicKey: bytes.Repeat([]byte(id), 32)[:32]}
	return &jobpb.Op{Kind: &jobpb.Op_PutInvitation{PutInvitation: &jobpb.PutInvitation{Invitation: v, ExpiresInMs: expiresInMS}}}
}

// opEndInvitation records the use of an invitation by a server; "": it is revoked.
func opEndInvitation(id, server string) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: id, ServerId: server}}}
}

func opAdmission(mode jobpb.AdmissionMode) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetAdmission{SetAdmission: &jobpb.SetAdmission{Mode: mode}}}
}

func bySeq(seq uint64) *jobpb.Ref { return &jobpb.Ref{Seq: seq} }

func byID(id string) *jobpb.Ref { return &jobpb.Ref{Id: id} }

func fenced(seq uint64, generation uint32) *jobpb.Ref {
	return &jobpb.Ref{Seq: seq, Generation: generation}
}
