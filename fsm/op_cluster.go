package fsm

import (
	"maps"
	"strings"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// setCluster sets the cluster's id, once.
func (x *tx) setCluster(op *jobpb.SetCluster, r *jobpb.Result) error {
	meta := &x.m.meta
	switch meta.ClusterID {
	case op.ClusterId:
		return nil
	case "":
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
			return x.refuse(r, jobpb.Code_CONDITION_FAILED, "%d nodes were removed and not admitted again, which is the limit; admit those that cannot come back, such as those whose certificates have ended", len(removed))
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
