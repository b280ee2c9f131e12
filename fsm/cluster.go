package fsm

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// setCluster sets the cluster's id and sharding, once.
func (x *tx) setCluster(op *jobpb.SetCluster, r *jobpb.Result) error {
	meta := &x.m.meta
	switch meta.ClusterID {
	case op.ClusterId:
		return x.sameSharding(op.Sharding, r)
	case "":
		if ok, err := x.setSharding(op.Sharding, r); err != nil || !ok {
			return err
		}
		meta.ClusterID = strings.Clone(op.ClusterId)
		must(x.batch.Set(record.KeyCluster, []byte(meta.ClusterID), nil))
		x.cluster, x.named = true, true
		return nil
	default:
		return x.refuse(r, jobpb.Code_CLUSTER_MISMATCH, "the cluster's id is %q; it cannot become %q", meta.ClusterID, op.ClusterId)
	}
}

// forgetMember records that a Raft server was removed for good, and its node with it if the
// operation names one.
func (x *tx) forgetMember(op *jobpb.ForgetMember, r *jobpb.Result) error {
	if op.NodeId != "" {
		if removed := x.m.removed; removed[op.NodeId] == 0 && len(removed) >= x.limits().MaxRemovedNodes {
			return x.refuse(r, jobpb.Code_CONDITION_FAILED,
				"%d nodes were removed and not admitted again, which is the limit; admit those that cannot come back, such as those whose certificates have ended",
				len(removed))
		}
		x.removeNode(op.NodeId)
	}
	id := strings.Clone(op.ServerId)
	must(x.batch.Set(x.nameKey(record.SpaceForgotten, id), nil, nil))
	x.forgot = append(x.forgot, id)
	x.cluster = true
	return nil
}

// removeNode records that a node was removed, once.
func (x *tx) removeNode(id string) {
	if x.m.removed[id] != 0 {
		return
	}
	at := max(x.clock(), 1)
	x.value = record.AppendRemoved(x.value[:0], at)
	must(x.batch.Set(x.nameKey(record.SpaceRemoved, id), x.value, nil))
	// Other goroutines read the map that was published.
	removed := maps.Clone(x.m.removed)
	removed[strings.Clone(id)] = at
	x.m.removed, x.cluster = removed, true
}

// admitNode lets a node that was removed join again.
func (x *tx) admitNode(op *jobpb.AdmitNode, r *jobpb.Result) error {
	if x.m.removed[op.NodeId] == 0 {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "node %.64q is not among the nodes that were removed", op.NodeId)
	}
	x.unrecordRemoval(op.NodeId)
	return nil
}

func (x *tx) unrecordRemoval(nodeID string) {
	must(x.batch.Delete(x.nameKey(record.SpaceRemoved, nodeID), nil))
	removed := maps.Clone(x.m.removed)
	delete(removed, nodeID)
	x.m.removed, x.cluster = removed, true
}

// putInvitation makes an invitation in place of those that have expired.
func (x *tx) putInvitation(op *jobpb.PutInvitation, r *jobpb.Result) error {
	made, clock := proto.CloneOf(op.Invitation), x.clock()
	if v := invitationOf(x.m.admission, made.Id); v != nil {
		if !bytes.Equal(v.PublicKey, made.PublicKey) || v.NodeId != made.NodeId {
			return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there is another invitation with the id %q", v.Id)
		}
		r.Existing, r.DueMs = true, v.ExpiresMs
		return nil
	}
	next := proto.CloneOf(x.m.admission)
	next.Invitations = slices.DeleteFunc(next.Invitations, func(v *jobpb.Invitation) bool { return v.ExpiresMs <= clock })
	if n := len(next.Invitations); n >= x.limits().MaxInvitations {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "there are %d invitations that have not expired, which is the limit; revoke some", n)
	}
	made.CreatedMs, made.ExpiresMs = clock, clock+op.ExpiresInMs
	at, _ := slices.BinarySearchFunc(next.Invitations, made.Id, byInvitationID)
	next.Invitations = slices.Insert(next.Invitations, at, made)
	r.DueMs = made.ExpiresMs
	return x.useAdmission(next)
}

// endInvitation revokes an invitation, or records its use. The leader adds a server only after
// that: so no second one gets in by the same invitation, whoever leads.
func (x *tx) endInvitation(op *jobpb.EndInvitation, r *jobpb.Result) error {
	v := invitationOf(x.m.admission, op.Id)
	if v == nil {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "there is no invitation with the id %.40q", op.Id)
	}
	next := proto.CloneOf(x.m.admission)
	if op.ServerId == "" {
		next.Invitations = slices.DeleteFunc(next.Invitations, func(v *jobpb.Invitation) bool { return v.Id == op.Id })
		return x.useAdmission(next)
	}
	switch {
	case v.ServerId == op.ServerId:
		r.Existing = true // the leader that recorded it did not add the server
		return nil
	case v.ServerId != "":
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "invitation %q was used by server %q", v.Id, v.ServerId)
	case v.ExpiresMs <= x.clock():
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "invitation %q has expired", v.Id)
	case v.NodeId != "" && v.NodeId != nodeOfServer(op.ServerId):
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "invitation %q is for node %q, not for server %.64q", v.Id, v.NodeId, op.ServerId)
	}
	used := invitationOf(next, op.Id)
	used.ServerId, used.UsedMs = op.ServerId, max(x.clock(), 1)
	return x.useAdmission(next)
}

func (x *tx) setAdmission(mode jobpb.AdmissionMode) error {
	if mode == x.m.admission.Mode {
		return nil
	}
	next := proto.CloneOf(x.m.admission)
	next.Mode = mode
	return x.useAdmission(next)
}

// useAdmission puts next into force, for the operations after this one.
func (x *tx) useAdmission(next *jobpb.Admission) error {
	encoded, err := record.EncodeAdmission(next)
	if err != nil {
		return err
	}
	must(x.batch.Set(record.KeyAdmission, encoded, nil))
	// Other goroutines read the value that was published, and next aliases the entry.
	x.m.admission, err = record.DecodeAdmission(encoded)
	x.cluster = true
	return err
}

// setInvitationsBack leaves an invitation what was left of its time when the clock is set back.
func (x *tx) setInvitationsBack() error {
	if len(x.m.admission.Invitations) == 0 {
		return nil
	}
	back, clock := x.m.meta.Reset.Back, x.clock()
	next := proto.CloneOf(x.m.admission)
	for _, v := range next.Invitations {
		v.CreatedMs, v.ExpiresMs = min(v.CreatedMs, clock), v.ExpiresMs-back
		if v.ServerId != "" {
			v.UsedMs = max(min(v.UsedMs, clock), 1)
		}
	}
	return x.useAdmission(next)
}

// dropInvitations deletes those of a restored state: one may have been used since the backup.
func (x *tx) dropInvitations() error {
	if len(x.m.admission.Invitations) == 0 {
		return nil
	}
	return x.useAdmission(&jobpb.Admission{Mode: x.m.admission.Mode})
}

// invitationOf returns an invitation by its id; nil: there is none.
func invitationOf(a *jobpb.Admission, id string) *jobpb.Invitation {
	at, found := slices.BinarySearchFunc(a.Invitations, id, byInvitationID)
	if !found {
		return nil
	}
	return a.Invitations[at]
}

func byInvitationID(v *jobpb.Invitation, id string) int { return strings.Compare(v.Id, id) }

// nodeOfServer returns the node of a Raft server, whose id is the node's, a dot and a text
// without one.
func nodeOfServer(id string) string { return id[:max(strings.LastIndexByte(id, '.'), 0)] }

// Admission returns who may become a member, as of the last commit. The caller must not change
// it.
func (m *Machine) Admission() *jobpb.Admission {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.admission
}
