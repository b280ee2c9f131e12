package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// indexNew adds the entries of a new job.
func (x *tx) indexNew(t *topic, seq uint64, headers []*jobpb.Header) {
	if len(t.settings.GetIndexHeaders()) == 0 {
		return
	}
	for _, h := range headers {
		x.setEntry(seq, h, false, record.Indexes(t.settings, h.Name))
	}
}

// reindex changes the entries of a job from the settings was to the settings is; nil: not
// indexed.
func (x *tx) reindex(rec *record.Job, was, is *jobpb.TopicSettings) error {
	if rec.Spec.Options == "" || len(was.GetIndexHeaders())+len(is.GetIndexHeaders()) == 0 && !x.m.meta.Walk.Ahead(rec.Seq) {
		return nil
	}
	headers, err := rec.Spec.Headers()
	if err != nil {
		return err
	}
	for _, h := range headers {
		x.setEntry(rec.Seq, h, record.Indexes(was, h.Name), record.Indexes(is, h.Name))
	}
	return nil
}

// setEntry adds (is) or removes the entry of one header of a job. was reports whether the
// entry exists, unless that is unsure.
func (x *tx) setEntry(seq uint64, h *jobpb.Header, was, is bool) {
	unsure := x.m.meta.Walk.Unsure(seq, h.Name)
	if h.Value == "" || was == is && !unsure {
		return
	}
	x.key = record.AppendHeaderKey(x.key[:0], h.Name, h.Value, seq)
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
