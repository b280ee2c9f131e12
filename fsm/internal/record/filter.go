package record

import (
	"strings"

	"tarry/job/jobpb"
)

// Matches reports whether a filter selects a job. A nil filter selects every job.
func Matches(f *jobpb.Filter, rec *Job) (bool, error) {
	died := int64(0)
	if rec.Status.Phase == PhaseDead {
		died = rec.Status.DiedMS()
	}
	switch {
	case f == nil:
		return true, nil
	case !strings.HasPrefix(rec.Spec.ID, f.IdPrefix),
		f.ExactReason != nil && *f.ExactReason != rec.DeadReason(),
		f.Reason != "" && !strings.Contains(rec.Status.Reason, f.Reason) && !strings.Contains(rec.Status.LastError, f.Reason),
		!within(rec.Status.DueMS, f.DueFromMs, f.DueToMs),
		!within(died, f.DiedFromMs, f.DiedToMs):
		return false, nil
	case len(f.Headers) == 0:
		return true, nil
	case len(rec.Spec.Options) == 0:
		return false, nil
	}
	e, err := rec.Spec.DecodeOptions()
	return hasHeaders(e.GetHeaders(), f.Headers), err
}

// within reports whether an instant is in [from, to); a 0 is open.
func within(ms, from, to int64) bool { return ms >= from && (to == 0 || ms < to) }

// hasHeaders reports whether all the wanted headers are there. Both lists are sorted
// by name.
func hasHeaders(list, wanted []*jobpb.Header) bool {
	for _, h := range list {
		if len(wanted) > 0 && h.Name == wanted[0].Name && h.Value == wanted[0].Value {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}
