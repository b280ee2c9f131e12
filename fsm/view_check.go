package fsm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
)

// Check reads the whole state and returns the first inconsistency: a job that is not in
// exactly one list, a wrong counter, a record without owner. Its memory grows with the
// topics, not with the jobs.
func (v *View) Check() error { return v.CheckWith(nil) }

// CheckWith is Check that calls looked, unless that is nil, with the number of records that it has
// looked at, now and then and at its end.
func (v *View) CheckWith(looked func(records uint64)) error {
	return v.read(func(r pebble.Reader) (err error) {
		m, err := readMeta(r)
		if err != nil {
			return err
		}
		near, err := newLookups(r, spaceSpec, spaceStatus, spaceIndex, spaceID)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, near.close()) }()
		c := &checker{view: v, r: near, looked: looked, meta: m, topics: make(map[uint32]*topicRecord), found: make(map[listID]uint64), urgent: make(map[uint32]uint64), heads: make(map[listID]place), expiring: make(map[uint32]uint64), deadlines: make(map[uint32]uint64), pushURLs: make(map[uint32]uint64), bytes: make(map[uint32]uint64)}
		for _, step := range [...]func() error{c.readTopics, c.readDueChanges, c.checkIndex, c.checkDueCounts, c.checkDeadGroups, c.checkCounts, c.checkJobs, c.checkStatuses, c.checkIDs, c.checkSettings, c.checkHeaders, c.checkSchedules, c.checkTokens, c.checkAdmission, c.checkNamespaces, c.checkUpload, c.checkSpaces} {
			err := step()
			if errors.Is(err, ErrViewEnded) {
				return err
			}
			if err != nil {
				return fmt.Errorf("the state is inconsistent: %w", err)
			}
		}
		if looked != nil {
			looked(c.records)
		}
		return nil
	})
}

type checker struct {
	view   *View
	r      pebble.Reader
	meta   meta
	topics map[uint32]*topicRecord
	found  map[listID]uint64 // index entries by list
	urgent map[uint32]uint64 // ready jobs that are urgent, by topic
	heads  map[listID]place  // the first of each list
	listed uint64            // index entries in all, except those of listExpiring and listDeadline
	named  uint64            // jobs with a producer's id
	// expiring counts, by topic, the ready jobs that must be listed as expiring.
	expiring map[uint32]uint64
	// deadlines counts, by topic, the waiting jobs with an expiry of their own.
	deadlines map[uint32]uint64
	pushURLs  map[uint32]uint64 // jobs with a push_url, except retained ones, by topic
	bytes     map[uint32]uint64 // of the bodies of all jobs, by topic
	due       dueChecker
	looked    func(records uint64)
	records   uint64 // that were looked at
}

// tellEvery is after how many records looked is called.
const tellEvery = 1 << 14

func (c *checker) scan(space byte, f func(key, value []byte) error) error {
	return c.view.scan(c.r, []byte{space}, []byte{space + 1}, func(key, value []byte) error {
		if c.records++; c.looked != nil && c.records%tellEvery == 0 {
			c.looked(c.records)
		}
		return f(key, value)
	})
}

func (c *checker) readTopics() error {
	err := c.scan(spaceTopic, func(key, value []byte) error {
		rec, err := decodeTopic(value)
		if err != nil {
			return err
		}
		if c.topics[rec.number] != nil {
			return fmt.Errorf("topic %q shares its number %d with another", key[1:], rec.number)
		}
		c.topics[rec.number] = &rec
		name, err := topicName(c.r, rec.number)
		if err != nil || name != string(key[1:]) {
			return fmt.Errorf("topic %q has number %d, which is named %q (%w)", key[1:], rec.number, name, err)
		}
		if rec.jobs() > 0 && rec.emptySince > c.meta.maxClock() {
			return fmt.Errorf("topic %q is empty since an instant ahead of the clock", name)
		}
		if err := c.checkBucket(name, &rec); err != nil {
			return err
		}
		if (rec.pausedUntil == 0) != (rec.pauseMS == 0) {
			return fmt.Errorf("topic %q is paused until %d, but for %d ms", name, rec.pausedUntil, rec.pauseMS)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := 0
	if err := c.scan(spaceNumber, func(_, _ []byte) error { names++; return nil }); err != nil {
		return err
	}
	if names != len(c.topics) {
		return fmt.Errorf("%d topic numbers have a name, but there are %d topics", names, len(c.topics))
	}
	return nil
}

// checkBucket checks that a topic has a bucket if and only if it has a rate, and that the
// bucket does not overflow.
func (c *checker) checkBucket(name string, rec *topicRecord) error {
	s, err := readSettings(c.r, name)
	if err != nil {
		return err
	}
	rate, b := rateOf(s), rec.bucket
	if (rate.perMS != 0) != (b != nil) {
		return fmt.Errorf("topic %q has the rate %d, but its bucket is %+v", name, rate.perMS, b)
	}
	if b != nil && (b.tokens < 0 || b.tokens > rate.burst || b.since > b.at || b.at > c.meta.maxClock()) {
		return fmt.Errorf("topic %q has the bucket %+v at a burst of %d and the clock %d", name, *b, rate.burst, c.meta.maxClock())
	}
	return nil
}

// checkIndex checks every index entry against the records of its job. These allow one
// place, or two while the job waits: delayed or ready.
func (c *checker) checkIndex() error {
	return c.scan(spaceIndex, func(key, value []byte) error {
		l, p, err := decodeIndex(key, value)
		if err != nil {
			return err
		}
		rec, err := readJob(c.r, p.seq, false)
		if err != nil {
			return err
		}
		if rec == nil || rec.topic() != l.topic {
			return fmt.Errorf("index entry %x lists a job that is not in that topic", key)
		}
		list, err := listOf(c.r, c.meta.maxClock(), rec)
		if err != nil {
			return err
		}
		topic := c.topics[l.topic]
		if topic == nil {
			return fmt.Errorf("index entry %x is of a topic that does not exist", key)
		}
		indexed := topic.isExpiryIndexed(rec.place(listReady))
		expiring := l.list == listExpiring && list == listReady
		beside := expiring || l.list == listDeadline && rec.hasDeadline(list)
		if l.list == list && rec.hasDeadline(list) {
			c.deadlines[l.topic]++
		}
		if l.list == list && list != listEnded && rec.spec.hasPushURL() {
			c.pushURLs[l.topic]++
		}
		switch {
		case expiring && !indexed:
			return fmt.Errorf("job %d is listed as expiring, but its topic has not come to it yet", p.seq)
		case indexed && l.list == listReady:
			c.expiring[l.topic]++
		}
		if want := rec.place(l.list); (list != l.list && !beside) || p != want {
			return fmt.Errorf("job %d is %s with place %+v, but is listed in %s at %+v", p.seq, list, want, l.list, p)
		}
		if list != listDelayed && list != listEnded && rec.status.dueMS > c.meta.maxClock() {
			return fmt.Errorf("job %d is %s before its due instant %d", p.seq, list, rec.status.dueMS)
		}
		if c.found[l] == 0 {
			p.carried = 0
			c.heads[l] = p
		}
		c.found[l]++
		if l.list == listDelayed {
			if err := c.countDelayed(l.topic, p); err != nil {
				return err
			}
		}
		if l.list == listDead {
			if err := c.checkGrouped(l.topic, rec, p); err != nil {
				return err
			}
		}
		if isUrgent(l.list, p) {
			c.urgent[l.topic]++
		}
		if beside {
			return nil
		}
		c.bytes[l.topic] += uint64(rec.bodyLen)
		c.listed++
		return nil
	})
}

func (c *checker) checkCounts() error {
	var sums [listCount]uint64
	for _, rec := range c.topics {
		for s, n := range rec.counts {
			sums[s] += n
		}
	}
	if st := &c.meta.state; st.counts != sums || int(st.topics) != len(c.topics) {
		return fmt.Errorf("the state counts %v jobs by list in %d topics; it has %v in %d", st.counts, st.topics, sums, len(c.topics))
	}
	for number, rec := range c.topics {
		if rec.urgent != c.urgent[number] {
			return fmt.Errorf("topic %d counts %d urgent jobs, its list has %d", number, rec.urgent, c.urgent[number])
		}
		if rec.counts[listExpiring] != c.expiring[number] {
			return fmt.Errorf("topic %d has %d ready jobs that are to be in its expiring list, which has %d", number, c.expiring[number], rec.counts[listExpiring])
		}
		if rec.counts[listDeadline] != c.deadlines[number] {
			return fmt.Errorf("topic %d has %d waiting jobs with an expiry of their own, but counts %d in their list", number, c.deadlines[number], rec.counts[listDeadline])
		}
		if rec.pushURLs != c.pushURLs[number] {
			return fmt.Errorf("topic %d counts %d jobs with a push_url, its lists have %d", number, rec.pushURLs, c.pushURLs[number])
		}
		if rec.bytes != c.bytes[number] {
			return fmt.Errorf("topic %d counts %d bytes of bodies, its jobs have %d", number, rec.bytes, c.bytes[number])
		}
		for list, count := range rec.counts {
			l := listID{number, listKind(list)}
			if c.found[l] != count {
				return fmt.Errorf("topic %d counts %d jobs in %s, its list has %d", number, count, l.list, c.found[l])
			}
			if rec.heads[list] != c.heads[l] {
				return fmt.Errorf("topic %d has %+v at the head of %s, its list has %+v", number, rec.heads[list], l.list, c.heads[l])
			}
			delete(c.found, l)
		}
	}
	for l, n := range c.found {
		return fmt.Errorf("%d jobs are listed in topic %d, which does not exist", n, l.topic)
	}
	return nil
}

// checkJobs checks that every job is listed. checkIndex found each entry to be its job's
// only valid one, so comparing the counts is enough.
func (c *checker) checkJobs() error {
	var jobs uint64
	err := c.scan(spaceSpec, func(key, value []byte) error {
		jobs++
		seq, err := seqOfKey(key)
		if err != nil {
			return err
		}
		if seq == 0 || seq >= c.meta.state.nextSeq {
			return fmt.Errorf("job %d is outside the seqs given so far, 1 to %d", seq, c.meta.state.nextSeq-1)
		}
		o, _, err := decodeSpec(value)
		if err != nil {
			return err
		}
		if o.id == "" {
			return nil
		}
		c.named++
		named, _, err := findID(c.r, 0, o.id, nil)
		if err == nil && named != seq {
			err = fmt.Errorf("job %d has the id %q, which leads to job %d", seq, o.id, named)
		}
		return err
	})
	if err == nil && jobs != c.listed {
		err = fmt.Errorf("there are %d jobs, but %d are listed", jobs, c.listed)
	}
	return err
}

func (c *checker) checkStatuses() error {
	return c.scan(spaceStatus, func(key, value []byte) error {
		seq, err := seqOfKey(key)
		if err != nil {
			return err
		}
		rec, err := readJob(c.r, seq, false)
		if err == nil && rec == nil {
			err = fmt.Errorf("a state is kept of job %d, which does not exist", seq)
		}
		if err == nil && c.meta.migrating == nil && value[0] != statusFormat(c.meta.version) {
			err = fmt.Errorf("the state kept of job %d has format %d, at cluster version %d", seq, value[0], c.meta.version)
		}
		if err == nil {
			_, _, err = decodeHistory(rec.status.history, rec.spec.createdMS)
		}
		if err == nil && rec.status.phase < phaseDead && rec.status.maxAttempts != 0 && rec.status.attempts > rec.status.maxAttempts {
			err = fmt.Errorf("job %d has had %d attempts of %d", seq, rec.status.attempts, rec.status.maxAttempts)
		}
		return err
	})
}

func (c *checker) checkIDs() error {
	var ids uint64
	err := c.scan(spaceID, func(_, _ []byte) error { ids++; return nil })
	if err == nil && ids != c.named {
		err = fmt.Errorf("%d ids are kept, but %d jobs have one", ids, c.named)
	}
	return err
}

func (c *checker) checkSettings() error {
	all, err := readAllSettings(c.r)
	if err != nil {
		return err
	}
	for name, s := range all {
		if err := job.CheckSettings(s); err != nil {
			return fmt.Errorf("settings of topic %q: %w", name, err)
		}
	}
	return nil
}

// checkSpaces finds keys outside the known keyspaces.
func (c *checker) checkSpaces() error {
	known := append([]byte{spaceMeta}, digestSpaces[:]...)
	isKnown := make(map[byte]bool)
	for _, s := range known {
		isKnown[s] = true
	}
	for s := 0; s < 256; s++ {
		if isKnown[byte(s)] {
			continue
		}
		upper := []byte{byte(s) + 1}
		if s == 255 {
			upper = nil
		}
		err := c.view.scan(c.r, []byte{byte(s)}, upper, func(key, _ []byte) error {
			return fmt.Errorf("key %x is in no known keyspace", key)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTokens reads all tokens: each must decode, and have a revision that was given.
func (c *checker) checkTokens() error {
	_, err := readAuth(c.r)
	return err
}

// checkAdmission reads the record of who may become a member: it must decode, and be the only one
// of its keyspace.
func (c *checker) checkAdmission() error {
	if _, err := readAdmission(c.r); err != nil {
		return err
	}
	return c.view.scan(c.r, append(bytes.Clone(keyAdmission), 0), []byte{spaceAdmission + 1}, func(key, _ []byte) error {
		return fmt.Errorf("key %x is not that of the record of admission", key)
	})
}

// checkSchedules checks that each schedule has both its records, an instant only while it
// is not paused, and a revision of its own.
func (c *checker) checkSchedules() error {
	revisions := make(map[uint64]string)
	err := c.scan(spaceSchedule, func(key, value []byte) error {
		if len(key) < 3 || key[1] != scheduleDef && key[1] != scheduleState {
			return fmt.Errorf("schedule key %x is malformed", key)
		}
		name := string(key[2:])
		s, err := readSchedule(c.r, name)
		if err == nil && s == nil {
			err = errors.New("it has a definition but no state")
		}
		if err != nil || key[1] == scheduleDef {
			return err
		}
		st := s.State
		switch other := revisions[st.Revision]; {
		case st.Revision == 0 || st.Revision >= c.meta.state.nextSeq || st.LastSeq >= c.meta.state.nextSeq:
			return fmt.Errorf("schedule %q has revision %d and job %d; the last number given is %d", name, st.Revision, st.LastSeq, c.meta.state.nextSeq-1)
		case other != "":
			return fmt.Errorf("schedules %q and %q share revision %d", other, name, st.Revision)
		case st.NextMs != 0 && (st.Paused || st.Unplanned), st.Paused && st.Unplanned, st.Trouble != "" && !st.Paused:
			return fmt.Errorf("schedule %q has the next instant %d, paused %t, unplanned %t, trouble %q", name, st.NextMs, st.Paused, st.Unplanned, st.Trouble)
		case len(st.Past) > job.PastRuns:
			return fmt.Errorf("schedule %q remembers %d runs", name, len(st.Past))
		}
		revisions[st.Revision] = name
		return nil
	})
	return err
}
