package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

func init() {
	modelOps["admit_node"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.admitNode(op.GetAdmitNode(), r) },
		some: func(s *simulation) *jobpb.Op {
			node := fmt.Sprintf("node-%d", s.rng.IntN(5))
			if s.rng.IntN(2) == 0 {
				return opRemove(fmt.Sprintf("server-%d", s.rng.IntN(5)), node)
			}
			return opAdmit(node)
		},
	}
}

// modelMaxRemoved is the limit on removed nodes of all machines that are compared with a
// model.
const modelMaxRemoved = 3

func (m *model) forgetMember(op *jobpb.ForgetMember, r *jobpb.Result) {
	if op.NodeId != "" {
		if !m.removed[op.NodeId] && len(m.removed) >= modelMaxRemoved {
			r.Code = jobpb.Code_CONDITION_FAILED
			return
		}
		m.removed[op.NodeId] = true
	}
	m.forgotten[op.ServerId] = true
}

func (m *model) admitNode(op *jobpb.AdmitNode, r *jobpb.Result) {
	if !m.removed[op.NodeId] {
		r.Code = jobpb.Code_NOT_FOUND
		return
	}
	delete(m.removed, op.NodeId)
}
