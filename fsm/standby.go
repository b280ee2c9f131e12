package fsm

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// A standby applies the entries of its primary's log as the primary did: with their times and
// terms, in their order, without a gap. So the state is the primary's at the same entry, except
// for what belongs to the cluster itself (standby.go). The entries are in operations of the
// standby's own log, whose entries have no time while it follows.
//
// The entries of one FollowLog may need several batches. A batch that is not the last has the
// index of the entry before it, and the position in the primary's log: after a crash the
// FollowLog is applied again, and what was applied of it is skipped.

// followLog checks a FollowLog. Machine.follow applies it, after the entry that has it.
func (x *tx) followLog(op *jobpb.FollowLog, r *jobpb.Result) error {
	s := x.m.meta.Standby
	switch {
	case !x.m.follows():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "this cluster is not a standby")
	case op.Primary != s.Primary:
		return x.refuse(r, jobpb.Code_CLUSTER_MISMATCH, "the standby follows cluster %q, not %q", s.Primary, op.Primary)
	case !x.ops.Alone():
		return x.refuse(r, jobpb.Code_INVALID, "the entries of a primary come alone in an entry")
	}
	if len(op.Entries) > 0 {
		if first := op.Entries[0]; first.Index > s.Index+1 {
			return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the standby has entry %d, and entry %d would leave a gap", s.Index, first.Index)
		}
	}
	for _, e := range op.Entries {
		if e.Index > s.Index && e.Term < s.Term {
			return x.refuse(r, jobpb.Code_CONDITION_FAILED,
				"entry %d has term %d, which is before the term %d of entry %d", e.Index, e.Term, s.Term, s.Index)
		}
	}
	x.toFollow = op
	return nil
}

// follow applies the FollowLog of the entry e, if it has one. before is the point of the state
// before e.
func (m *Machine) follow(before Entry, e Entry, changes *Changes, changed map[string]int) error {
	x := m.tx
	op := x.toFollow
	if op == nil {
		return nil
	}
	x.toFollow = nil
	replies := x.replies
	x.replies, x.followed = false, true // nobody here waits for the results
	defer func() { x.replies, x.followed = replies, false }()

	meta := &m.meta
	meta.State.Index, meta.State.Term = before.Index, before.Term
	for _, f := range op.Entries {
		if f.Index <= meta.Standby.Index {
			continue
		}
		if err := m.followEntry(Entry{Index: f.Index, Term: f.Term, Data: f.Data}, changes, changed); err != nil {
			return fmt.Errorf("the primary's entry %d: %w", f.Index, err)
		}
		x.setStandby(func(s *jobpb.StandbyState) { s.Index, s.Term = f.Index, f.Term })
		if x.mustCommit() {
			if err := m.commit(changes, changed); err != nil {
				return err
			}
		}
	}
	x.setStandby(func(s *jobpb.StandbyState) {
		s.SeenIndex, s.SeenMs, s.CaughtUpMs = max(s.SeenIndex, op.SeenIndex, s.Index), max(s.SeenMs, op.SeenMs), max(s.CaughtUpMs, op.CaughtUpMs)
	})
	meta.State.Index, meta.State.Term = e.Index, e.Term
	return nil
}

// followEntry applies one entry of the primary's log.
func (m *Machine) followEntry(e Entry, changes *Changes, changed map[string]int) error {
	if len(e.Data) == 0 {
		return nil // one of Raft's own, or a configuration of the primary
	}
	x := m.tx
	nowMS, err := x.begin(e)
	if err != nil {
		return err
	}
	if err := m.effectsBefore(e, nowMS, changes, changed); err != nil {
		return err
	}
	_, err = x.operations(e.Term, nowMS)
	return err
}

// setStandby changes what is remembered of the primary. Other goroutines read the state that
// was published.
func (x *tx) setStandby(change func(*jobpb.StandbyState)) {
	if !x.standbyChanged {
		x.m.meta.Standby, x.standbyChanged = proto.CloneOf(x.m.meta.Standby), true
	}
	change(x.m.meta.Standby)
}

func (x *tx) writeStandby() error {
	if !x.standbyChanged {
		return nil
	}
	b, err := record.AppendStandby(nil, x.m.meta.Standby)
	if err != nil {
		return err
	}
	must(x.batch.Set(record.KeyStandby, b, nil))
	return nil
}

// follows reports whether the state changes only by what the primary did.
func (m *Machine) follows() bool {
	return m.meta.Standby.GetMode() == jobpb.StandbyMode_STANDBY_FOLLOWING
}

// Standby returns what the state remembers of its primary; nil: it never was a standby. The
// caller must not change it.
func (m *Machine) Standby() *jobpb.StandbyState {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.standby
}

// Follows reports whether the state is that of a standby, as of the last commit: it changes
// only by what the primary did.
func (m *Machine) Follows() bool { return m.following.Load() }

// promoteStandby ends the mode of a standby. What was committed ahead is dropped: its consumers
// wait at the primary. The primary may have done more than this state has. So the seqs that it
// may have given since are skipped, and so are the generations of reservations (see
// generationFloor). Reservations in the state are those of the primary, and go on: whoever holds
// one can finish its job here, else it expires.
func (x *tx) promoteStandby(r *jobpb.Result) error {
	if !x.m.follows() {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "this cluster is not a standby, or was promoted already")
	}
	x.endStandby()
	return nil
}

func (x *tx) endStandby() {
	x.dropPending()
	x.dropUpload() // the primary would have removed it
	x.skipSeqs()
	x.setStandby(func(s *jobpb.StandbyState) {
		s.Mode, s.PromotedMs = jobpb.StandbyMode_STANDBY_PROMOTED, max(x.nowMS, x.clock(), 1)
		s.Promotions++
	})
	x.cluster = true
}

// generationStep is how many generations of each job a promotion skips: more often than that
// no job is reserved between the last entry that the standby has and the end of the primary.
const generationStep = 1 << 24

// generationFloor is below the generations of all reservations since the last promotion, or since
// a backup last replaced the state. Those that the old primary gave since the standby's last entry,
// and those of the state that was replaced, are below it. So their tokens never name a reservation
// of this state.
func generationFloor(m *record.Meta) uint32 {
	return m.Standby.GetPromotions()*generationStep + m.Replaced.Count*generationsOfOne
}

// maxFloor leaves generations for the reservations that are still to come.
const maxFloor = 1<<32 - 1<<28

// checkedFloor returns generationFloor, or an error if generations would begin again.
func checkedFloor(m *record.Meta) (uint32, error) {
	floor := uint64(m.Standby.GetPromotions())*generationStep + uint64(m.Replaced.Count)*generationsOfOne
	if floor > maxFloor {
		return 0, fmt.Errorf(
			"the state was replaced %d times, and a standby of it promoted %d times: with one more, tokens of old reservations could be valid again. Export the jobs, and import them into a new cluster",
			m.Replaced.Count-1, m.Standby.GetPromotions())
	}
	return uint32(floor), nil
}

// TakenByStandby reports whether a standby does an operation of its own log, not of its
// primary's.
func TakenByStandby(op *jobpb.Op) bool { return oplog.OfCluster(oplog.Number(op)) }

// offStandby reports whether a standby does not do the operation with this number. In that case
// r says why.
func (x *tx) offStandby(number uint64, r *jobpb.Result) bool {
	if x.followed {
		return oplog.OfCluster(number)
	}
	if oplog.OfCluster(number) {
		return false
	}
	_ = x.refuse(r, jobpb.Code_STANDBY, "%s", RefusedByStandby)
	return true
}

// RefusedByStandby is the message of what a standby refuses.
const RefusedByStandby = "this cluster is a standby: it only follows its primary, and can be read; send this to the primary, or end the mode with \"tarry standby promote\""
