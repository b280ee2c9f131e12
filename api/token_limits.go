package api

import "tarry/job/jobpb"

// tokenLimits adds the limits of a token, if it has any.
func (w *writer) tokenLimits(l *jobpb.TokenLimits) {
	if l == nil {
		return
	}
	w.beginNamedObject("limits")
	if l.RateMilli != 0 {
		w.float("rate", float64(l.RateMilli)/1000)
	}
	w.numberUnlessZero("connections", uint64(l.Connections))
	w.numberUnlessZero("waiters", uint64(l.Waiters))
	w.numberUnlessZero("bytes", l.Bytes)
	w.endObject()
}
