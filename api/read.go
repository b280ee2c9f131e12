package api

import (
	"context"

	"tarry/api/wire"
	"tarry/job"
)

// find reads what the path names, with the consistency of the query.
func find[T any](x *call, name func() (string, error), read func(context.Context, string, bool) (T, error)) (found T, err error) {
	n, err := name()
	if err != nil {
		return found, err
	}
	stale, err := x.stale()
	if err != nil {
		return found, err
	}
	ctx, cancel := x.timeout(x.s.Timeout)
	defer cancel()
	return read(ctx, n, stale)
}

// findPage reads a page of a listing by name, and claims memory for a response with it. The
// query has cursor (or after), max and consistency. full reports that the page has max items.
func findPage[T interface{ SizeVT() int }](x *call, list func(ctx context.Context, after string, most int, stale bool) ([]T, error)) (page []T, full bool, err error) {
	query := x.r.URL.Query()
	name, err := wire.OneName(query, "cursor", "after")
	if err != nil {
		return nil, false, err
	}
	after := query.Get(name)
	if after != "" {
		// The rules for the names of schedules are stricter.
		if err := job.CheckTopic(name, after); err != nil {
			return nil, false, err
		}
	}
	most := wire.Opt[int64]{V: wire.MaxPage}
	if err := wire.NumberIn(query, "max", &most); err != nil {
		return nil, false, err
	}
	if _, err := wire.Within("max", most.V, wire.MaxPage); err != nil {
		return nil, false, err
	}
	stale, err := x.stale()
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := x.timeout(x.s.Timeout)
	defer cancel()
	if page, err = list(ctx, after, int(most.V), stale); err != nil {
		return nil, false, err
	}
	var room int64
	for _, one := range page {
		room += int64(one.SizeVT()) + answerOverhead
	}
	return page, len(page) == int(most.V), x.claim(room)
}

// answerPage responds with a page. next is where the following one begins; empty: there is
// none.
func answerPage[T any](x *call, field string, page []T, write func(T), next string) {
	x.json.success()
	writePage(x, field, page, write, next)
}

// writePage ends a response with a page.
func writePage[T any](x *call, field string, page []T, write func(T), next string) {
	objects(&x.json, field, page, write)
	x.json.textUnlessEmpty("next", next)
	x.json.endObject()
}

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
