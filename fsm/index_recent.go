package fsm

import "tarry/fsm/internal/record"

// recentKept bounds the records of one generation. Two generations, at about 300 bytes a
// record, take 20 MB.
const recentKept = 1 << 15

// recent caches recently used records, without bodies: a job that was just reserved will
// soon be finished. It changes no result.
//
// It has two generations. A full young one replaces the old one.
type recent struct {
	young, old map[uint64]*record.Job
}

// recentText bounds the reasons, options and history of a cached record, in bytes.
const recentText = 128

// put caches a record, which must be as in the store.
func (r *recent) put(rec *record.Job) {
	if len(rec.Status.Reason)+len(rec.Status.LastError)+len(rec.Spec.Options)+len(rec.Status.History) > recentText {
		return
	}
	if r.young == nil || len(r.young) >= recentKept {
		r.old, r.young = r.young, make(map[uint64]*record.Job)
	}
	rec.Body, rec.OwnBody = nil, false
	r.young[rec.Seq] = rec
}

// take removes a record and returns it, for the caller to change; nil: it is not cached.
func (r *recent) take(seq uint64) *record.Job {
	if rec := r.young[seq]; rec != nil {
		delete(r.young, seq)
		return rec
	}
	rec := r.old[seq]
	if rec != nil {
		delete(r.old, seq)
	}
	return rec
}
