package view

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Jobs returns a page of jobs. The cost of a page is bounded (lister.full), however many
// jobs there are: so it may be short or empty, and still have a next one.
func (v *View) Jobs(q *jobpb.JobQuery) (page *jobpb.JobPage, err error) {
	if err := job.CheckJobQuery(q); err != nil {
		return nil, err
	}
	err = v.With(func(r pebble.Reader) error {
		page, _, err = v.List(r, q)
		return err
	})
	return page, err
}

// List also returns how many entries it examined.
func (v *View) List(r pebble.Reader, q *jobpb.JobQuery) (*jobpb.JobPage, int, error) {
	m, err := record.ReadMeta(r)
	if err != nil {
		return nil, 0, err
	}
	l := &lister{view: v, r: r, q: q, clockMS: m.MaxClock(), page: &jobpb.JobPage{}}
	switch {
	case q.ByHeader:
		err = l.byHeader(&m.Walk)
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
	var topic record.Topic
	err := record.ReadKey(l.r, record.AppendNameKey(nil, record.SpaceTopic, l.q.Topic), func(value []byte) (err error) {
		topic, err = record.DecodeTopic(value)
		return err
	})
	if err != nil {
		return err
	}
	after := record.ListOfState(l.q.After.GetState())
	for list := record.ListDelayed; int(list) <= record.StateLists; list++ {
		if !l.wants(list) || list < after || topic.Counts[list] == 0 {
			continue
		}
		var behind record.Place
		if list == after {
			behind = record.PlaceOf(l.q.After.Place)
		}
		// Before the head there are only tombstones.
		from := topic.Heads[list]
		if behind.Next().Compare(from) > 0 {
			from = behind.Next()
		}
		if list == record.ListDead && l.q.Filter != nil && l.q.Filter.ExactReason != nil {
			if err := l.walkGroup(record.DeadGroup{Topic: topic.Number, Reason: *l.q.Filter.ExactReason}, behind, from); err != nil || l.page.Next != nil {
				return err
			}
			continue
		}
		if err := l.walk(record.ListID{Topic: topic.Number, List: list}, behind, from); err != nil || l.page.Next != nil {
			return err
		}
	}
	return nil
}

// wants reports whether the query includes a list. Retained jobs are included only on
// request.
func (l *lister) wants(list record.List) bool {
	if l.q.State == jobpb.State_STATE_NONE {
		return list != record.ListEnded
	}
	return list == record.ListOfState(l.q.State)
}

// walk adds the jobs of one list that are behind the place after and not before from. In
// lists that are ordered by due instant it skips what is outside the filter's range.
func (l *lister) walk(id record.ListID, after, from record.Place) (err error) {
	s, err := record.PlacesFrom(l.r, id, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		p, ok, err := s.Peek()
		if err != nil || !ok {
			return err
		}
		if l.view.ended.Load() {
			return ErrEnded
		}
		if l.full() {
			l.page.Next = &jobpb.JobMark{State: id.List.State(record.PhaseFinished), Place: after.Proto()}
			return nil
		}
		l.scanned++
		after = p
		if id.List.ByDue() {
			to, skip := skipTo(p, l.q.Filter)
			if skip && to.Compare(p) <= 0 {
				return nil
			}
			if skip {
				s.Seek(id, to)
				continue
			}
		}
		s.Step()
		rec, err := record.ReadJob(l.r, p.Seq, l.q.Body)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("topic number %d lists job %d in %s, but the job does not exist", id.Topic, p.Seq, id.List)
		}
		if id.List == record.ListEnded && rec.State(id.List) != l.q.State {
			l.read += rec.BodyLen
			continue
		}
		if err := l.add(rec, id.List, l.q.Topic); err != nil {
			return err
		}
	}
}

// walkGroup is walk for a group of the dead jobs.
func (l *lister) walkGroup(g record.DeadGroup, after, from record.Place) error {
	return record.EachDeadJob(l.r, g, from, func(p record.Place) error {
		if l.view.ended.Load() {
			return ErrEnded
		}
		if l.full() {
			l.page.Next = &jobpb.JobMark{State: jobpb.State_STATE_DEAD, Place: after.Proto()}
			return record.ErrEnough
		}
		l.scanned++
		after = p
		rec, err := record.ReadJob(l.r, p.Seq, l.q.Body)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("job %d is grouped with dead ones, but does not exist", p.Seq)
		}
		return l.add(rec, record.ListDead, l.q.Topic)
	})
}

// skipTo returns where to continue in a list that is ordered by (priority, due instant) if
// p is outside the filter's range of due instants. If that is not behind p, the rest of the
// list is outside too.
func skipTo(p record.Place, f *jobpb.Filter) (to record.Place, skip bool) {
	from, end := f.GetDueFromMs(), f.GetDueToMs()
	switch {
	case p.Instant < from:
		return record.Place{Priority: p.Priority, Instant: from}, true
	case end == 0 || p.Instant < end:
		return record.Place{}, false
	case p.Priority == 1<<32-1:
		return record.Place{}, true
	}
	return record.Place{Priority: p.Priority + 1, Instant: from}, true
}

// byID lists the jobs whose ids have a prefix.
func (l *lister) byID() error {
	prefix := l.q.Filter.IdPrefix
	lower := record.AppendNameKey(nil, record.SpaceID, prefix)
	upper := append(record.AppendNameKey(nil, record.SpaceID, prefix), 0xff) // no UTF-8 has this byte
	if after := l.q.After.GetId(); after >= prefix {
		lower = append(record.AppendNameKey(nil, record.SpaceID, after), 0)
	}
	last := ""
	return l.view.Scan(l.r, lower, upper, func(key, value []byte) error {
		if l.full() {
			l.page.Next = &jobpb.JobMark{Id: last}
			return record.ErrEnough
		}
		l.scanned++
		last = string(key[1:])
		seq, err := record.DecodeSeq(value)
		if err != nil {
			return err
		}
		return l.addBySeq(seq)
	})
}

// addBySeq is add for a job that an id led to.
func (l *lister) addBySeq(seq uint64) error {
	rec, err := record.ReadJob(l.r, seq, l.q.Body)
	if err != nil {
		return err
	}
	if rec == nil {
		return fmt.Errorf("an id leads to job %d, which does not exist", seq)
	}
	t, err := l.topic(rec.Topic())
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
	name, err := record.TopicName(l.r, number)
	if err != nil {
		return nil, err
	}
	settings, err := record.ReadSettings(l.r, name)
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
func (l *lister) addOf(rec *record.Job, t *listedTopic) error {
	if l.q.Topic != "" && t.name != l.q.Topic {
		l.read += rec.BodyLen
		return nil
	}
	list, err := record.ListOf(l.r, l.clockMS, rec)
	if err != nil {
		return err
	}
	if !l.wants(list) || list == record.ListEnded && rec.State(list) != l.q.State {
		l.read += rec.BodyLen
		return nil
	}
	return l.add(rec, list, t.name)
}

// add adds a job to the page if the filter selects it.
func (l *lister) add(rec *record.Job, list record.List, topic string) error {
	l.read += rec.BodyLen
	ok, err := record.Matches(l.q.Filter, rec)
	if !ok || err != nil {
		return err
	}
	j, err := l.view.describe(l.r, rec, list, topic)
	if err != nil {
		return err
	}
	l.page.Jobs = append(l.page.Jobs, j)
	l.bytes += len(rec.Body) + len(rec.Spec.Options) + len(rec.Status.Reason) + len(rec.Status.LastError)
	return nil
}

// JobsByID returns the jobs with the first of the ids, in their order, as Job does but
// without their histories. An empty job stands for an id that no job has. It ends, after at
// least one, where a page of a listing would (lister.full).
func (v *View) JobsByID(q *jobpb.JobsByID) (jobs []*jobpb.Job, err error) {
	if err := job.CheckJobsByID(q); err != nil {
		return nil, err
	}
	ids := q.Ids
	err = v.With(func(r pebble.Reader) error {
		m, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		l := &lister{view: v, r: r, q: &jobpb.JobQuery{Max: uint32(len(ids)), Body: q.Body}, clockMS: m.MaxClock(), page: &jobpb.JobPage{}}
		for _, id := range ids {
			if l.full() {
				break
			}
			j, err := l.find(id)
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
		return nil
	})
	return jobs, err
}

// find adds the job with an id to the page and returns it; an empty one if there is none.
func (l *lister) find(id string) (*jobpb.Job, error) {
	none := &jobpb.Job{}
	seq, fromServer, err := record.FindID(l.r, l.view.shard, id, nil)
	if err != nil || seq == 0 {
		return none, err
	}
	rec, err := record.ReadJob(l.r, seq, l.q.Body)
	if err != nil || rec == nil {
		return none, err
	}
	if fromServer && rec.Spec.ID != "" {
		return none, nil // it has an id of its own
	}
	t, err := l.topic(rec.Topic())
	if err != nil {
		return none, err
	}
	list, err := record.ListOf(l.r, l.clockMS, rec)
	if err != nil {
		return none, err
	}
	if err := l.add(rec, list, t.name); err != nil {
		return none, err
	}
	return l.page.Jobs[len(l.page.Jobs)-1], nil
}
