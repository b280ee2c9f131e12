package api

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tarry/api/wire"
	"tarry/job"
)

// checkQuery rejects query parameters that are unknown, duplicate or empty: none may be
// ignored silently, least of all a condition. A known name that ends with a dot stands
// for all that begin so, whose values may be empty.
func checkQuery(r *http.Request, known []string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return job.Errorf(job.CodeInvalid, "the query string is malformed: %v", err)
	}
	for name, v := range values {
		if !slices.ContainsFunc(known, func(k string) bool { return k == name || strings.HasSuffix(k, ".") && strings.HasPrefix(name, k) }) {
			return job.Errorf(job.CodeInvalid, "query parameter %.100q is not known here; known: %s", name, wire.OrNone(known)).In(name)
		}
		if len(v) > 1 {
			return job.Errorf(job.CodeInvalid, "query parameter %.100s is given %d times", name, len(v)).In(name)
		}
		if v[0] == "" && slices.Contains(known, name) && !slices.Contains(mayBeEmpty, name) {
			return job.Errorf(job.CodeInvalid, "query parameter %q is empty; give it a value or leave it out", name).In(name)
		}
	}
	return nil
}

// mayBeEmpty are the parameters of which an empty value has a meaning: places to start at, and
// the reason of jobs without one.
var mayBeEmpty = []string{"after", "cursor", "exact_reason"}

// stale parses the query parameter consistency. It reports whether the client accepts
// this node's own state, which may be behind.
func (x *call) stale() (bool, error) {
	switch c := x.r.URL.Query().Get("consistency"); c {
	case "", "consistent":
		return false, nil
	case "stale":
		return true, nil
	default:
		return false, job.Invalid("consistency", "is %.40q; it takes consistent or stale", c)
	}
}

// oneName returns which of a parameter's two names the query has; both are too many.
func oneName(query url.Values, name, old string) (string, error) {
	switch {
	case !query.Has(old):
		return name, nil
	case query.Has(name):
		return "", job.Invalid(old, "and %s are both given; %s is the old name of %s", name, old, name)
	}
	return old, nil
}

// numberIn reads a whole number from the query, if it is there.
func numberIn(query url.Values, name string, to *wire.Opt[int64]) error {
	if !query.Has(name) {
		return nil
	}
	v, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil {
		return job.Invalid(name, "is %.40q; it takes a whole number", query.Get(name))
	}
	*to = wire.Opt[int64]{Set: true, V: v}
	return nil
}

// secondsIn reads a number of seconds from the query, if it is there.
func secondsIn(query url.Values, name string, to *wire.Opt[float64]) error {
	if !query.Has(name) {
		return nil
	}
	v, err := strconv.ParseFloat(query.Get(name), 64)
	if err != nil || math.IsNaN(v) {
		return job.Invalid(name, "is %.40q; it takes a number of seconds", query.Get(name))
	}
	*to = wire.Opt[float64]{Set: true, V: v}
	return nil
}

// textIn reads text from the query, if it is there.
func textIn(query url.Values, name string) wire.Opt[string] {
	return wire.Opt[string]{Set: query.Has(name), V: query.Get(name)}
}

// timestampIn reads a time from the query, if it is there.
func timestampIn(query url.Values, name string) wire.Timestamp {
	v := query.Get(name)
	_, err := strconv.ParseFloat(v, 64)
	return wire.Timestamp{Set: query.Has(name), Number: err == nil, Text: v}
}

// headerParameter begins the query parameters that name a header.
const headerParameter = "header."

// queryFilter parses a filter from the query of a GET.
func queryFilter(query url.Values) (q wire.Filter) {
	at := func(name string) wire.Timestamp { return timestampIn(query, name) }
	q.IDPrefix, q.Reason = textIn(query, "id_prefix"), textIn(query, "reason")
	q.Exact = textIn(query, "exact_reason")
	q.DueFrom, q.DueTo, q.DiedFrom, q.DiedTo = at("due_from"), at("due_to"), at("died_from"), at("died_to")
	for name, v := range query {
		if header, ok := strings.CutPrefix(name, headerParameter); ok {
			if q.Headers.V == nil {
				q.Headers = wire.Headers{Set: true, V: map[string]string{}}
			}
			q.Headers.V[header] = v[0]
		}
	}
	return q
}
