package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/configlog"
	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/job/jobpb"
)

// A backup replaces the state of a running cluster through the log, in ordinary operations. The
// leader makes the state that is to be (Stage), and puts it into the log as an archive, in
// parts. The parts are stored as they are: so they are part of the state, and of a snapshot, and
// whoever has them needs nothing else. Meanwhile the queue goes on. Then one operation makes the
// archive the state, on each node at the same entry: what comes before it is applied to the old
// state, what comes after it to the new one.
//
// A node builds the new state in a generation of its own and makes it the live one in one durable
// step, with the index of the entry. Until then its store has an earlier index, so after a crash
// the entry is applied again.

func (x *tx) putStateChunk(op *jobpb.PutStateChunk, r *jobpb.Result) error {
	u := &x.m.meta.Upload
	if op.Offset == 0 {
		x.dropUpload()
		u.ID = op.Upload
	}
	if op.Upload != u.ID || op.Offset != u.Size {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "another state arrives, or this one was dropped")
	}
	must(x.batch.Set(x.seqKey(record.SpaceUpload, op.Offset), op.Data, nil))
	u.Add(op.Data)
	x.value = u.Append(x.value[:0])
	must(x.batch.Set(record.KeyUpload, x.value, nil))
	return nil
}

func (x *tx) dropStateChunks(op *jobpb.DropStateChunks, _ *jobpb.Result) error {
	if op.GetUpload() == x.m.meta.Upload.ID {
		x.dropUpload()
	}
	return nil
}

// dropUpload removes the archive of which parts are stored, if there is one.
func (x *tx) dropUpload() {
	if x.m.meta.Upload.ID == 0 {
		return
	}
	x.m.meta.Upload = record.Upload{}
	must(x.batch.DeleteRange([]byte{record.SpaceUpload}, []byte{record.SpaceUpload + 1}, nil))
	must(x.batch.Delete(record.KeyUpload, nil))
}

// replaceState checks a ReplaceState. Machine.replaceState does it, after the entry that has it.
func (x *tx) replaceState(op *jobpb.ReplaceState, r *jobpb.Result) error {
	meta := &x.m.meta
	switch {
	case !x.ops.Alone():
		return x.refuse(r, jobpb.Code_INVALID, "a state is replaced alone in an entry")
	case meta.Upload != record.Upload{ID: op.Upload, Size: op.Size, Sum: op.Checksum}:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the state that is to replace this one is not here as a whole")
	case op.ClusterVersion != meta.Version, op.Replacements <= meta.Replaced.Count:
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the cluster's version has changed, or its state was replaced, since the backup was sent")
	case op.ClockMs > x.clock():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the clock was set back since the backup was sent")
	case x.followed: // a primary sends no entry up to its last replacement, so it refused this one
		return errors.New("the primary refused to replace its state, and this one has what it needs for that: they differ")
	}
	x.toReplace = op
	return nil
}

// replaceState makes the stored archive the state, at the entry e. before is the point of the
// state before e: the old state keeps it, in case that the new one cannot be made.
func (m *Machine) replaceState(before, e Entry, changes *Changes, changed map[string]int) error {
	m.replacing.Store(true)
	defer m.replacing.Store(false)
	op := m.tx.toReplace
	m.tx.toReplace = nil
	m.meta.State.Index, m.meta.State.Term = before.Index, before.Term
	m.tx.dropPending() // its consumers are those of the old state
	if err := m.commit(changes, changed); err != nil {
		return err
	}
	r, err := m.unpack(m.store.db.DB)
	if err != nil {
		return err
	}
	s, err := m.openStaged(r)
	if err == nil {
		err = errors.Join(s.takeOver(m, e, op), s.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replace the state: %w", err), r.Abort())
	}
	old := m.TopicChanges()
	if err := m.swapTo(r); err != nil {
		return err
	}
	for _, list := range [][]TopicChange{old, m.TopicChanges()} {
		for _, c := range list {
			if m.topics[c.Name] == nil {
				c = TopicChange{Name: c.Name}
			}
			changes.set(c, changed)
		}
	}
	changes.Cluster, changes.Schedules = true, true
	return nil
}

// unpack makes a generation of the stored archive.
func (m *Machine) unpack(from pebble.Reader) (*Receiver, error) {
	r, err := m.Receive()
	if err != nil {
		return nil, err
	}
	err = record.Scan(from, []byte{record.SpaceUpload}, []byte{record.SpaceUpload + 1}, func(_, part []byte) error {
		_, err := r.Write(part)
		return err
	})
	if err == nil {
		err = r.Finish()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the stored state: %w", err), r.Abort())
	}
	return r, nil
}

// CheckUpload unpacks what is stored of an archive, reads every record of it, and removes it again.
// A ReplaceState can rely on an archive that has passed it. It needs the room for the state
// and may be called from any goroutine.
func (m *Machine) CheckUpload() (err error) {
	v := m.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.With(func(from pebble.Reader) error {
		r, err := m.unpack(from)
		if err != nil {
			return err
		}
		return errors.Join(r.Inspect(readAll), r.Abort())
	})
}

func readAll(db *pebble.DB) error {
	return record.Scan(db, nil, nil, func(_, _ []byte) error { return nil })
}

// Replacing reports whether the state is being replaced, which takes as long as it is large. Nothing
// else is applied meanwhile.
func (m *Machine) Replacing() bool { return m.replacing.Load() }

// Upload returns the id of the archive of which parts are stored; 0: there is none.
func (m *Machine) Upload() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.upload
}

// The leader makes of a backup the state that is to replace that of its cluster: it unpacks the
// backup beside its live state, checks it, and ends its reservations. The result is staged. That
// takes as long as the state is large, and touches nothing. Then it goes through the log as an
// archive (Machine.replaceState).

// generationsOfOne is how many generations the tokens of a job have between two replacements:
// more than it is reserved in that time.
const generationsOfOne = 1 << 20

// Staged is a state that may replace a machine's. It is for one goroutine; end it with Abort.
type Staged struct {
	*Machine // nobody applies entries to it

	receiver  *Receiver
	count     uint32 // of replacements, this one included
	resetAuth bool
}

// Stage opens what r received, a Receiver of this machine, as a state that may replace the
// machine's. It must be the state at want.Index and want.Term. It reads every record once. It
// may be called from any goroutine. On an error r is aborted.
func (m *Machine) Stage(r *Receiver, want Applied) (*Staged, error) {
	err := m.checkReceived(r, want)
	var s *Staged
	if err == nil {
		s, err = m.openStaged(r)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stage a state: %w", err), r.Abort())
	}
	return s, nil
}

func (m *Machine) openStaged(r *Receiver) (*Staged, error) {
	// A failure of the staged store must not end the process, as one of the live store does. What
	// it breaks is found at the next commit.
	o := m.options
	o.Point, o.CacheBytes = func(string) {}, stagedCache
	s := &Staged{receiver: r}
	o.OnFatal = func(err error) { o.infof("a staged state failed: %v", err) }
	s.Machine = &Machine{dir: m.dir.Beside(o.store()), options: o}
	if err := s.reopen(r.Path()); err != nil {
		return nil, err
	}
	return s, nil
}

// stagedCache is the block cache of a staged store, in bytes.
const stagedCache = 16 << 20

// Abort removes the staged state.
func (s *Staged) Abort() error { return errors.Join(s.close(false), s.receiver.Abort()) }

// Archive closes the staged state and returns it as an archive, with its size. The archive's Close
// removes it.
func (s *Staged) Archive() (archive io.ReadCloser, size int64, err error) {
	h := store.Header{Index: s.meta.State.Index, Term: s.meta.State.Term, Version: s.meta.Version}
	if err := s.Close(); err != nil {
		return nil, 0, err
	}
	a, err := store.OpenArchive(s.options.FS, s.receiver.Path(), h)
	if err != nil {
		return nil, 0, err
	}
	return a, a.Size, nil
}

// Replacement is the operation that makes the archive of the staged state that of the cluster. The
// caller sets what it knows of the archive.
func (s *Staged) Replacement() *jobpb.ReplaceState {
	return &jobpb.ReplaceState{ClusterVersion: s.meta.Version, Replacements: s.count, ClockMs: s.meta.State.ClockMS, ResetAuth: s.resetAuth}
}

// Restoration says how a staged state changes.
type Restoration struct {
	// NowMS is the present time of the queue. If the clock of the backup is ahead of it, that is
	// set back first, as by ResetClock.
	NowMS int64
	// FromNow moves all instants that are counted from the clock by the time since the backup:
	// the state continues as if none had passed.
	FromNow bool
	// ResetAuth removes all tokens and their settings. Otherwise those of the running cluster
	// stay.
	ResetAuth bool
}

// Restore ends the reservations of a staged state, brings it to the version of the machine that
// it is to replace, and moves its instants. It reads all jobs, in bounded memory. It returns by
// how much the instants were moved. After an error the staged state must be aborted.
func (s *Staged) Restore(live *Machine, o Restoration) (shiftMS int64, err error) {
	version := live.Version()
	if s.Version() > version {
		return 0, fmt.Errorf(
			"the backup was made at cluster version %d, and this cluster has version %d: upgrade its nodes first", s.Version(), version)
	}
	if has, wants := s.meta.Sharding, live.sharding(); !sameGroup(has, wants) {
		return 0, fmt.Errorf("the backup is of %s, and a state is restored only in its place: this is %s", groupName(has), groupName(wants))
	}
	was, err := live.replacedBefore()
	if err != nil {
		return 0, err
	}
	s.count, s.resetAuth = max(was, s.meta.Replaced.Count)+1, o.ResetAuth
	s.tx.replies = false
	if s.follows() { // a backup of a standby
		s.tx.endStandby()
	}
	s.tx.keepStandby(live.Standby())
	s.meta.Replaced.Count = s.count
	floor, err := checkedFloor(&s.meta)
	if err != nil {
		return 0, err
	}
	if err := s.raiseTo(version); err != nil {
		return 0, err
	}
	if err := s.tx.setRight(o.NowMS); err != nil {
		return 0, err
	}
	if o.FromNow {
		shiftMS = o.NowMS - s.tx.clock()
	}
	return shiftMS, s.tx.restore(shiftMS, floor)
}

// setRight sets the clock of a state back to a time that it is ahead of. The jobs are changed by
// restore.
func (x *tx) setRight(nowMS int64) error {
	if x.clock() <= nowMS {
		return nil
	}
	if err := x.endReset(); err != nil {
		return err
	}
	var r jobpb.Result
	if err := x.resetClock(&jobpb.ResetClock{ToMs: nowMS, Epoch: x.m.meta.Reset.Epoch}, &r); err != nil {
		return err
	}
	return x.m.commit(&Changes{}, map[string]int{})
}

// keepStandby takes over what the state that is to be replaced remembers of a primary; nil: it has
// none.
func (x *tx) keepStandby(live *jobpb.StandbyState) {
	if live == nil {
		return
	}
	promotions := max(live.Promotions, x.m.meta.Standby.GetPromotions())
	x.m.meta.Standby, x.standbyChanged = proto.CloneOf(live), true
	x.m.meta.Standby.Promotions = promotions
}

// replacedBefore returns how often the machine's state was replaced.
func (m *Machine) replacedBefore() (count uint32, err error) {
	v := m.View()
	err = v.With(func(r pebble.Reader) error {
		meta, err := record.ReadMeta(r)
		count = meta.Replaced.Count
		return err
	})
	return count, errors.Join(err, v.Close())
}

// raiseTo raises the cluster version of the state, and rewrites its records.
func (s *Staged) raiseTo(version uint32) error {
	for s.meta.Version < version || s.meta.Migrating != nil {
		var r jobpb.Result
		var err error
		if s.meta.Migrating != nil {
			err = s.tx.migrate(&jobpb.Migrate{Max: newClusterStep}, &r)
		} else {
			err = s.tx.raiseVersion(&jobpb.RaiseVersion{To: s.meta.Version + 1}, &r)
		}
		if err != nil {
			return err
		}
		if err := s.commit(&Changes{}, map[string]int{}); err != nil {
			return err
		}
	}
	return nil
}

// takeOver gives the state that is to replace live at the entry e what stays of the running
// cluster: its identity, its members, its version and its clock, and its tokens unless they are
// reset. It makes that durable.
func (s *Staged) takeOver(live *Machine, e Entry, op *jobpb.ReplaceState) error {
	if live.followsConfig() {
		if err := s.takeConfig(live); err != nil {
			return err
		}
	}
	batch := s.store.db.NewBatch()
	defer func() { _ = batch.Close() }() // it is committed, or discarded
	spaces := record.ClusterSpaces[:]
	if live.followsConfig() {
		must(batch.Set(record.KeyConfigGroup, record.AppendConfigGroup(nil, &live.meta.ConfigGroup), nil))
	} else if !op.ResetAuth {
		spaces = append(spaces, record.SpaceToken)
	} else if err := clearSpace(s.store.db.DB, batch, record.SpaceToken); err != nil {
		return err
	}
	for _, space := range spaces {
		if err := clearSpace(s.store.db.DB, batch, space); err != nil {
			return err
		}
		err := record.Scan(live.store.db, []byte{space}, []byte{space + 1}, func(key, value []byte) error { return batch.Set(key, value, nil) })
		if err != nil {
			return err
		}
	}
	state, at := s.meta.State, live.Applied()
	state.Index, state.Term = e.Index, e.Term
	state.ClockMS = live.meta.State.ClockMS
	state.NextSeq = max(state.NextSeq, live.meta.State.NextSeq)
	mark := record.DurableMark{Index: e.Index, Term: e.Term, Configuration: at.Configuration, ConfigurationIndex: at.ConfigurationIndex}
	clock := record.ClockReset{Epoch: live.meta.Reset.Epoch}
	for key, value := range map[string][]byte{
		string(record.KeyState):         state.Append(nil),
		string(record.KeyCluster):       []byte(live.meta.ClusterID),
		string(record.KeyClock):         clock.Append(nil),
		string(record.KeyDurable):       mark.Append(nil),
		string(record.KeyConfiguration): record.AppendConfiguration(nil, at.ConfigurationIndex, at.Configuration),
		string(record.KeyReplaced):      record.Replaced{Count: op.Replacements, Index: e.Index}.Append(nil),
	} {
		must(batch.Set([]byte(key), value, nil))
	}
	if s := live.meta.Sharding; s != nil { // Restore has seen to it that it is of this group
		value, err := record.AppendSharding(nil, s)
		if err != nil {
			return err
		}
		must(batch.Set(record.KeySharding, value, nil))
	}
	if live.logsConfig() { // data groups take over the config of the backup as a whole
		if err := clearSpace(s.store.db.DB, batch, record.SpaceConfigLog); err != nil {
			return err
		}
		log := record.ConfigLog{Position: configlog.Position{Epoch: positionOf(&live.meta.ConfigLog).Epoch + 1}}
		must(batch.Set(record.KeyConfigLog, log.Append(nil), nil))
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	return s.store.db.Flush()
}

// takeConfig gives the state the config of a data group that it is to replace: that is not the group's
// to restore.
func (s *Staged) takeConfig(live *Machine) error {
	var all []*jobpb.ConfigRecord
	err := record.EachConfigRecord(live.store.db, "", func(c *jobpb.ConfigRecord) bool {
		all = append(all, c)
		return true
	})
	if err != nil {
		return err
	}
	if err := s.tx.replaceRecords("", "", all); err != nil {
		return err
	}
	return s.commit(&Changes{}, map[string]int{})
}

// clearSpace deletes a small keyspace.
func clearSpace(db *pebble.DB, batch *pebble.Batch, space byte) error {
	return record.Scan(db, []byte{space}, []byte{space + 1}, func(key, _ []byte) error { return batch.Delete(key, nil) })
}

// ReplacedAt returns the index at which a backup last replaced the state; 0: none did.
func (m *Machine) ReplacedAt() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.replacedAt
}
