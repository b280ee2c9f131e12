// Package check reads a whole state: whether its records agree (Records), and a hash that is
// the same on all nodes (Digest). Start with check.go.
package check

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job"
	"tarry/job/slot"
)

// checkUpload compares the parts of an archive with its record.
func (c *checker) checkUpload() error {
	var has, want record.Upload
	err := record.ReadKey(c.r, record.KeyUpload, func(v []byte) (err error) { want, err = record.DecodeUpload(v); return err })
	if err != nil {
		return err
	}
	err = c.scan(record.SpaceUpload, func(key, part []byte) error {
		if at, err := record.SeqOfKey(key); err != nil || at != has.Size {
			return errors.Join(err, fmt.Errorf("the archive has %d bytes before the part at %d", has.Size, at))
		}
		has.Add(part)
		return nil
	})
	if has.ID = want.ID; err == nil && has != want {
		err = fmt.Errorf("the archive has %d bytes, and its record says %d, or another checksum", has.Size, want.Size)
	}
	return err
}

// Records reads the whole state and returns the first inconsistency: a job that is not in
// exactly one list, a wrong counter, a record without owner. Its memory grows with the
// topics, not with the jobs. It calls looked, unless that is nil, with the number of records
// that it has looked at, now and then and at its end.
func Records(v *view.View, looked func(records uint64)) error {
	return v.With(func(r pebble.Reader) (err error) {
		m, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		near, err := record.NewLookups(r, record.SpaceSpec, record.SpaceStatus, record.SpaceIndex, record.SpaceID)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, near.Close()) }()
		c := &checker{
			view:      v,
			r:         near,
			looked:    looked,
			meta:      m,
			topics:    make(map[uint32]*record.Topic),
			found:     make(map[record.ListID]uint64),
			urgent:    make(map[uint32]uint64),
			heads:     make(map[record.ListID]record.Place),
			expiring:  make(map[uint32]uint64),
			deadlines: make(map[uint32]uint64),
			pushURLs:  make(map[uint32]uint64),
			bytes:     make(map[uint32]uint64),
		}
		for _, step := range [...]func() error{
			c.readTopics, c.readDueChanges, c.checkIndex, c.checkDueCounts, c.checkDeadGroups, c.checkCounts,
			c.checkJobs, c.checkStatuses, c.checkIDs, c.checkSettings, c.checkHeaders, c.checkSchedules,
			c.checkTokens, c.checkAdmission, c.checkNamespaces, c.checkUpload, c.checkSpaces,
		} {
			err := step()
			if errors.Is(err, view.ErrEnded) {
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
	view   *view.View
	r      pebble.Reader
	meta   record.Meta
	topics map[uint32]*record.Topic
	found  map[record.ListID]uint64       // index entries by list
	urgent map[uint32]uint64              // ready jobs that are urgent, by topic
	heads  map[record.ListID]record.Place // the first of each list
	listed uint64                         // index entries in all, except those of ListExpiring and ListDeadline
	named  uint64                         // jobs with a producer's id
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
	return c.view.Scan(c.r, []byte{space}, []byte{space + 1}, func(key, value []byte) error {
		if c.records++; c.looked != nil && c.records%tellEvery == 0 {
			c.looked(c.records)
		}
		return f(key, value)
	})
}

func (c *checker) readTopics() error {
	err := c.scan(record.SpaceTopic, func(key, value []byte) error {
		rec, err := record.DecodeTopic(value)
		if err != nil {
			return err
		}
		if c.topics[rec.Number] != nil {
			return fmt.Errorf("topic %q shares its number %d with another", key[1:], rec.Number)
		}
		c.topics[rec.Number] = &rec
		name, err := record.TopicName(c.r, rec.Number)
		if err != nil || name != string(key[1:]) {
			return fmt.Errorf("topic %q has number %d, which is named %q (%w)", key[1:], rec.Number, name, err)
		}
		if rec.Jobs() > 0 && rec.EmptySince > c.meta.MaxClock() {
			return fmt.Errorf("topic %q is empty since an instant ahead of the clock", name)
		}
		if err := c.checkBucket(name, &rec); err != nil {
			return err
		}
		if (rec.PausedUntil == 0) != (rec.PauseMS == 0) {
			return fmt.Errorf("topic %q is paused until %d, but for %d ms", name, rec.PausedUntil, rec.PauseMS)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := 0
	if err := c.scan(record.SpaceNumber, func(_, _ []byte) error { names++; return nil }); err != nil {
		return err
	}
	if names != len(c.topics) {
		return fmt.Errorf("%d topic numbers have a name, but there are %d topics", names, len(c.topics))
	}
	return nil
}

// checkBucket checks that a topic has a bucket if and only if it has a rate, and that the
// bucket does not overflow.
func (c *checker) checkBucket(name string, rec *record.Topic) error {
	s, err := record.ReadSettings(c.r, name)
	if err != nil {
		return err
	}
	rate, b := record.RateOf(s), rec.Bucket
	if (rate.PerMS != 0) != (b != nil) {
		return fmt.Errorf("topic %q has the rate %d, but its bucket is %+v", name, rate.PerMS, b)
	}
	if b != nil && (b.Tokens < 0 || b.Tokens > rate.Burst || b.Since > b.At || b.At > c.meta.MaxClock()) {
		return fmt.Errorf("topic %q has the bucket %+v at a burst of %d and the clock %d", name, *b, rate.Burst, c.meta.MaxClock())
	}
	return nil
}

// checkIndex checks every index entry against the records of its job. These allow one
// place, or two while the job waits: delayed or ready.
func (c *checker) checkIndex() error {
	return c.scan(record.SpaceIndex, func(key, value []byte) error {
		l, p, err := record.DecodeIndex(key, value)
		if err != nil {
			return err
		}
		rec, err := record.ReadJob(c.r, p.Seq, false)
		if err != nil {
			return err
		}
		if rec == nil || rec.Topic() != l.Topic {
			return fmt.Errorf("index entry %x lists a job that is not in that topic", key)
		}
		list, err := record.ListOf(c.r, c.meta.MaxClock(), rec)
		if err != nil {
			return err
		}
		topic := c.topics[l.Topic]
		if topic == nil {
			return fmt.Errorf("index entry %x is of a topic that does not exist", key)
		}
		indexed := topic.IsExpiryIndexed(rec.Place(record.ListReady))
		expiring := l.List == record.ListExpiring && list == record.ListReady
		beside := expiring || l.List == record.ListDeadline && rec.HasDeadline(list)
		if l.List == list && rec.HasDeadline(list) {
			c.deadlines[l.Topic]++
		}
		if l.List == list && list != record.ListEnded && rec.Spec.HasPushURL() {
			c.pushURLs[l.Topic]++
		}
		switch {
		case expiring && !indexed:
			return fmt.Errorf("job %d is listed as expiring, but its topic has not come to it yet", p.Seq)
		case indexed && l.List == record.ListReady:
			c.expiring[l.Topic]++
		}
		if want := rec.Place(l.List); (list != l.List && !beside) || p != want {
			return fmt.Errorf("job %d is %s with place %+v, but is listed in %s at %+v", p.Seq, list, want, l.List, p)
		}
		if list != record.ListDelayed && list != record.ListEnded && rec.Status.DueMS > c.meta.MaxClock() {
			return fmt.Errorf("job %d is %s before its due instant %d", p.Seq, list, rec.Status.DueMS)
		}
		if c.found[l] == 0 {
			p.Carried = 0
			c.heads[l] = p
		}
		c.found[l]++
		if l.List == record.ListDelayed {
			if err := c.countDelayed(l.Topic, p); err != nil {
				return err
			}
		}
		if l.List == record.ListDead {
			if err := c.checkGrouped(l.Topic, rec, p); err != nil {
				return err
			}
		}
		if record.IsUrgent(l.List, p) {
			c.urgent[l.Topic]++
		}
		if beside {
			return nil
		}
		c.bytes[l.Topic] += uint64(rec.BodyLen)
		c.listed++
		return nil
	})
}

func (c *checker) checkCounts() error {
	var sums [record.ListCount]uint64
	for _, rec := range c.topics {
		for s, n := range rec.Counts {
			sums[s] += n
		}
	}
	if st := &c.meta.State; st.Counts != sums || int(st.Topics) != len(c.topics) {
		return fmt.Errorf("the state counts %v jobs by list in %d topics; it has %v in %d", st.Counts, st.Topics, sums, len(c.topics))
	}
	for number, rec := range c.topics {
		if rec.Urgent != c.urgent[number] {
			return fmt.Errorf("topic %d counts %d urgent jobs, its list has %d", number, rec.Urgent, c.urgent[number])
		}
		if rec.Counts[record.ListExpiring] != c.expiring[number] {
			return fmt.Errorf(
				"topic %d has %d ready jobs that are to be in its expiring list, which has %d",
				number, c.expiring[number], rec.Counts[record.ListExpiring])
		}
		if rec.Counts[record.ListDeadline] != c.deadlines[number] {
			return fmt.Errorf(
				"topic %d has %d waiting jobs with an expiry of their own, but counts %d in their list",
				number, c.deadlines[number], rec.Counts[record.ListDeadline])
		}
		if rec.PushURLs != c.pushURLs[number] {
			return fmt.Errorf("topic %d counts %d jobs with a push_url, its lists have %d", number, rec.PushURLs, c.pushURLs[number])
		}
		if rec.Bytes != c.bytes[number] {
			return fmt.Errorf("topic %d counts %d bytes of bodies, its jobs have %d", number, rec.Bytes, c.bytes[number])
		}
		for list, count := range rec.Counts {
			l := record.ListID{Topic: number, List: record.List(list)}
			if c.found[l] != count {
				return fmt.Errorf("topic %d counts %d jobs in %s, its list has %d", number, count, l.List, c.found[l])
			}
			if rec.Heads[list] != c.heads[l] {
				return fmt.Errorf("topic %d has %+v at the head of %s, its list has %+v", number, rec.Heads[list], l.List, c.heads[l])
			}
			delete(c.found, l)
		}
	}
	for l, n := range c.found {
		return fmt.Errorf("%d jobs are listed in topic %d, which does not exist", n, l.Topic)
	}
	return nil
}

// checkJobs checks that every job is listed. checkIndex found each entry to be its job's
// only valid one, so comparing the counts is enough.
func (c *checker) checkJobs() error {
	var jobs uint64
	err := c.scan(record.SpaceSpec, func(key, value []byte) error {
		jobs++
		seq, err := record.SeqOfKey(key)
		if err != nil {
			return err
		}
		if s := c.meta.Sharding; s != nil && s.Group == 0 {
			return fmt.Errorf("the config group has job %d", seq)
		}
		if !c.meta.HasGiven(seq) {
			return fmt.Errorf("job %d is not one of the seqs given so far: every %d. up to %d", seq, c.meta.Stride(), c.meta.State.NextSeq-1)
		}
		o, _, err := record.DecodeSpec(value)
		if err != nil {
			return err
		}
		if o.ID == "" {
			return nil
		}
		if !c.hasSlot(slot.Of(o.ID)) {
			return fmt.Errorf("job %d has the id %q, which is of another shard", seq, o.ID)
		}
		c.named++
		named, _, err := record.FindID(c.r, 0, o.ID, nil)
		if err == nil && named != seq {
			err = fmt.Errorf("job %d has the id %q, which leads to job %d", seq, o.ID, named)
		}
		return err
	})
	if err == nil && jobs != c.listed {
		err = fmt.Errorf("there are %d jobs, but %d are listed", jobs, c.listed)
	}
	return err
}

// hasSlot reports whether the group has a slot.
func (c *checker) hasSlot(of uint32) bool {
	s := c.meta.Sharding
	return s == nil || of%s.Shards == s.Group-1
}

func (c *checker) checkStatuses() error {
	return c.scan(record.SpaceStatus, func(key, value []byte) error {
		seq, err := record.SeqOfKey(key)
		if err != nil {
			return err
		}
		rec, err := record.ReadJob(c.r, seq, false)
		if err == nil && rec == nil {
			err = fmt.Errorf("a state is kept of job %d, which does not exist", seq)
		}
		if err == nil && c.meta.Migrating == nil && value[0] != record.StatusFormat(c.meta.Version) {
			err = fmt.Errorf("the state kept of job %d has format %d, at cluster version %d", seq, value[0], c.meta.Version)
		}
		if err == nil {
			_, _, err = record.DecodeHistory(rec.Status.History, rec.Spec.CreatedMS)
		}
		if err == nil && rec.Status.Phase < record.PhaseDead && rec.Status.MaxAttempts != 0 && rec.Status.Attempts > rec.Status.MaxAttempts {
			err = fmt.Errorf("job %d has had %d attempts of %d", seq, rec.Status.Attempts, rec.Status.MaxAttempts)
		}
		return err
	})
}

func (c *checker) checkIDs() error {
	var ids uint64
	err := c.scan(record.SpaceID, func(_, _ []byte) error { ids++; return nil })
	if err == nil && ids != c.named {
		err = fmt.Errorf("%d ids are kept, but %d jobs have one", ids, c.named)
	}
	return err
}

func (c *checker) checkSettings() error {
	all, err := record.ReadAllSettings(c.r)
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
	known := append([]byte{record.SpaceMeta}, DigestSpaces[:]...)
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
		err := c.view.Scan(c.r, []byte{byte(s)}, upper, func(key, _ []byte) error {
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
	_, err := record.ReadAuth(c.r)
	return err
}

// checkAdmission reads the record of who may become a member: it must decode, and be the only one
// of its keyspace.
func (c *checker) checkAdmission() error {
	if _, err := record.ReadAdmission(c.r); err != nil {
		return err
	}
	return c.view.Scan(c.r, append(bytes.Clone(record.KeyAdmission), 0), []byte{record.SpaceAdmission + 1}, func(key, _ []byte) error {
		return fmt.Errorf("key %x is not that of the record of admission", key)
	})
}

// checkSchedules checks that each schedule has both its records, an instant only while it
// is not paused, and a revision of its own.
func (c *checker) checkSchedules() error {
	revisions := make(map[uint64]string)
	err := c.scan(record.SpaceSchedule, func(key, value []byte) error {
		if len(key) < 3 || key[1] != record.ScheduleDef && key[1] != record.ScheduleState {
			return fmt.Errorf("schedule key %x is malformed", key)
		}
		name := string(key[2:])
		s, err := record.ReadSchedule(c.r, name)
		if err == nil && s == nil {
			err = errors.New("it has a definition but no state")
		}
		if err != nil || key[1] == record.ScheduleDef {
			return err
		}
		if !c.hasSlot(slot.OfSchedule(name)) {
			return fmt.Errorf("schedule %q is of another shard", name)
		}
		st := s.State
		switch other := revisions[st.Revision]; {
		case !c.meta.HasGiven(st.Revision) || st.LastSeq != 0 && !c.meta.HasGiven(st.LastSeq):
			return fmt.Errorf(
				"schedule %q has revision %d and job %d; the last number given is %d", name, st.Revision, st.LastSeq, c.meta.State.NextSeq-1)
		case other != "":
			return fmt.Errorf("schedules %q and %q share revision %d", other, name, st.Revision)
		case st.NextMs != 0 && (st.Paused || st.Unplanned), st.Paused && st.Unplanned, st.Trouble != "" && !st.Paused:
			return fmt.Errorf(
				"schedule %q has the next instant %d, paused %t, unplanned %t, trouble %q", name, st.NextMs, st.Paused, st.Unplanned, st.Trouble)
		case len(st.Past) > job.PastRuns:
			return fmt.Errorf("schedule %q remembers %d runs", name, len(st.Past))
		}
		revisions[st.Revision] = name
		return nil
	})
	return err
}
