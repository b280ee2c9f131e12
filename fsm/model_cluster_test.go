package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/job"
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

// modelMaxInvitations is the limit on invitations of all machines that are compared with a
// model.
const modelMaxInvitations = 2

func init() {
	modelOps["put_invitation"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.putInvitation(op.GetPutInvitation(), r) },
		some: func(s *simulation) *jobpb.Op {
			op := opInvite(s.someInvitation(), []string{"", "", "n1"}[s.rng.IntN(3)], 1000*int64(1+s.rng.IntN(20)))
			if s.rng.IntN(10) == 0 {
				op.GetPutInvitation().Invitation.PublicKey[0]++
			}
			return op
		},
	}
	modelOps["end_invitation"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.endInvitation(op.GetEndInvitation(), r) },
		some: func(s *simulation) *jobpb.Op {
			server := []string{"", "n1.a", "n1.b", "n2.a"}[s.rng.IntN(4)]
			return opEndInvitation(s.someInvitation(), server)
		},
	}
	modelOps["set_admission"] = modelOp{
		apply: func(m *model, op *jobpb.Op, _ *jobpb.Result) { m.admission.Mode = op.GetSetAdmission().Mode },
		some:  func(s *simulation) *jobpb.Op { return opAdmission(jobpb.AdmissionMode(s.rng.IntN(2))) },
	}
}

func (s *simulation) someInvitation() string { return fmt.Sprintf("i%d", s.rng.IntN(4)) }

func (m *model) invitation(id string) *jobpb.Invitation {
	for _, v := range m.admission.Invitations {
		if v.Id == id {
			return v
		}
	}
	return nil
}

func (m *model) putInvitation(op *jobpb.PutInvitation, r *jobpb.Result) {
	if v := m.invitation(op.Invitation.Id); v != nil {
		if bytes.Equal(v.PublicKey, op.Invitation.PublicKey) && v.NodeId == op.Invitation.NodeId {
			r.Existing, r.DueMs = true, v.ExpiresMs
		} else {
			r.Code = jobpb.Code_CONDITION_FAILED
		}
		return
	}
	var valid []*jobpb.Invitation
	for _, v := range m.admission.Invitations {
		if v.ExpiresMs > m.clock {
			valid = append(valid, v)
		}
	}
	if len(valid) >= modelMaxInvitations {
		r.Code = jobpb.Code_CONDITION_FAILED
		return
	}
	made := proto.CloneOf(op.Invitation)
	made.CreatedMs, made.ExpiresMs = m.clock, m.clock+op.ExpiresInMs
	m.admission.Invitations = append(valid, made)
	slices.SortFunc(m.admission.Invitations, func(a, b *jobpb.Invitation) int { return cmp.Compare(a.Id, b.Id) })
	r.DueMs = made.ExpiresMs
}

func (m *model) endInvitation(op *jobpb.EndInvitation, r *jobpb.Result) {
	v := m.invitation(op.Id)
	node, _, _ := strings.Cut(op.ServerId, ".")
	switch {
	case v == nil:
		r.Code = jobpb.Code_NOT_FOUND
	case op.ServerId == "":
		m.admission.Invitations = slices.DeleteFunc(m.admission.Invitations, func(v *jobpb.Invitation) bool { return v.Id == op.Id })
	case v.ServerId == op.ServerId:
		r.Existing = true
	case v.ServerId != "" || v.ExpiresMs <= m.clock || v.NodeId != "" && v.NodeId != node:
		r.Code = jobpb.Code_CONDITION_FAILED
	default:
		v.ServerId, v.UsedMs = op.ServerId, m.clock
	}
}

// setInvitationsBack leaves each invitation the time that it had when the clock was set back.
func (m *model) setInvitationsBack(back int64) {
	for _, v := range m.admission.Invitations {
		v.CreatedMs, v.UsedMs, v.ExpiresMs = min(v.CreatedMs, m.clock), min(v.UsedMs, m.clock), v.ExpiresMs-back
	}
}

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
	// Nor is it a data group: config_group_test.go.
	modelOps["config_log"] = modelOp{
		apply: func(_ *model, op *jobpb.Op, r *jobpb.Result) {
			r.Code = jobpb.Code_CONDITION_FAILED
			if op.GetConfigLog().Epoch == 0 {
				r.Code, r.Details = jobpb.Code_INVALID, &jobpb.Details{Field: "epoch"}
			}
		},
		some: func(s *simulation) *jobpb.Op {
			c := &jobpb.ConfigLog{Epoch: s.rng.Uint64N(2), Changes: []*jobpb.ConfigChange{{}}}
			return &jobpb.Op{Kind: &jobpb.Op_ConfigLog{ConfigLog: c}}
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

// raiseVersion raises the cluster version by one.
func (m *model) raiseVersion(to uint32, r *jobpb.Result) {
	switch present := max(m.version, job.FirstVersion); {
	case to == present+1:
		m.version = to
	case to > present:
		r.Code = jobpb.Code_CONDITION_FAILED
	}
}
