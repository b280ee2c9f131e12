package job

import (
	"math"
	"slices"

	"tarry/job/jobpb"
)

// CheckFilter checks a filter; nil selects every job. The fields in errors are those of the
// HTTP API.
func (l *Limits) CheckFilter(f *jobpb.Filter) error {
	if f == nil {
		return nil
	}
	if f.IdPrefix != "" {
		if err := l.CheckID("id_prefix", f.IdPrefix); err != nil {
			return err
		}
	}
	if err := l.CheckReason(f.Reason); err != nil {
		return err
	}
	if err := CheckDeadReason("exact_reason", f.GetExactReason()); err != nil {
		return err
	}
	for _, r := range [...]struct {
		field    string
		from, to int64
	}{{"due", f.DueFromMs, f.DueToMs}, {"died", f.DiedFromMs, f.DiedToMs}} {
		switch {
		case r.from < 0 || r.to < 0:
			return Invalid(r.field+"_from", "or %s_to is before 1970", r.field)
		case r.to != 0 && r.to <= r.from:
			return Invalid(r.field+"_to", "is not after %s_from; the range is empty", r.field)
		}
	}
	return l.CheckHeaders(f.Headers)
}

// CheckJobQuery checks a query for a page of jobs.
func CheckJobQuery(q *jobpb.JobQuery) error {
	byID := !q.ByHeader && q.Filter.GetIdPrefix() != ""
	if q.Topic != "" || !byID && !q.ByHeader {
		if err := CheckTopic("topic", q.Topic); err != nil {
			return err
		}
	}
	if err := Within("max", int64(q.Max), 1, MaxList); err != nil {
		return err
	}
	if q.State < jobpb.State_STATE_NONE || q.State > jobpb.State_STATE_DELETED {
		return Invalid("state", "is %d; this release knows only 0 to 6", q.State)
	}
	if err := CheckFilter(q.Filter); err != nil {
		return err
	}
	if q.ByHeader {
		if err := checkFindHeaders(q.Filter.GetHeaders()); err != nil {
			return err
		}
	}
	if q.After == nil || isMarkOf(q, byID) {
		return nil
	}
	return Invalid("cursor", "is not of this listing; begin without one")
}

// isMarkOf reports whether a page of the query may have ended at q.After.
func isMarkOf(q *jobpb.JobQuery, byID bool) bool {
	after := q.After
	switch {
	case q.ByHeader:
		return slices.ContainsFunc(q.Filter.Headers, func(h *jobpb.Header) bool { return h.Name == after.Header }) && after.Seq < math.MaxUint64
	case byID:
		return after.Id != ""
	}
	// Finished and deleted jobs are in one list.
	return after.State > jobpb.State_STATE_NONE && after.State <= jobpb.State_STATE_FINISHED &&
		(q.State == jobpb.State_STATE_NONE || min(q.State, jobpb.State_STATE_FINISHED) == after.State) && after.Place != nil && after.Place.Instant >= 0
}

// checkFindHeaders checks the headers by which jobs are found. An empty value is refused: it
// is probably a variable that was not set.
func checkFindHeaders(headers []*jobpb.Header) error {
	if len(headers) == 0 {
		return Invalid("headers", "is missing; jobs of all topics are found by at least one header")
	}
	for _, h := range headers {
		if h.Value == "" {
			return Invalid("header."+h.Name, "is empty; jobs are found by values of at least 1 byte")
		}
	}
	return nil
}
