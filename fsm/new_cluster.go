package fsm

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// A state enters a new cluster when a backup is restored, or when the only node that is
// left of a cluster continues alone. That happens outside of the log, on a machine that no
// Raft drives: the new cluster's log begins after it, so no other node ever has to
// repeat it.

// NewCluster is the cluster that a state enters.
type NewCluster struct {
	ID string // other than that of any cluster before
	// NodeID is the node that the cluster begins with. It is a member, even if it was removed
	// from the cluster before.
	NodeID string
	// Index and Term are the point at which its log begins; Index is behind everything that
	// is applied. Configuration is its first Raft configuration.
	Index, Term   uint64
	Configuration []byte
	// Behind is set for a state that gets the end of the old cluster's log from another node of
	// the new one: Index and Term are the last entry that it has, and only the cluster and the
	// configuration change.
	Behind bool
	// Restored is set for a state that comes from a backup: its reservations end, and its
	// seqs skip those that the cluster it comes from may have given since.
	Restored bool
	// Standby is set for a state that comes from a backup and is to follow the cluster that it
	// comes from: it stays as it is, and its position in that cluster's log is its last entry.
	Standby bool
	// ShiftMS, of a restored state, moves the clock and all instants that are counted from
	// it: the state continues as if no time had passed since the backup. 0: time has passed.
	ShiftMS int64
	// ResetAuth, of a restored state, removes its tokens and their settings: nobody needs a
	// token, and the first one can be made.
	ResetAuth bool
}

const (
	// seqGap is how many seqs a restored state skips: more than a cluster gives in a year at
	// 30,000 adds a second. So no id that a client still has names another job. It is a multiple of
	// slot.Count, so the seqs after it are of the same shard.
	seqGap = 1 << 40
	// maxNextSeq ends the gaps: beyond it seqs are not exact numbers in JSON.
	maxNextSeq = 1 << 53

	newClusterStep = 1000 // jobs of one batch
)

// EnterCluster makes the state that of a new cluster, and durable. It reads all jobs of a
// restored state, in bounded memory. After an error the state may be changed in part; a
// later call for the same state completes it, except for a restored state, which must be
// discarded.
func (m *Machine) EnterCluster(c NewCluster) error {
	if m.broken != nil {
		return m.broken
	}
	applied := m.Applied()
	if c.Behind && (c.Restored || c.Index != applied.Index || c.Term != applied.Term) {
		return fmt.Errorf(
			"a state that is behind stays at entry %d of term %d, and cannot be at entry %d of term %d",
			applied.Index, applied.Term, c.Index, c.Term)
	}
	if !c.Behind && (c.Index <= applied.Index || c.Term < applied.Term) {
		return fmt.Errorf(
			"a cluster cannot begin at entry %d of term %d: the state is at entry %d of term %d", c.Index, c.Term, applied.Index, applied.Term)
	}
	if c.ID == "" || c.ID == m.ClusterID() {
		return errors.New("a new cluster needs an id of its own")
	}
	if err := m.checkStandby(c); err != nil {
		return err
	}
	if err := m.enterCluster(c); err != nil {
		m.broken = fmt.Errorf("the state machine stopped: %w", err)
		return m.broken
	}
	return m.MarkDurable(c.Index, c.Term, c.Configuration, c.Index)
}

func (m *Machine) enterCluster(c NewCluster) error {
	x := m.tx
	x.replies = false
	meta, from := &m.meta, m.Applied()
	switch {
	case c.Standby:
		if err := x.dropInvitations(); err != nil {
			return err
		}
		meta.Standby = &jobpb.StandbyState{
			Mode: jobpb.StandbyMode_STANDBY_FOLLOWING, Primary: meta.ClusterID, Index: from.Index, Term: from.Term,
			SeenIndex: from.Index, CaughtUpMs: meta.State.ClockMS, Promotions: meta.Standby.GetPromotions(),
		}
		x.standbyChanged = true
	case c.Restored:
		if m.follows() { // a backup of a standby
			x.endStandby()
		}
		if err := errors.Join(x.restoreAuth(c.ResetAuth), x.dropInvitations(), x.restore(c.ShiftMS, 0)); err != nil {
			return err
		}
	}
	if m.removed[c.NodeID] != 0 {
		x.unrecordRemoval(c.NodeID)
	}
	x.beginConfigHistory()
	meta.State.Index, meta.State.Term = c.Index, c.Term
	meta.ClusterID = c.ID
	must(x.batch.Set(record.KeyCluster, []byte(c.ID), nil))
	if err := x.forgetFirstVoters(); err != nil {
		return err
	}
	meta.Configuration, meta.ConfigurationIndex = append([]byte(nil), c.Configuration...), c.Index
	x.value = record.AppendConfiguration(x.value[:0], c.Index, c.Configuration)
	must(x.batch.Set(record.KeyConfiguration, x.value, nil))
	x.cluster = true
	return m.commit(&Changes{}, map[string]int{})
}

// checkStandby returns an error if the state cannot become that of a standby.
func (m *Machine) checkStandby(c NewCluster) error {
	switch {
	case !c.Standby:
		return nil
	case c.Restored || c.Behind:
		return errors.New("a standby keeps its state as it is")
	case m.follows():
		return errors.New("the backup is of a standby: make one of its primary")
	case m.meta.Version < standbyVersion:
		return fmt.Errorf(
			"the backup was made at cluster version %d, and a standby needs %d: complete the upgrade of the primary, and make another backup",
			m.meta.Version, standbyVersion)
	case m.meta.ClusterID == "":
		return errors.New("the backup names no cluster")
	}
	return nil
}

// standbyVersion is the cluster version that has FollowLog.
const standbyVersion = 2

// skipSeqs skips the seqs that another cluster may have given since.
func (x *tx) skipSeqs() {
	next := &x.m.meta.State.NextSeq
	last := maxNextSeq - (maxNextSeq-*next)%x.m.meta.Stride() // of the same shard
	*next = min(*next+seqGap, max(*next, last))
}

// restore ends the reservations of a state and moves its instants by shift. If generation is
// not 0, it becomes that of every job: the tokens of all reservations before it are stale.
func (x *tx) restore(shift int64, generation uint32) error {
	meta := &x.m.meta
	// Its consumers are those of the old cluster.
	x.dropPending()
	x.dropUpload()
	if err := x.endReset(); err != nil {
		return err
	}
	x.skipSeqs()
	meta.State.ClockMS = min(meta.State.ClockMS+shift, maxClockMS)
	for _, t := range x.m.topics {
		x.touch(t) // fills its bucket
		if shift != 0 {
			t.shift(shift)
		}
	}
	if err := x.m.commit(&Changes{}, map[string]int{}); err != nil {
		return err
	}
	for next := uint64(1); ; {
		done, err := x.eachJob(next, meta.State.NextSeq, newClusterStep, func(rec *record.Job) error {
			next = rec.Seq + 1
			return x.restoreJob(rec, shift, generation)
		})
		if err != nil {
			return err
		}
		if err := x.gatherDueChanges(); err != nil {
			return err
		}
		if err := x.m.commit(&Changes{}, map[string]int{}); err != nil {
			return err
		}
		if done {
			return nil
		}
	}
}

// endReset changes the jobs that a reset of the clock has not changed yet, as the Advances that the
// backup came before.
func (x *tx) endReset() error {
	for x.m.meta.Reset.UnderWay() {
		if err := errors.Join(x.setJobsBack(newClusterStep), x.gatherDueChanges()); err != nil {
			return err
		}
		if err := x.m.commit(&Changes{}, map[string]int{}); err != nil {
			return err
		}
	}
	return nil
}

// restoreAuth ends the texts that tokens had before their last rotation, or removes all.
// What was revoked since the backup is valid again: only the operator knows of it.
func (x *tx) restoreAuth(reset bool) error {
	var kept []*auth.Token
	for t := range x.m.auth.All() {
		key := x.nameKey(record.SpaceToken, t.Id)
		switch {
		case reset:
			must(x.batch.Delete(key, nil))
		case len(t.OldHash) > 0:
			set := proto.CloneOf(t.Token)
			set.OldHash, set.OldUntilMs = nil, 0
			encoded, err := record.EncodeToken(set)
			if err != nil {
				return err
			}
			must(x.batch.Set(key, encoded, nil))
			kept = append(kept, auth.NewToken(set))
		}
	}
	switch {
	case reset:
		must(x.batch.Delete(record.KeyAuth, nil))
		x.m.auth, x.authChanged = auth.NewState(0, false, nil, nil), true
	case len(kept) > 0:
		x.m.auth, x.authChanged = x.m.auth.WithTokens(x.m.auth.Revision, kept), true
	}
	return nil
}

// shift moves a topic's own instants.
func (t *topic) shift(by int64) {
	t.EmptySince += by
	if t.Paused() && t.PausedUntil != job.NeverMS {
		t.PausedUntil += by
	}
}

// restoreJob ends the reservation of a job, as if it had expired, and moves its instants.
func (x *tx) restoreJob(rec *record.Job, shift int64, generation uint32) error {
	t, err := x.topicOf(rec)
	if err != nil {
		return err
	}
	list, err := x.listOf(t, rec)
	if err != nil {
		return err
	}
	timedOut := list == record.ListReserved
	if timedOut {
		if err := x.timeOut(t, rec.Seq, rec.Seq); err != nil {
			return err
		}
		if list, err = x.listOf(t, rec); err != nil {
			return err
		}
	}
	fences := generation != 0 && list != record.ListEnded
	if fences {
		rec.Status.Generation, rec.Status.TimedOut = generation, false
	}
	// An instant that the producer named does not move. Those of a job that has just timed out are
	// counted from the clock that was moved.
	named := list == record.ListDelayed && rec.Spec.DueRequest != 0 && rec.Status.DueMS == rec.Spec.DueMS
	if shift == 0 || timedOut || list == record.ListDead || named {
		if fences {
			x.save(rec)
		}
		return nil
	}
	return x.move(t, rec, list, list, func(s *record.Status) {
		if list == record.ListEnded {
			until := s.RetainedUntilMS() + shift + retentionStepMS - 1
			s.SetEnded(s.Phase, s.EndedMS(), until-until%retentionStepMS)
			return
		}
		s.DueMS = min(s.DueMS+shift, maxClockMS)
	})
}
