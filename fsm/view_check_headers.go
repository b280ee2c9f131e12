package fsm

import (
	"bytes"
	"fmt"

	"tarry/job/jobpb"
)

// checkHeaders checks that the header index has an entry for each header for which a job has
// a value and that its topic indexes, and no other, except where a walk is unsure; and that
// the index counts the topics of each header.
func (c *checker) checkHeaders() error {
	all, err := readAllSettings(c.r)
	if err != nil {
		return err
	}
	counts := make(map[string]uint32)
	for _, s := range all {
		for _, name := range s.GetIndexHeaders() {
			counts[name]++
		}
	}
	if w := &c.meta.walk; w.next > w.limit || w.limit > c.meta.state.nextSeq || w.underWay() != (len(w.names) > 0) {
		return fmt.Errorf("the walk over headers is at job %d of %d, for %d headers", w.next, w.limit, len(w.names))
	}
	named := 0
	err = c.scan(spaceHeader, func(key, value []byte) error {
		if len(key) < 3 {
			return fmt.Errorf("header key %x is malformed", key)
		}
		if key[1] == headerEntries {
			return c.checkEntry(key, value, all)
		}
		n, err := decodeHeaderCount(value)
		if err == nil && (key[1] != headerNames || counts[string(key[2:])] != n) {
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
	seq, err := seqOfHeaderKey(key)
	if err != nil {
		return err
	}
	rec, headers, settings, err := c.headersOf(seq, all)
	if err != nil {
		return err
	}
	for _, h := range headers {
		if h.Value == "" || !bytes.Equal(key, appendHeaderKey(nil, h.Name, h.Value, seq)) {
			continue
		}
		if len(value) > 0 || !indexes(settings, h.Name) && !c.meta.walk.unsure(seq, h.Name) {
			break
		}
		return nil
	}
	return fmt.Errorf("header entry %x belongs to no header that the topic of job %d (there: %t) indexes", key, seq, rec != nil)
}

// checkIndexed checks that no entry is missing.
func (c *checker) checkIndexed(all map[string]*jobpb.TopicSettings) error {
	return c.scan(spaceSpec, func(key, value []byte) error {
		seq, err := seqOfKey(key)
		if err != nil {
			return err
		}
		if spec, _, err := decodeSpec(value); err != nil || spec.options == "" {
			return err
		}
		_, headers, settings, err := c.headersOf(seq, all)
		if err != nil {
			return err
		}
		for _, h := range headers {
			if h.Value == "" || !indexes(settings, h.Name) || c.meta.walk.unsure(seq, h.Name) {
				continue
			}
			found := false
			err := readKey(c.r, appendHeaderKey(nil, h.Name, h.Value, seq), func([]byte) error { found = true; return nil })
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
func (c *checker) headersOf(seq uint64, all map[string]*jobpb.TopicSettings) (*record, []*jobpb.Header, *jobpb.TopicSettings, error) {
	rec, err := readJob(c.r, seq, false)
	if err != nil || rec == nil {
		return nil, nil, nil, err
	}
	headers, err := rec.spec.headers()
	if err != nil {
		return nil, nil, nil, err
	}
	name, err := topicName(c.r, rec.topic())
	return rec, headers, all[name], err
}
