package check

import (
	"bytes"
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// checkHeaders checks that the header index has an entry for each header for which a job has
// a value and that its topic indexes, and no other, except where a walk is unsure; and that
// the index counts the topics of each header.
func (c *checker) checkHeaders() error {
	all, err := record.ReadAllSettings(c.r)
	if err != nil {
		return err
	}
	counts := make(map[string]uint32)
	for _, s := range all {
		for _, name := range s.GetIndexHeaders() {
			counts[name]++
		}
	}
	if w := &c.meta.Walk; w.Next > w.Limit || w.Limit > c.meta.State.NextSeq || w.UnderWay() != (len(w.Names) > 0) {
		return fmt.Errorf("the walk over headers is at job %d of %d, for %d headers", w.Next, w.Limit, len(w.Names))
	}
	named := 0
	err = c.scan(record.SpaceHeader, func(key, value []byte) error {
		if len(key) < 3 {
			return fmt.Errorf("header key %x is malformed", key)
		}
		if key[1] == record.HeaderEntries {
			return c.checkEntry(key, value, all)
		}
		n, err := record.DecodeHeaderCount(value)
		if err == nil && (key[1] != record.HeaderNames || counts[string(key[2:])] != n) {
			err = fmt.Errorf("header %q is counted for %d topics, but %d index it", key[2:], n, counts[string(key[2:])])
		}
		named++
		return err
	})
	if err == nil && named != len(counts) {
		err = fmt.Errorf("%d headers are counted, but %d are indexed", named, len(counts))
	}
	if err != nil || len(counts) == 0 {
		return err
	}
	return c.checkIndexed(all)
}

// checkEntry checks that an entry belongs to a job.
func (c *checker) checkEntry(key, value []byte, all map[string]*jobpb.TopicSettings) error {
	seq, err := record.SeqOfHeaderKey(key)
	if err != nil {
		return err
	}
	rec, headers, settings, err := c.headersOf(seq, all)
	if err != nil {
		return err
	}
	for _, h := range headers {
		if h.Value == "" || !bytes.Equal(key, record.AppendHeaderKey(nil, h.Name, h.Value, seq)) {
			continue
		}
		if len(value) > 0 || !record.Indexes(settings, h.Name) && !c.meta.Walk.Unsure(seq, h.Name) {
			break
		}
		return nil
	}
	return fmt.Errorf("header entry %x belongs to no header that the topic of job %d (there: %t) indexes", key, seq, rec != nil)
}

// checkIndexed checks that no entry is missing.
func (c *checker) checkIndexed(all map[string]*jobpb.TopicSettings) error {
	return c.scan(record.SpaceSpec, func(key, value []byte) error {
		seq, err := record.SeqOfKey(key)
		if err != nil {
			return err
		}
		if spec, _, err := record.DecodeSpec(value); err != nil || spec.Options == "" {
			return err
		}
		_, headers, settings, err := c.headersOf(seq, all)
		if err != nil {
			return err
		}
		for _, h := range headers {
			if h.Value == "" || !record.Indexes(settings, h.Name) || c.meta.Walk.Unsure(seq, h.Name) {
				continue
			}
			found := false
			err := record.ReadKey(c.r, record.AppendHeaderKey(nil, h.Name, h.Value, seq), func([]byte) error { found = true; return nil })
			if err == nil && !found {
				err = fmt.Errorf("job %d has the header %q, which its topic indexes, but is missing from the header index", seq, h.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// headersOf returns a job, nil if there is none, its headers and the settings of its topic.
func (c *checker) headersOf(seq uint64, all map[string]*jobpb.TopicSettings) (*record.Job, []*jobpb.Header, *jobpb.TopicSettings, error) {
	rec, err := record.ReadJob(c.r, seq, false)
	if err != nil || rec == nil {
		return nil, nil, nil, err
	}
	headers, err := rec.Spec.Headers()
	if err != nil {
		return nil, nil, nil, err
	}
	name, err := record.TopicName(c.r, rec.Topic())
	return rec, headers, all[name], err
}
