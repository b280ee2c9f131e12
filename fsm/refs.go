package fsm

import (
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// find returns the job that an operation names, after a check of the token, if it has one.
// If it returns nil, the operation was refused or failed, and the caller returns err.
func (x *tx) find(ref *jobpb.Ref, r *jobpb.Result) (*record.Job, *topic, error) {
	rec, t, err := x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, err
	}
	if generation := ref.GetGeneration(); generation != 0 && !rec.IsHeldBy(generation) {
		return nil, nil, x.refuseStale(rec, r)
	}
	return rec, t, nil
}

// findUnfenced is find without the check of the token.
func (x *tx) findUnfenced(ref *jobpb.Ref, r *jobpb.Result) (rec *record.Job, t *topic, err error) {
	id, seq := ref.GetId(), ref.GetSeq()
	if seq != 0 {
		rec, err = x.job(seq, false) // by id it would be one more read of the store
	} else {
		rec, err = x.jobByID(id)
	}
	if err != nil {
		return nil, nil, err
	}
	if rec == nil || (id != "" && x.name(rec) != id) {
		return nil, nil, x.refuseMissing(ref, r)
	}
	if t, err = x.topicOf(rec); err != nil {
		return nil, nil, err
	}
	if !x.mayTouch(t, ref, r) {
		return nil, nil, nil
	}
	if rec.Status.Phase.Ended() {
		return nil, nil, x.refuse(r, jobpb.Code_NOT_FOUND, "%s was %s and is retained for readers only", jobWords(id, seq), rec.EndedWords())
	}
	if x.replies {
		r.Seq, r.Id, r.DueMs = rec.Seq, x.name(rec), rec.Status.DueMS
	}
	return rec, t, nil
}

// findListed is find, and also returns the list that the job is in.
func (x *tx) findListed(ref *jobpb.Ref, r *jobpb.Result) (rec *record.Job, t *topic, list record.List, err error) {
	if rec, t, err = x.find(ref, r); rec == nil || err != nil {
		return nil, nil, record.ListNone, err
	}
	list, err = x.listOf(t, rec)
	return rec, t, list, err
}

// findReserved is find for operations that need a reservation.
func (x *tx) findReserved(ref *jobpb.Ref, r *jobpb.Result) (*record.Job, *topic, error) {
	rec, t, err := x.find(ref, r)
	if rec == nil || err != nil {
		return nil, nil, err
	}
	if !x.checkReserved(ref, rec, t, r) {
		return nil, nil, nil
	}
	return rec, t, nil
}

// checkReserved reports whether a job is reserved and the token is given if the topic
// requires one; if not, it refuses the operation.
func (x *tx) checkReserved(ref *jobpb.Ref, rec *record.Job, t *topic, r *jobpb.Result) bool {
	switch {
	case t.settings.GetRequireToken() && ref.GetGeneration() == 0:
		_ = x.refuse(r, jobpb.Code_TOKEN_REQUIRED, "token is missing; topic %.40q requires the token of the reservation", t.name)
	case rec.Status.Phase != record.PhaseReserved:
		_ = x.refuse(r, jobpb.Code_NOT_RESERVED, "job %.40q is not reserved", x.name(rec))
	default:
		return true
	}
	return false
}

// refuseMissing refuses an operation on a job that does not exist.
func (x *tx) refuseMissing(ref *jobpb.Ref, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_NOT_FOUND, "%s does not exist; it may have been finished or deleted", jobWords(ref.GetId(), ref.GetSeq()))
}

func (x *tx) refuseStale(rec *record.Job, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_STALE_TOKEN, "the token's reservation of job %.40q has ended", x.name(rec))
}

func jobWords(id string, seq uint64) string {
	switch {
	case id == "":
		return fmt.Sprintf("job number %d", seq)
	case seq == 0:
		return fmt.Sprintf("job %.40q", id)
	default:
		return fmt.Sprintf("job %.40q with number %d", id, seq)
	}
}
