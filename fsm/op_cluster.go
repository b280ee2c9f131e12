package fsm

import (
	"strings"

	"tarry/job/jobpb"
)

// setCluster sets the cluster's id, once.
func (x *tx) setCluster(op *jobpb.SetCluster, r *jobpb.Result) error {
	meta := &x.m.meta
	switch meta.clusterID {
	case op.ClusterId:
		return nil
	case "":
		meta.clusterID = strings.Clone(op.ClusterId)
		must(x.batch.Set(keyCluster, []byte(meta.clusterID), nil))
		x.cluster = true
		return nil
	default:
		return x.refuse(r, jobpb.Code_CLUSTER_MISMATCH, "the cluster's id is %q; it cannot become %q", meta.clusterID, op.ClusterId)
	}
}

// forgetMember records that a Raft server was removed for good.
func (x *tx) forgetMember(op *jobpb.ForgetMember, r *jobpb.Result) error {
	id := strings.Clone(op.ServerId)
	must(x.batch.Set(x.nameKey(spaceForgotten, id), nil, nil))
	x.forgot = append(x.forgot, id)
	x.cluster = true
	return nil
}
