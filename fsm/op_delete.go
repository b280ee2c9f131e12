package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// delete deletes a job in any state; with spare_reserved, a reserved one only with its
// token.
func (x *tx) delete(op *jobpb.Delete, r *jobpb.Result) error {
	rec, t, list, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if op.SpareReserved && list == record.ListReserved && op.Ref.GetGeneration() == 0 {
		return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved; only its holder can delete it", x.name(rec))
	}
	if ok, err := x.meets(op.Condition, t, rec, list, r); !ok || err != nil {
		return err
	}
	t.Deleted++
	return x.endJob(t, rec, list, jobpb.Event_DELETED, "")
}
