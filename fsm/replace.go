package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// A backup replaces the state of a running cluster in two steps. The leader receives it
// beside its live state, checks it and ends its reservations: it is staged. That takes as
// long as the state is large, and touches nothing. Then the staged state takes the place of the
// live one, at an entry of the log (Replace): the leader's Raft makes an index for it, and the
// other nodes get the state as a snapshot at that index. So an entry is applied either to the
// old state or to the new one, on all nodes alike.
//
// The leader has the new state before a majority has it, so it could still be lost with the
// leader. It is unconfirmed until an entry after it is applied. Until then nobody may read it.

// replaced is how a backup last replaced the state of a running cluster. Its zero value: never.
type replaced struct {
	count uint32 // how often, in this cluster and those that its state comes from
	index uint64 // of the log; of the cluster in which it was
}

const replacedLen = 1 + 4 + 8

func (p replaced) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, formatVersion), p.count)
	return binary.BigEndian.AppendUint64(b, p.index)
}

func decodeReplaced(b []byte) (p replaced, err error) {
	if err := checkVersion("record of a replacement", b, formatVersion); err != nil {
		return replaced{}, err
	}
	if len(b) != replacedLen {
		return replaced{}, fmt.Errorf("record of a replacement of %d bytes: %w", len(b), errShort)
	}
	return replaced{count: binary.BigEndian.Uint32(b[1:]), index: binary.BigEndian.Uint64(b[5:])}, nil
}

// generationsOfOne is how many generations the tokens of a job have between two replacements:
// more than it is reserved in that time.
const generationsOfOne = 1 << 20

// Staged is a state that may replace a machine's. It is for one goroutine; end it with Abort,
// or pass it to Replace.
type Staged struct {
	*Machine // nobody applies entries to it

	receiver  *Receiver
	count     uint32
	resetAuth bool
}

// Stage opens what r received, a Receiver of this machine, as a state that may replace the
// machine's. It must be the state at want.Index and want.Term. It reads every record once. It
// may be called from any goroutine. On an error r is aborted.
func (m *Machine) Stage(r *Receiver, want Applied) (*Staged, error) {
	s, err := m.stage(r, want)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stage a state: %w", err), r.Abort())
	}
	return s, nil
}

func (m *Machine) stage(r *Receiver, want Applied) (*Staged, error) {
	if err := m.checkReceived(r, want); err != nil {
		return nil, err
	}
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

// Abort removes the staged state. After Replace it does nothing.
func (s *Staged) Abort() error { return errors.Join(s.close(false), s.receiver.Abort()) }

// Restoration says how a staged state changes.
type Restoration struct {
	// ShiftMS moves all instants that are counted from the clock: the state continues as if no
	// time had passed since the backup. 0: time has passed.
	ShiftMS int64
	// ResetAuth removes all tokens and their settings. Otherwise those of the running cluster
	// stay.
	ResetAuth bool
}

// Restore ends the reservations of a staged state, brings it to the version of the machine that
// it is to replace, and moves its instants. It reads all jobs, in bounded memory. After an error
// the staged state must be aborted.
func (s *Staged) Restore(live *Machine, o Restoration) error {
	version := live.Version()
	if s.Version() > version {
		return fmt.Errorf("the backup was made at cluster version %d, and this cluster has version %d: upgrade its nodes first", s.Version(), version)
	}
	was, err := live.replacedBefore()
	if err != nil {
		return err
	}
	s.count, s.resetAuth = max(was, s.meta.replaced.count)+1, o.ResetAuth
	s.tx.replies = false
	if s.follows() { // a backup of a standby
		s.tx.endStandby()
	}
	s.tx.keepStandby(live.Standby())
	s.meta.replaced.count = s.count
	if err := s.raiseTo(version); err != nil {
		return err
	}
	return s.tx.restore(o.ShiftMS, s.meta.generationFloor())
}

// keepStandby takes over what the state that is to be replaced remembers of a primary; nil: it has
// none.
func (x *tx) keepStandby(live *jobpb.StandbyState) {
	if live == nil {
		return
	}
	promotions := max(live.Promotions, x.m.meta.standby.GetPromotions())
	x.m.meta.standby, x.standbyChanged = proto.CloneOf(live), true
	x.m.meta.standby.Promotions = promotions
}

// replacedBefore returns how often the machine's state was replaced.
func (m *Machine) replacedBefore() (count uint32, err error) {
	v := m.View()
	err = v.read(func(r pebble.Reader) error {
		meta, err := readMeta(r)
		count = meta.replaced.count
		return err
	})
	return count, errors.Join(err, v.Close())
}

// raiseTo raises the cluster version of the state, and rewrites its records.
func (s *Staged) raiseTo(version uint32) error {
	for s.meta.version < version || s.meta.migrating != nil {
		var r jobpb.Result
		var err error
		if s.meta.migrating != nil {
			err = s.tx.migrate(&jobpb.Migrate{Max: newClusterStep}, &r)
		} else {
			err = s.tx.raiseVersion(&jobpb.RaiseVersion{To: s.meta.version + 1}, &r)
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

// Replace makes a staged state that of the machine, at an entry that the machine's log does not
// have: at has its index and term, and the Raft configuration in force there. The cluster's
// identity, its members, its version and the machine's clock stay, and its tokens unless they
// are reset. Like Apply it belongs to the one goroutine that applies. All views end. It blocks
// for some syncs and for opening the store.
//
// On an error that wraps ErrHalfInstalled the process must end. On any other the old state
// stays, unchanged, and s is aborted.
func (m *Machine) Replace(s *Staged, at Applied) error {
	err := m.checkStaged(s, at)
	if err == nil {
		err = s.takeOver(m, at)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return errors.Join(fmt.Errorf("replace the state: %w", err), s.receiver.Abort())
	}
	return m.swapTo(s.receiver)
}

func (m *Machine) checkStaged(s *Staged, at Applied) error {
	now := m.Applied()
	switch {
	case m.store == nil || s.store == nil:
		return errClosed
	case s.count == 0:
		return errors.New("the staged state was not restored")
	case at.Index <= now.Index || at.Term < now.Term:
		return fmt.Errorf("the state is at entry %d of term %d, and cannot be replaced at entry %d of term %d", now.Index, now.Term, at.Index, at.Term)
	case s.meta.version != m.meta.version || m.meta.replaced.count >= s.count:
		return errors.New("the cluster has changed since the backup was staged")
	}
	return nil
}

// keptSpaces are the keyspaces of a running cluster that stay.
var keptSpaces = [...]byte{spaceAdmission, spaceForgotten, spaceRemoved}

// takeOver gives the staged state what stays of the running cluster, and makes it durable.
func (s *Staged) takeOver(live *Machine, at Applied) error {
	batch := s.store.db.NewBatch()
	defer func() { _ = batch.Close() }() // it is committed, or discarded
	spaces := keptSpaces[:]
	if !s.resetAuth {
		spaces = append(spaces, spaceToken)
	} else if err := clearSpace(s.store.db.DB, batch, spaceToken); err != nil {
		return err
	}
	for _, space := range spaces {
		if err := clearSpace(s.store.db.DB, batch, space); err != nil {
			return err
		}
		err := scan(live.store.db, []byte{space}, []byte{space + 1}, func(key, value []byte) error { return batch.Set(key, value, nil) })
		if err != nil {
			return err
		}
	}
	state := s.meta.state
	state.index, state.term = at.Index, at.Term
	state.clockMS = max(state.clockMS, live.meta.state.clockMS)
	state.nextSeq = max(state.nextSeq, live.meta.state.nextSeq)
	mark := durableMark{index: at.Index, term: at.Term, configuration: at.Configuration, configurationIndex: at.ConfigurationIndex}
	clock := clockReset{epoch: live.meta.reset.epoch}
	for key, value := range map[string][]byte{
		string(keyState): state.append(nil), string(keyCluster): []byte(live.meta.clusterID), string(keyClock): clock.append(nil), string(keyDurable): mark.append(nil),
		string(keyConfiguration): appendConfiguration(nil, at.ConfigurationIndex, at.Configuration),
		string(keyReplaced):      replaced{count: s.count, index: at.Index}.append(nil),
	} {
		must(batch.Set([]byte(key), value, nil))
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	return s.store.db.Flush()
}

// clearSpace deletes a small keyspace.
func clearSpace(db *pebble.DB, batch *pebble.Batch, space byte) error {
	return scan(db, []byte{space}, []byte{space + 1}, func(key, _ []byte) error { return batch.Delete(key, nil) })
}

// Unconfirmed reports whether a backup has replaced the state and no entry after it was applied
// yet: then the state may still be lost with this node.
func (m *Machine) Unconfirmed() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.replacedAt != 0 && m.public.applied.Index <= m.public.replacedAt
}

// ReplacedAt returns the index at which a backup last replaced the state; 0: none did.
func (m *Machine) ReplacedAt() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.replacedAt
}
