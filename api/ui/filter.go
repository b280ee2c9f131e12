package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// jobFilter selects jobs of a topic, as a person writes it.
type jobFilter struct {
	IDPrefix, Reason, Header, DueFrom, DueTo string
	ExactReason                              string // of a group of dead jobs
}

func (q *request) filter() jobFilter {
	text := func(name string) string { return strings.TrimSpace(q.value(name)) }
	return jobFilter{q.value("id_prefix"), text("reason"), text("header"), text("due_from"), text("due_to"), q.value("exact_reason")}
}

// Any reports whether the filter selects anything.
func (f jobFilter) Any() bool { return f != jobFilter{} }

// pairs are the fields of the form, with their names.
func (f jobFilter) pairs() []string {
	return []string{"id_prefix", f.IDPrefix, "reason", f.Reason, "header", f.Header, "due_from", f.DueFrom, "due_to", f.DueTo, "exact_reason", f.ExactReason}
}

// fields are those that are not empty.
func (f jobFilter) fields() url.Values {
	fields := url.Values{}
	for pair := range slices.Chunk(f.pairs(), 2) {
		if pair[1] != "" {
			fields.Set(pair[0], pair[1])
		}
	}
	return fields
}

// header returns the name and the value of the header; ok is false if there is none.
func (f jobFilter) header() (name, value string, ok bool, err error) {
	if f.Header == "" {
		return "", "", false, nil
	}
	name, value, found := strings.Cut(f.Header, "=")
	if !found || name == "" {
		return "", "", false, invalid("header", "header must be name=value, such as order=5")
	}
	return strings.TrimSpace(name), strings.TrimSpace(value), true, nil
}

// query is the filter of a listing.
func (f jobFilter) query() (url.Values, error) {
	query := f.fields()
	query.Del("header")
	name, value, ok, err := f.header()
	if ok {
		query.Set("header."+name, value)
	}
	return query, err
}

// body is the filter of a sweep; nil: it selects all.
func (f jobFilter) body() (map[string]any, error) {
	body := map[string]any{}
	for name, values := range f.fields() {
		body[name] = values[0]
	}
	delete(body, "header")
	name, value, ok, err := f.header()
	if ok {
		body["headers"] = map[string]string{name: value}
	}
	if len(body) == 0 {
		return nil, err
	}
	return body, err
}

const (
	countPage = 1000
	// maxCounted is how many jobs are counted one by one for a confirmation.
	maxCounted = 10_000
)

// count returns how many jobs of a topic in a state the filter selects. more reports that there
// may be others: it counts maxCounted at most.
func (q *request) count(topic, state string, f jobFilter) (n uint64, more bool, err error) {
	query, err := f.query()
	if err != nil {
		return 0, false, err
	}
	query.Set("state", state)
	query.Set("max", fmt.Sprint(countPage))
	// A page may be empty although there are more: each looks at 10,000 jobs at most.
	for range maxCounted / countPage {
		var page struct {
			Jobs []struct{} `json:"jobs"`
			Next string     `json:"next"`
		}
		if err := q.read("/v1/topics/"+segment(topic)+"/jobs", query, &page); err != nil {
			return 0, false, err
		}
		n += uint64(len(page.Jobs))
		if page.Next == "" {
			return n, false, nil
		}
		query.Set("cursor", page.Next)
	}
	return n, true, nil
}
