package fsm

import "tarry/job/jobpb"

func init() {
	modelOps["release_topic"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.releaseTopic(op.GetReleaseTopic(), r) },
		some: func(s *simulation) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{
				Topic: s.topic(), Consumer: s.consumer(), Reason: []string{"", "gone"}[s.rng.IntN(2)],
				Max: uint32(s.pick(0, 1, 3, 100, 10_001)), Sweep: s.sweep(),
			}}}
		},
	}
}

func (m *model) releaseTopic(op *jobpb.ReleaseTopic, r *jobpb.Result) {
	t := m.topics[op.Topic]
	switch {
	case op.Max == 0 || op.Max > 10_000 || badSweep(m, op.Sweep) || len(op.Consumer) > 64:
		r.Code = jobpb.Code_INVALID
	case t == nil:
	case m.settings[op.Topic].GetRequireToken():
		r.Code = jobpb.Code_TOKEN_REQUIRED
	default:
		held := func(j *modelJob) bool { return op.Consumer == "" || j.ReservedBy == op.Consumer }
		m.sweep(op.Topic, jobpb.State_STATE_RESERVED, op.Max, op.Sweep, r, held, func(j *modelJob, _ int64, _ uint64) {
			m.giveBack(&jobpb.Release{Reason: op.Reason}, t, j)
		})
	}
}
