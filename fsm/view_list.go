package fsm

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// Jobs gives a page of jobs as job.JobQuery describes it; a query that
// job.CheckJobQuery refuses is refused. A page costs what it looks at, at most
// job.MaxListScan entries, however many jobs there are: it may end short, even
// without any job, and still have a next.
func (v *View) Jobs(q *jobpb.JobQuery) (page *jobpb.JobPage, err error) {
	if err := job.CheckJobQuery(q); err != nil {
		return nil, err
	}
	err = v.read(func(r pebble.Reader) error {
		page, _, err = v.list(r, q)
		return err
	})
	return page, err
}

// list also says how many entries it looked at.
func (v *View) list(r pebble.Reader, q *jobpb.JobQuery) (*jobpb.JobPage, int, error) {
	m, err := readMeta(r)
	if err != nil {
		return nil, 0, err
	}
	l := &lister{view: v, r: r, q: q, clockMS: m.reached(), page: &jobpb.JobPage{}}
	if q.Filter.GetIdPrefix() != "" {
		err = l.byID()
	} else {
		err = l.byState()
	}
	return l.page, l.looked, err
}

// lister puts one page together.
type lister struct {
	view    *View
	r       pebble.Reader
	q       *jobpb.JobQuery
	clockMS int64
	page    *jobpb.JobPage
	looked  int
	read    int // bytes of the records that were looked at
	bytes   int // bytes of the page
}

// listReadBytes bounds the records that are read for one page: with large bodies
// they are what a page costs.
const listReadBytes = 64 << 20

// full reports whether the page has to end here.
func (l *lister) full() bool {
	return len(l.page.Jobs) >= int(l.q.Max) || l.looked >= job.MaxListScan ||
		l.read >= listReadBytes || l.bytes >= job.MaxListBytes
}

// byState walks over the lists of the topic.
func (l *lister) byState() error {
	var topic topicRecord
	err := readKey(l.r, appendNameKey(nil, spaceTopic, l.q.Topic), func(value []byte) (err error) {
		topic, err = decodeTopic(value)
		return err
	})
	if err != nil {
		return err
	}
	after := listOfState(l.q.After.GetState())
	for list := listDelayed; int(list) <= stateLists; list++ {
		if !l.asksFor(list) || list < after || topic.counts[list] == 0 {
			continue
		}
		var behind place
		if list == after {
			behind = placeOf(l.q.After.Place)
		}
		// Before the head there are only tombstones.
		from := topic.heads[list]
		if behind.next().compare(from) > 0 {
			from = behind.next()
		}
		if err := l.walk(listID{topic.number, list}, behind, from); err != nil || l.page.Next != nil {
			return err
		}
	}
	return nil
}

// asksFor reports whether the page shows a list. The jobs that are only retained are
// shown when they are asked for.
func (l *lister) asksFor(list listKind) bool {
	if l.q.State == jobpb.State_STATE_NONE {
		return list != listEnded
	}
	return list == listOfState(l.q.State)
}

// walk adds the jobs of one list that are behind a place, the first of which is
// not before from. In the lists that are ordered by due instant it jumps over what
// is outside the range of the filter.
func (l *lister) walk(id listID, after, from place) error {
	s, err := placesFrom(l.r, id, from)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		p, ok, err := s.peek()
		if err != nil || !ok {
			return err
		}
		if l.view.ended.Load() {
			return ErrViewEnded
		}
		if l.full() {
			l.page.Next = &jobpb.JobMark{State: id.list.state(phaseFinished), Place: after.proto()}
			return nil
		}
		l.looked++
		after = p
		if id.list.byDue() {
			to, skip := leap(p, l.q.Filter)
			if skip && to.compare(p) <= 0 {
				return nil // there is nothing behind it
			}
			if skip {
				s.seek(id, to)
				continue
			}
		}
		s.step()
		rec, err := readJob(l.r, p.seq, l.q.Body)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("topic number %d lists job %d in %s, but the job does not exist", id.topic, p.seq, id.list)
		}
		if id.list == listEnded && rec.state(id.list) != l.q.State {
			l.read += rec.bodyLen
			continue
		}
		if err := l.offer(rec, id.list, l.q.Topic); err != nil {
			return err
		}
	}
}

// leap says where a list that is ordered by (priority, due instant) goes on when
// a place is outside the filter's range of due instants. A leap that does not
// lead on ends the list.
func leap(p place, f *jobpb.Filter) (to place, skip bool) {
	from, end := f.GetDueFromMs(), f.GetDueToMs()
	switch {
	case p.instant < from:
		return place{priority: p.priority, instant: from}, true
	case end == 0 || p.instant < end:
		return place{}, false
	case p.priority == 1<<32-1:
		return place{}, true
	}
	return place{priority: p.priority + 1, instant: from}, true
}

// byID walks over the ids of producers.
func (l *lister) byID() error {
	prefix := l.q.Filter.IdPrefix
	lower := appendNameKey(nil, spaceID, prefix)
	upper := append(appendNameKey(nil, spaceID, prefix), 0xff) // no UTF-8 has this byte
	if after := l.q.After.GetId(); after >= prefix {
		lower = append(appendNameKey(nil, spaceID, after), 0)
	}
	topics := map[uint32]string{}
	last := ""
	return l.view.scan(l.r, lower, upper, func(key, value []byte) error {
		if l.full() {
			l.page.Next = &jobpb.JobMark{Id: last}
			return errEnough
		}
		l.looked++
		last = string(key[1:])
		seq, err := decodeSeq(value)
		if err != nil {
			return err
		}
		return l.named(seq, topics)
	})
}

// named offers the job that an id names.
func (l *lister) named(seq uint64, topics map[uint32]string) error {
	rec, err := readJob(l.r, seq, l.q.Body)
	if err != nil {
		return err
	}
	if rec == nil {
		return fmt.Errorf("an id leads to job %d, which does not exist", seq)
	}
	name, known := topics[rec.topic()]
	if !known {
		if name, err = topicName(l.r, rec.topic()); err != nil {
			return err
		}
		topics[rec.topic()] = name
	}
	if l.q.Topic != "" && name != l.q.Topic {
		l.read += rec.bodyLen
		return nil
	}
	list, err := listOf(l.r, l.clockMS, rec)
	if err != nil {
		return err
	}
	if !l.asksFor(list) || list == listEnded && rec.state(list) != l.q.State {
		l.read += rec.bodyLen
		return nil
	}
	return l.offer(rec, list, name)
}

// offer adds a job to the page if the filter means it.
func (l *lister) offer(rec *record, list listKind, topic string) error {
	l.read += rec.bodyLen
	ok, err := matches(l.q.Filter, rec)
	if !ok || err != nil {
		return err
	}
	j, err := l.view.describe(l.r, rec, list, topic)
	if err != nil {
		return err
	}
	l.page.Jobs = append(l.page.Jobs, j)
	l.bytes += len(rec.body) + len(rec.spec.options) + len(rec.status.reason) + len(rec.status.lastError)
	return nil
}
