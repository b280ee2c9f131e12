package fsm

import (
	"slices"

	"tarry/job/jobpb"
)

// The header index. The settings of a topic may name headers (index_headers). Each of its
// jobs, in whatever state, retained ones included, then has an entry for each of these
// headers that it has with a value: the name, the value, the seq. So the jobs of one value
// are found over all topics, in the order of their adds. Entries have no topic: moving a
// job between topics that index the same headers changes none.
//
// When the setting of a topic with jobs changes, a walk (op_index_headers.go) adds and
// removes the entries of the jobs that are there, a bounded number with each Advance.
//
// Invariant: a job has an entry for a header that it has with a value if and only if its
// topic indexes the header. While a walk is under way nothing is known of the entries of
// jobs that it has not come to, for the headers that it is about (headerWalk.unsure).
//
// Entries are removed by SingleDelete where that is known to be right, and by Delete where
// the walk leaves it open whether there is an entry.

// indexes reports whether the settings of a topic, which may be nil, name a header.
func indexes(s *jobpb.TopicSettings, name string) bool {
	return slices.Contains(s.GetIndexHeaders(), name)
}

// sameIndex reports whether settings name the same headers.
func sameIndex(a, b *jobpb.TopicSettings) bool {
	x, y := a.GetIndexHeaders(), b.GetIndexHeaders()
	return len(x) == len(y) && !slices.ContainsFunc(x, func(name string) bool { return !slices.Contains(y, name) })
}

// indexNew adds the entries of a new job.
func (x *tx) indexNew(t *topic, seq uint64, headers []*jobpb.Header) {
	if len(t.settings.GetIndexHeaders()) == 0 {
		return
	}
	for _, h := range headers {
		x.setEntry(seq, h, false, indexes(t.settings, h.Name))
	}
}

// reindex changes the entries of a job for the headers that it has: was are the settings
// by which it was indexed, is those by which it will be; nil is not at all.
func (x *tx) reindex(rec *record, was, is *jobpb.TopicSettings) error {
	if rec.spec.options == "" || len(was.GetIndexHeaders())+len(is.GetIndexHeaders()) == 0 && !x.m.meta.walk.ahead(rec.seq) {
		return nil
	}
	headers, err := rec.spec.headers()
	if err != nil {
		return err
	}
	for _, h := range headers {
		x.setEntry(rec.seq, h, indexes(was, h.Name), indexes(is, h.Name))
	}
	return nil
}

// setEntry makes the entry of one header of a job be there, or not. was is how it is,
// unless that is unsure.
func (x *tx) setEntry(seq uint64, h *jobpb.Header, was, is bool) {
	unsure := x.m.meta.walk.unsure(seq, h.Name)
	if h.Value == "" || was == is && !unsure {
		return
	}
	x.key = appendHeaderKey(x.key[:0], h.Name, h.Value, seq)
	switch {
	case unsure:
		must(x.batch.Delete(x.key, nil))
	case was:
		must(x.batch.SingleDelete(x.key, nil))
	}
	if is {
		must(x.batch.Set(x.key, nil, nil))
	}
}
