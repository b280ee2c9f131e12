package fsm

import (
	"strings"

	"tarry/job/jobpb"
)

// fits says whether a filter means a job, which is in the given state. A nil
// filter means every job.
func fits(f *jobpb.Filter, rec *record, state jobpb.State) (bool, error) {
	died := int64(0)
	if state == jobpb.State_STATE_DEAD {
		died = rec.diedMS
	}
	switch {
	case f == nil:
		return true, nil
	case !strings.HasPrefix(rec.id, f.IdPrefix),
		f.Reason != "" && !strings.Contains(rec.reason, f.Reason) && !strings.Contains(rec.lastError, f.Reason),
		!within(rec.fate.dueMS, f.DueFromMs, f.DueToMs),
		!within(died, f.DiedFromMs, f.DiedToMs):
		return false, nil
	case len(f.Headers) == 0:
		return true, nil
	case len(rec.extras) == 0:
		return false, nil
	}
	e, err := rec.decodeExtras()
	return hasHeaders(e.GetHeaders(), f.Headers), err
}

// within says whether an instant is in [from, to); a 0 is open.
func within(ms, from, to int64) bool { return ms >= from && (to == 0 || ms < to) }

// hasHeaders says whether all the wanted headers are there. Both lists are sorted
// by name.
func hasHeaders(list, wanted []*jobpb.Header) bool {
	for _, h := range list {
		if len(wanted) > 0 && h.Name == wanted[0].Name && h.Value == wanted[0].Value {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}
