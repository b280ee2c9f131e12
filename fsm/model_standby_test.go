package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// The model is never a standby; standby_test.go has machines that are.
func init() {
	modelOps["follow_log"] = modelOp{
		apply: func(_ *model, op *jobpb.Op, r *jobpb.Result) {
			r.Code = jobpb.Code_CONDITION_FAILED
			if op.GetFollowLog().Primary == "" {
				r.Code, r.Details = jobpb.Code_INVALID, &jobpb.Details{Field: "primary"}
			}
		},
		some: func(s *simulation) *jobpb.Op {
			f := &jobpb.FollowLog{Entries: []*jobpb.FollowedEntry{{Index: 1 + s.rng.Uint64N(9), Term: 1}}}
			if s.rng.IntN(3) > 0 {
				f.Primary = fmt.Sprintf("cluster-%d", s.rng.IntN(2))
			}
			return &jobpb.Op{Kind: &jobpb.Op_FollowLog{FollowLog: f}}
		},
	}
	modelOps["promote_standby"] = modelOp{
		apply: func(_ *model, _ *jobpb.Op, r *jobpb.Result) { r.Code = jobpb.Code_CONDITION_FAILED },
		some:  func(*simulation) *jobpb.Op { return opPromote() },
	}
}

func opPromote() *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_PromoteStandby{PromoteStandby: &jobpb.PromoteStandby{}}}
}
