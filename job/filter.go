package job

import "tarry/job/jobpb"

// CheckFilter checks a filter; nil fits every job. The fields in errors are those
// of the HTTP API.
func (l *Limits) CheckFilter(f *jobpb.Filter) error {
	if f == nil {
		return nil
	}
	if f.IdPrefix != "" {
		if err := l.CheckID("id_prefix", f.IdPrefix); err != nil {
			return err
		}
	}
	if err := l.checkReason(f.Reason); err != nil {
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
			return Invalid(r.field+"_to", "is not after %s_from; the range has nothing in it", r.field)
		}
	}
	return l.checkHeaders(f.Headers)
}

// CheckJobQuery checks what a page of jobs may be asked for.
func CheckJobQuery(q *jobpb.JobQuery) error {
	byID := q.Filter.GetIdPrefix() != ""
	if q.Topic != "" || !byID {
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
	if q.After == nil {
		return nil
	}
	// Finished and deleted jobs stand in one list.
	list := q.After.State > jobpb.State_STATE_NONE && q.After.State <= jobpb.State_STATE_FINISHED &&
		(q.State == jobpb.State_STATE_NONE || min(q.State, jobpb.State_STATE_FINISHED) == q.After.State) && q.After.Place != nil && q.After.Place.Instant >= 0
	if byID && q.After.Id == "" || !byID && !list {
		return Invalid("cursor", "is not of this listing; begin without one")
	}
	return nil
}
