package fsm

// recentKept bounds the records of one generation. Two generations, at about 300 bytes a
// record, take 20 MB.
const recentKept = 1 << 15

// recent caches recently used records, without bodies: a job that was just reserved will
// soon be finished. It changes no result.
//
// It has two generations. A full young one replaces the old one.
type recent struct {
	young, old map[uint64]*record
}

// recentText bounds the reasons, options and history of a cached record, in bytes.
const recentText = 128

// put caches a record, which must be as in the store.
func (r *recent) put(rec *record) {
	if len(rec.status.reason)+len(rec.status.lastError)+len(rec.spec.options)+len(rec.status.history) > recentText {
		return
	}
	if r.young == nil || len(r.young) >= recentKept {
		r.old, r.young = r.young, make(map[uint64]*record)
	}
	rec.body, rec.ownBody = nil, false
	r.young[rec.seq] = rec
}

// take removes a record and returns it, for the caller to change; nil: it is not cached.
func (r *recent) take(seq uint64) *record {
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
