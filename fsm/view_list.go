package fsm

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// Jobs returns a page of jobs. The cost of a page is bounded (lister.full), however many
// jobs there are: so it may be short or empty, and still have a next one.
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

// list also returns how many entries it examined.
func (v *View) list(r pebble.Reader, q *jobpb.JobQuery) (*jobpb.JobPage, int, error) {
	m, err := readMeta(r)
	if err != nil {
		return nil, 0, err
	}
	l := &lister{view: v, r: r, q: q, clockMS: m.maxClock(), page: &jobpb.JobPage{}}
	switch {
	case q.ByHeader:
		err = l.byHeader(&m.walk)
	case q.Filter.GetIdPrefix() != "":
		err = l.byID()
	default:
		err = l.byState()
	}
	v.examined.Add(uint64(l.scanned))
	return l.page, l.scanned, err
}

// lister builds one page.
type lister struct {
	view    *View
	r       pebble.Reader
	q       *jobpb.JobQuery
	clockMS int64
	page    *jobpb.JobPage
	topics  map[uint32]*listedTopic // cached, when jobs of several topics are listed
	scanned int                     // entries
	read    int                     // bytes of the records
	bytes   int                     // of the page
}

// listReadBytes bounds the records that are read for one page: large bodies are most of a
// page's cost.
const listReadBytes = 64 << 20

// full reports whether the page has to end here.
func (l *lister) full() bool {
	return len(l.page.Jobs) >= int(l.q.Max) || l.scanned >= job.MaxListScan ||
		l.read >= listReadBytes || l.bytes >= job.MaxListBytes
}

// byState lists the jobs of a topic, list by list.
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
		if !l.wants(list) || list < after || topic.counts[list] == 0 {
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
		if list == listDead && l.q.Filter != nil && l.q.Filter.ExactReason != nil {
			if err := l.walkGroup(deadGroup{topic.number, *l.q.Filter.ExactReason}, behind, from); err != nil || l.page.Next != nil {
				return err
			}
			continue
		}
		if err := l.walk(listID{topic.number, list}, behind, from); err != nil || l.page.Next != nil {
			return err
		}
	}
	return nil
}

// wants reports whether the query includes a list. Retained jobs are included only on
// request.
func (l *lister) wants(list listKind) bool {
	if l.q.State == jobpb.State_STATE_NONE {
		return list != listEnded
	}
	return list == listOfState(l.q.State)
}

// walk adds the jobs of one list that are behind the place after and not before from. In
// lists that are ordered by due instant it skips what is outside the filter's range.
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
		l.scanned++
		after = p
		if id.list.byDue() {
			to, skip := skipTo(p, l.q.Filter)
			if skip && to.compare(p) <= 0 {
				return nil
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
		if err := l.add(rec, id.list, l.q.Topic); err != nil {
			return err
		}
	}
}

// walkGroup is walk for a group of the dead jobs.
func (l *lister) walkGroup(g deadGroup, after, from place) error {
	return eachDeadJob(l.r, g, from, func(p place) error {
		if l.view.ended.Load() {
			return ErrViewEnded
		}
		if l.full() {
			l.page.Next = &jobpb.JobMark{State: jobpb.State_STATE_DEAD, Place: after.proto()}
			return errEnough
		}
		l.scanned++
		after = p
		rec, err := readJob(l.r, p.seq, l.q.Body)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("job %d is grouped with dead ones, but does not exist", p.seq)
		}
		return l.add(rec, listDead, l.q.Topic)
	})
}

// skipTo returns where to continue in a list that is ordered by (priority, due instant) if
// p is outside the filter's range of due instants. If that is not behind p, the rest of the
// list is outside too.
func skipTo(p place, f *jobpb.Filter) (to place, skip bool) {
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

// byID lists the jobs whose ids have a prefix.
func (l *lister) byID() error {
	prefix := l.q.Filter.IdPrefix
	lower := appendNameKey(nil, spaceID, prefix)
	upper := append(appendNameKey(nil, spaceID, prefix), 0xff) // no UTF-8 has this byte
	if after := l.q.After.GetId(); after >= prefix {
		lower = append(appendNameKey(nil, spaceID, after), 0)
	}
	last := ""
	return l.view.scan(l.r, lower, upper, func(key, value []byte) error {
		if l.full() {
			l.page.Next = &jobpb.JobMark{Id: last}
			return errEnough
		}
		l.scanned++
		last = string(key[1:])
		seq, err := decodeSeq(value)
		if err != nil {
			return err
		}
		return l.addBySeq(seq)
	})
}

// addBySeq is add for a job that an id led to.
func (l *lister) addBySeq(seq uint64) error {
	rec, err := readJob(l.r, seq, l.q.Body)
	if err != nil {
		return err
	}
	if rec == nil {
		return fmt.Errorf("an id leads to job %d, which does not exist", seq)
	}
	t, err := l.topic(rec.topic())
	if err != nil {
		return err
	}
	return l.addOf(rec, t)
}

// listedTopic is a topic that the page has met.
type listedTopic struct {
	name     string
	settings *jobpb.TopicSettings
}

func (l *lister) topic(number uint32) (*listedTopic, error) {
	if t := l.topics[number]; t != nil {
		return t, nil
	}
	name, err := topicName(l.r, number)
	if err != nil {
		return nil, err
	}
	settings, err := readSettings(l.r, name)
	if err != nil {
		return nil, err
	}
	if l.topics == nil {
		l.topics = make(map[uint32]*listedTopic)
	}
	t := &listedTopic{name, settings}
	l.topics[number] = t
	return t, nil
}

// addOf is add for a job of any topic and list.
func (l *lister) addOf(rec *record, t *listedTopic) error {
	if l.q.Topic != "" && t.name != l.q.Topic {
		l.read += rec.bodyLen
		return nil
	}
	list, err := listOf(l.r, l.clockMS, rec)
	if err != nil {
		return err
	}
	if !l.wants(list) || list == listEnded && rec.state(list) != l.q.State {
		l.read += rec.bodyLen
		return nil
	}
	return l.add(rec, list, t.name)
}

// add adds a job to the page if the filter selects it.
func (l *lister) add(rec *record, list listKind, topic string) error {
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
