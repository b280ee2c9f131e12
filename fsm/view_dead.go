package fsm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// DeadReasons returns the reasons that most dead jobs of a topic, or of all topics, have. It
// reads the counts of groups (index_dead_groups.go) by size, until it has enough or
// job.MaxDeadScan of them. Then it may have missed one of the size of the last, which has
// less than twice its jobs.
func (v *View) DeadReasons(q *jobpb.DeadReasonsQuery) (*jobpb.DeadReasons, error) {
	if err := job.CheckDeadReasons(q); err != nil {
		return nil, err
	}
	a := &jobpb.DeadReasons{}
	err := v.read(func(r pebble.Reader) error {
		m, err := readMeta(r)
		if err != nil {
			return err
		}
		t := topicRecord{number: allTopics}
		a.Jobs, a.Reasons = m.state.counts[listDead], m.state.deadReasons
		if q.Topic != "" {
			if t, err = topicNamed(r, q.Topic); err != nil {
				return err
			}
			a.Jobs, a.Reasons = t.counts[listDead], 0
		}
		if a.Jobs == 0 {
			return nil // the number of a topic that does not exist is that of all
		}
		if a.Groups, err = v.largestGroups(r, t.number, q, a); err != nil {
			return err
		}
		for _, g := range a.Groups {
			if g.Topic = q.Topic; t.number == allTopics {
				err = v.describeAnywhere(r, g)
			} else {
				err = v.describeGroup(r, &t, g)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return a, err
}

// topicNamed reads the record of a topic; zero: there is none.
func topicNamed(r pebble.Reader, name string) (t topicRecord, err error) {
	err = readKey(r, appendNameKey(nil, spaceTopic, name), func(value []byte) (err error) {
		t, err = decodeTopic(value)
		return err
	})
	return t, err
}

// largestGroups returns the groups of a topic with most jobs, and sets in a whether there
// are more.
func (v *View) largestGroups(r pebble.Reader, topic uint32, q *jobpb.DeadReasonsQuery, a *jobpb.DeadReasons) (groups []*jobpb.DeadGroup, err error) {
	prefix := appendSizesPrefix(nil, topic)
	var last byte
	err = v.scan(r, prefix, keyAfter(prefix), func(key, _ []byte) error {
		_, size, reason, err := decodeDeadSizeKey(key)
		if err != nil {
			return err
		}
		switch {
		case len(groups) >= int(q.Max) && size != last:
			a.More = true
			return errEnough // the others are smaller
		case len(groups) == job.MaxDeadScan:
			a.More, a.Incomplete = true, true
			return errEnough
		}
		last = size
		g := deadGroup{topic, string(reason)}
		c, err := readDeadCount(r, g.appendCountKey(nil))
		groups = append(groups, &jobpb.DeadGroup{Reason: g.reason, Jobs: c.jobs, Topics: c.topics})
		return err
	})
	slices.SortFunc(groups, func(a, b *jobpb.DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Reason, b.Reason))
	})
	if len(groups) > int(q.Max) {
		a.More, groups = true, groups[:q.Max]
	}
	return groups, err
}

// describeGroup adds which job of a group died first, and when.
func (v *View) describeGroup(r pebble.Reader, t *topicRecord, g *jobpb.DeadGroup) error {
	// Before the head there are only tombstones.
	return eachDeadJob(r, deadGroup{t.number, g.Reason}, t.heads[listDead], func(p place) error {
		rec, err := readJob(r, p.seq, false)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("job %d is grouped with dead ones, but does not exist", p.seq)
		}
		g.FirstId, g.FirstDiedMs = rec.name(v.shard), rec.status.diedMS()
		return errEnough
	})
}

// describeAnywhere adds the first job of a group in one of its topics. Which of all died
// first would need a look at each topic.
func (v *View) describeAnywhere(r pebble.Reader, g *jobpb.DeadGroup) error {
	return v.eachDeadTopic(r, g.Reason, func(topic uint32, _ deadCount) error {
		name, err := topicName(r, topic)
		if err != nil {
			return err
		}
		t, err := topicNamed(r, name)
		if err != nil {
			return err
		}
		if err := v.describeGroup(r, &t, g); err != nil {
			return err
		}
		g.FirstDiedMs = 0
		return errEnough
	})
}

// eachDeadTopic calls f for each topic that has dead jobs with a reason.
func (v *View) eachDeadTopic(r pebble.Reader, reason string, f func(topic uint32, c deadCount) error) error {
	lower := deadGroup{allTopics + 1, reason}.appendCountKey(nil)
	return v.scan(r, lower, keyAfter(appendDeadCountsPrefix(nil, reason)), func(key, value []byte) error {
		topic, _, err := decodeDeadCountKey(key)
		if err != nil {
			return err
		}
		c, err := decodeDeadCount(value)
		if err != nil {
			return err
		}
		return f(topic, c)
	})
}

// DeadTopics returns the topics that most dead jobs with a reason are in, of the first
// job.MaxDeadScan topics that have any.
func (v *View) DeadTopics(q *jobpb.DeadTopicsQuery) (*jobpb.DeadTopics, error) {
	if err := job.CheckDeadTopics(q); err != nil {
		return nil, err
	}
	a := &jobpb.DeadTopics{}
	err := v.read(func(r pebble.Reader) error {
		all, err := readDeadCount(r, deadGroup{allTopics, q.Reason}.appendCountKey(nil))
		if err != nil {
			return err
		}
		a.Jobs, a.Topics, a.Incomplete = all.jobs, all.topics, all.topics > job.MaxDeadScan
		type topicJobs struct {
			topic uint32
			jobs  uint64
		}
		var topics []topicJobs
		err = v.eachDeadTopic(r, q.Reason, func(topic uint32, c deadCount) error {
			if len(topics) == job.MaxDeadScan {
				return errEnough
			}
			topics = append(topics, topicJobs{topic, c.jobs})
			return nil
		})
		if err != nil {
			return err
		}
		slices.SortFunc(topics, func(a, b topicJobs) int {
			return cmp.Or(cmp.Compare(b.jobs, a.jobs), cmp.Compare(a.topic, b.topic))
		})
		for _, t := range topics[:min(len(topics), int(q.Max))] {
			g := &jobpb.DeadGroup{Reason: q.Reason, Jobs: t.jobs}
			if g.Topic, err = topicName(r, t.topic); err != nil {
				return err
			}
			rec, err := topicNamed(r, g.Topic)
			if err != nil {
				return err
			}
			if err := v.describeGroup(r, &rec, g); err != nil {
				return err
			}
			a.Groups = append(a.Groups, g)
		}
		return nil
	})
	return a, err
}
