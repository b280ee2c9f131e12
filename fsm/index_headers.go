package fsm

import (
	"slices"

	"tarry/job/jobpb"
)

// The header index. The settings of a topic may name headers (index_headers). Each of its
// jobs, retained ones included, then has an entry (name, value, seq) for each of these
// headers for which it has a value. So the jobs of one value are found in all topics, in
// the order of their adds. Entries have no topic, so a move between topics that index the
// same headers changes none.
//
// When the setting of a topic with jobs changes, a walk (op_index_headers.go) adds and
// removes the entries of existing jobs, a bounded number with each Advance.
//
// Invariant: a job with a value for a header has the entry if and only if its topic indexes
// the header. During a walk this does not hold for the jobs that it has yet to process and
// the headers that it changes (headerWalk.unsure).
//
// Entries are removed by SingleDelete if they are known to exist, else by Delete.

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

// reindex changes the entries of a job from the settings was to the settings is; nil: not
// indexed.
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

// setEntry adds (is) or removes the entry of one header of a job. was reports whether the
// entry exists, unless that is unsure.
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
