package fsm

import (
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

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
	meta := &x.m.meta
	x.dropPending()
	x.dropUpload() // the primary would have removed it
	meta.State.NextSeq = afterGap(meta.State.NextSeq)
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
		return 0, fmt.Errorf("the state was replaced %d times, and a standby of it promoted %d times: with one more, tokens of old reservations could be valid again. Export the jobs, and import them into a new cluster", m.Replaced.Count-1, m.Standby.GetPromotions())
	}
	return uint32(floor), nil
}
