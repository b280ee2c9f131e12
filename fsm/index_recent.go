package fsm

// recentKept is how many records a generation of recent may hold. Two
// generations of about 300 bytes a record come to 20 MB.
const recentKept = 1 << 15

// recent keeps the records of jobs that were in use a moment ago, without their
// bodies: a job that was just reserved will soon be finished. It saves reads and
// makes no difference to any result.
//
// It has two generations. When the young one is full it becomes the old one, and
// the old one is given up.
type recent struct {
	young, old map[uint64]*record
}

// recentText bounds the reasons, options and history of a record that is kept.
const recentText = 128

// put remembers a record as it is in the store.
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

// take gives a record away, to be changed and put back; nil: it is not here.
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
