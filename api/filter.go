package api

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"tarry/job/jobpb"
)

// filterRequest selects jobs: those that match all of its fields.
type filterRequest struct {
	IDPrefix opt[string] `json:"id_prefix"`
	Reason   opt[string] `json:"reason"`
	Exact    opt[string] `json:"exact_reason"`
	DueFrom  timestamp   `json:"due_from"`
	DueTo    timestamp   `json:"due_to"`
	DiedFrom timestamp   `json:"died_from"`
	DiedTo   timestamp   `json:"died_to"`
	Headers  headers     `json:"headers"`
}

// proto returns the filter, which the caller must check; nil means every job.
func (q *filterRequest) proto(now time.Time) (*jobpb.Filter, error) {
	f := &jobpb.Filter{IdPrefix: q.IDPrefix.v, Reason: q.Reason.v}
	if q.Exact.set {
		f.ExactReason = &q.Exact.v
	}
	for _, one := range []struct {
		field string
		in    timestamp
		out   *int64
	}{
		{"due_from", q.DueFrom, &f.DueFromMs}, {"due_to", q.DueTo, &f.DueToMs},
		{"died_from", q.DiedFrom, &f.DiedFromMs}, {"died_to", q.DiedTo, &f.DiedToMs},
	} {
		if !one.in.set {
			continue
		}
		var err error
		if *one.out, err = one.in.millis(one.field, now); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Headers.v)) {
		f.Headers = append(f.Headers, &jobpb.Header{Name: name, Value: q.Headers.v[name]})
	}
	if f.SizeVT() == 0 {
		return nil, nil
	}
	return f, nil
}

// headerParameter begins the query parameters that name a header.
const headerParameter = "header."

// queryFilter parses a filter from the query of a GET.
func queryFilter(query url.Values) (q filterRequest) {
	at := func(name string) timestamp { return timestampIn(query, name) }
	q.IDPrefix, q.Reason = textIn(query, "id_prefix"), textIn(query, "reason")
	q.Exact = textIn(query, "exact_reason")
	q.DueFrom, q.DueTo, q.DiedFrom, q.DiedTo = at("due_from"), at("due_to"), at("died_from"), at("died_to")
	for name, v := range query {
		if header, ok := strings.CutPrefix(name, headerParameter); ok {
			if q.Headers.v == nil {
				q.Headers = headers{set: true, v: map[string]string{}}
			}
			q.Headers.v[header] = v[0]
		}
	}
	return q
}
