package view

import (
	"encoding/binary"
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// byHeader lists the jobs of the header index: by the first header of the filter that is
// indexed, then by the next. It skips jobs whose topics index an earlier one, so each job
// is listed once.
func (l *lister) byHeader(walk *record.HeaderWalk) error {
	headers, err := l.indexedHeaders()
	if err != nil {
		return err
	}
	for _, h := range headers {
		l.page.Incomplete = l.page.Incomplete || walk.Misses(h.Name)
	}
	for i, h := range headers {
		if h.Name < l.q.After.GetHeader() {
			continue
		}
		if err := l.walkHeader(h, headers[:i]); err != nil || l.page.Next != nil {
			return err
		}
	}
	return nil
}

// indexedHeaders returns the headers of the filter that the topic indexes; without a topic,
// those that any topic indexes.
func (l *lister) indexedHeaders() (indexed []*jobpb.Header, err error) {
	settings, err := record.ReadSettings(l.r, l.q.Topic)
	if err != nil {
		return nil, err
	}
	for _, h := range l.q.Filter.Headers {
		ok := record.Indexes(settings, h.Name)
		if l.q.Topic == "" {
			n, err := record.CountOfHeader(l.r, h.Name)
			if err != nil {
				return nil, err
			}
			ok = n > 0
		}
		if ok {
			indexed = append(indexed, h)
		}
	}
	if len(indexed) > 0 {
		return indexed, nil
	}
	first := l.q.Filter.Headers[0].Name
	if l.q.Topic != "" {
		return nil, job.Invalid("header."+first,
			"is not indexed by topic %.40q; name %.40q in its setting index_headers, or list the jobs of the topic", l.q.Topic, first)
	}
	return nil, job.Invalid("header."+first,
		"is not indexed by any topic; name %.40q in the setting index_headers of the topics whose jobs are to be found by it", first)
}

// walkHeader adds the jobs that have an entry for a header, except those of topics that
// index one of the headers before it.
func (l *lister) walkHeader(h *jobpb.Header, before []*jobpb.Header) error {
	var last uint64
	if h.Name == l.q.After.GetHeader() {
		last = l.q.After.Seq
	}
	prefix := record.AppendHeaderPrefix(nil, h.Name, h.Value)
	lower := binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], last+1)
	upper := append(prefix[:len(prefix):len(prefix)], 0xff) // above all seqs
	return l.view.Scan(l.r, lower, upper, func(key, _ []byte) error {
		if l.full() {
			l.page.Next = &jobpb.JobMark{Header: h.Name, Seq: last}
			return record.ErrEnough
		}
		l.scanned++
		seq, err := record.SeqOfHeaderKey(key)
		if err != nil {
			return err
		}
		last = seq
		rec, err := record.ReadJob(l.r, seq, l.q.Body)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("the header index has job %d, which does not exist", seq)
		}
		t, err := l.topic(rec.Topic())
		if err != nil {
			return err
		}
		if !record.Indexes(t.settings, h.Name) || indexesAny(t.settings, before) {
			l.read += rec.BodyLen // its entry will be removed, or it was listed
			return nil
		}
		return l.addOf(rec, t)
	})
}

func indexesAny(s *jobpb.TopicSettings, headers []*jobpb.Header) bool {
	for _, h := range headers {
		if record.Indexes(s, h.Name) {
			return true
		}
	}
	return false
}
