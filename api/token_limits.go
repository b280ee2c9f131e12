package api

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// limitsRequest is what a token may use on each node; a limit that is missing is none.
type limitsRequest struct {
	Rate        opt[float64] `json:"rate"`
	Connections opt[int64]   `json:"connections"`
	Waiters     opt[int64]   `json:"waiters"`
	Bytes       opt[int64]   `json:"bytes"`
}

// limits returns what is asked for; nil: no limit.
func (q *limitsRequest) limits() (*jobpb.TokenLimits, error) {
	var l jobpb.TokenLimits
	var err error
	if q.Rate.set {
		if l.RateMilli, err = thousandths(q.Rate.v); err != nil {
			return nil, job.Invalid("limits.rate", "is %g operations a second; it takes 0.001 to %d, with at most three decimals", q.Rate.v, job.MaxRateMilli/1000)
		}
	}
	if q.Connections.set {
		if l.Connections, err = within("limits.connections", q.Connections.v, math.MaxUint32); err != nil {
			return nil, err
		}
	}
	if q.Waiters.set {
		if l.Waiters, err = within("limits.waiters", q.Waiters.v, math.MaxUint32); err != nil {
			return nil, err
		}
	}
	if q.Bytes.set {
		if err := job.Within("limits.bytes", q.Bytes.v, 1, job.MaxTokenBytes); err != nil {
			return nil, err
		}
		l.Bytes = uint64(q.Bytes.v)
	}
	if l.RateMilli == 0 && l.Connections == 0 && l.Waiters == 0 && l.Bytes == 0 {
		return nil, nil
	}
	return &l, nil
}

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
