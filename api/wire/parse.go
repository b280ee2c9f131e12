package wire

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// WithBodies parses the query parameter body: whether a response has the bodies of the jobs.
func WithBodies(query url.Values, unless bool) (bool, error) {
	switch v := query.Get("body"); v {
	case "":
		return unless, nil
	case "true", "false":
		return v == "true", nil
	default:
		return false, job.Invalid("body", "is %.40q; it takes true or false", v)
	}
}

// CheckQuery rejects query parameters that are unknown, duplicate or empty: none may be
// ignored silently, least of all a condition. A known name that ends with a dot stands
// for all that begin so, whose values may be empty.
func CheckQuery(r *http.Request, known []string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return job.Errorf(job.CodeInvalid, "the query string is malformed: %v", err)
	}
	for name, v := range values {
		if !slices.ContainsFunc(known, func(k string) bool { return k == name || strings.HasSuffix(k, ".") && strings.HasPrefix(name, k) }) {
			return job.Errorf(job.CodeInvalid, "query parameter %.100q is not known here; known: %s", name, OrNone(known)).In(name)
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

// OneName returns which of a parameter's two names the query has; both are too many.
func OneName(query url.Values, name, old string) (string, error) {
	switch {
	case !query.Has(old):
		return name, nil
	case query.Has(name):
		return "", job.Invalid(old, "and %s are both given; %s is the old name of %s", name, old, name)
	}
	return old, nil
}

// NumberIn reads a whole number from the query, if it is there.
func NumberIn(query url.Values, name string, to *Opt[int64]) error {
	if !query.Has(name) {
		return nil
	}
	v, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil {
		return job.Invalid(name, "is %.40q; it takes a whole number", query.Get(name))
	}
	*to = Opt[int64]{Set: true, V: v}
	return nil
}

// SecondsIn reads a number of seconds from the query, if it is there.
func SecondsIn(query url.Values, name string, to *Opt[float64]) error {
	if !query.Has(name) {
		return nil
	}
	v, err := strconv.ParseFloat(query.Get(name), 64)
	if err != nil || math.IsNaN(v) {
		return job.Invalid(name, "is %.40q; it takes a number of seconds", query.Get(name))
	}
	*to = Opt[float64]{Set: true, V: v}
	return nil
}

// TextIn reads text from the query, if it is there.
func TextIn(query url.Values, name string) Opt[string] {
	return Opt[string]{Set: query.Has(name), V: query.Get(name)}
}

// TimestampIn reads a time from the query, if it is there.
func TimestampIn(query url.Values, name string) Timestamp {
	v := query.Get(name)
	_, err := strconv.ParseFloat(v, 64)
	return Timestamp{Set: query.Has(name), Number: err == nil, Text: v}
}

// headerParameter begins the query parameters that name a header.
const headerParameter = "header."

// QueryFilter parses a filter from the query of a GET.
func QueryFilter(query url.Values) (q Filter) {
	at := func(name string) Timestamp { return TimestampIn(query, name) }
	q.IDPrefix, q.Reason = TextIn(query, "id_prefix"), TextIn(query, "reason")
	q.Exact = TextIn(query, "exact_reason")
	q.DueFrom, q.DueTo, q.DiedFrom, q.DiedTo = at("due_from"), at("due_to"), at("died_from"), at("died_to")
	for name, v := range query {
		if header, ok := strings.CutPrefix(name, headerParameter); ok {
			if q.Headers.V == nil {
				q.Headers = Headers{Set: true, V: map[string]string{}}
			}
			q.Headers.V[header] = v[0]
		}
	}
	return q
}

// QueryCondition parses the condition in the query of a DELETE, which has no body. States
// are separated by commas.
func QueryCondition(query url.Values) (*jobpb.Condition, error) {
	var c Condition
	if err := NumberIn(query, "if_revision", &c.IfRevision); err != nil {
		return nil, err
	}
	if v := query.Get("if_state"); v != "" {
		c.IfState = List[string, StatesLimit]{Set: true, V: strings.Split(v, ",")}
	}
	return c.Proto()
}

func OrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
