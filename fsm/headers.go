package fsm

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

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

// indexSettings updates the counts of headers for changed settings, and begins a walk if the
// topic, which may be nil, has jobs.
func (x *tx) indexSettings(t *topic, old, made *jobpb.TopicSettings) {
	if record.SameIndex(old, made) {
		return
	}
	w := &x.m.meta.Walk
	walk := t != nil && t.Jobs() > 0
	change := func(names []string, than *jobpb.TopicSettings, by int) {
		for _, name := range names {
			if record.Indexes(than, name) {
				continue
			}
			x.countHeader(name, by)
			if walk {
				w.Note(name, by > 0)
			}
		}
	}
	change(old.GetIndexHeaders(), made, -1)
	change(made.GetIndexHeaders(), old, +1)
	if walk {
		w.Limit, w.Next = x.m.meta.State.NextSeq, 1
		x.walkBegan = true
		x.saveHeaderWalk()
	}
}

// countHeader changes how many topics index a header.
func (x *tx) countHeader(name string, by int) {
	n := x.m.headerTopics[name] + by
	x.key = record.AppendHeaderNameKey(x.key[:0], name)
	if n == 0 {
		delete(x.m.headerTopics, name)
		must(x.batch.Delete(x.key, nil))
		return
	}
	x.m.headerTopics[name] = n
	must(x.batch.Set(x.key, binary.BigEndian.AppendUint32(nil, uint32(n)), nil))
}

func (x *tx) saveHeaderWalk() {
	w := &x.m.meta.Walk
	if !w.UnderWay() {
		must(x.batch.Delete(record.KeyHeaderWalk, nil))
		return
	}
	x.value = w.Append(x.value[:0])
	must(x.batch.Set(record.KeyHeaderWalk, x.value, nil))
}

// walkShare is by how much less an Advance does of the walk than of what is due: the steps
// follow each other at once and must leave the other operations most of the time.
const walkShare = 4

// walkHeaders processes the next jobs of the walk, at most most of them.
func (x *tx) walkHeaders(most uint32) error {
	w := &x.m.meta.Walk
	if !w.UnderWay() || x.walkBegan {
		return nil // in the entry of the change the store does not have all jobs yet
	}
	done, err := x.eachJob(w.Next, w.Limit, most, func(rec *record.Job) error {
		t, err := x.topicOf(rec)
		if err != nil {
			return err
		}
		err = x.reindex(rec, t.settings, t.settings)
		w.Next = rec.Seq + 1
		return err
	})
	if err == nil && done {
		*w = record.HeaderWalk{}
	}
	x.saveHeaderWalk()
	return err
}

// eachJob calls act for up to most of the jobs in [from, limit) and reports whether no job is
// left. It ends early at large jobs (sweepBytes). Deleted jobs that the store still has do
// not count toward most: their number depends on how the log was divided into batches. The
// store must have all of the jobs.
func (x *tx) eachJob(from, limit uint64, most uint32, act func(*record.Job) error) (done bool, err error) {
	it, err := x.db.NewIter(&pebble.IterOptions{
		LowerBound: record.AppendSeqKey(nil, record.SpaceSpec, from), UpperBound: record.AppendSeqKey(nil, record.SpaceSpec, limit),
	})
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	bytes := 0
	for it.First(); it.Valid(); it.Next() {
		seq, err := record.SeqOfKey(it.Key())
		if err != nil {
			return false, err
		}
		rec, err := x.job(seq, false)
		if err != nil {
			return false, err
		}
		if rec == nil {
			continue
		}
		if most == 0 || bytes >= sweepBytes {
			return false, nil
		}
		if err := act(rec); err != nil {
			return false, err
		}
		bytes += rec.BodyLen
		most--
	}
	return true, it.Error()
}
