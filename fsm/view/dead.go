package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// DeadReasons returns the reasons that most dead jobs of a topic, or of all topics, have. It
// reads the counts of groups (fsm/dead_groups.go) by size, until it has enough or
// job.MaxDeadScan of them. Then it may have missed one of the size of the last, which has
// less than twice its jobs.
func (v *View) DeadReasons(q *jobpb.DeadReasonsQuery) (*jobpb.DeadReasons, error) {
	if err := job.CheckDeadReasons(q); err != nil {
		return nil, err
	}
	a := &jobpb.DeadReasons{}
	err := v.With(func(r pebble.Reader) error {
		m, err := record.ReadMeta(r)
		if err != nil {
			return err
		}
		t := record.Topic{Number: record.AllTopics}
		a.Jobs, a.Reasons = m.State.Counts[record.ListDead], m.State.DeadReasons
		if q.Topic != "" {
			if t, err = topicNamed(r, q.Topic); err != nil {
				return err
			}
			a.Jobs, a.Reasons = t.Counts[record.ListDead], 0
		}
		if a.Jobs == 0 {
			return nil // the number of a topic that does not exist is that of all
		}
		if a.Groups, err = v.largestGroups(r, t.Number, q, a); err != nil {
			return err
		}
		for _, g := range a.Groups {
			if g.Topic = q.Topic; t.Number == record.AllTopics {
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
func topicNamed(r pebble.Reader, name string) (t record.Topic, err error) {
	err = record.ReadKey(r, record.AppendNameKey(nil, record.SpaceTopic, name), func(value []byte) (err error) {
		t, err = record.DecodeTopic(value)
		return err
	})
	return t, err
}

// largestGroups returns the groups of a topic with most jobs, and sets in a whether there
// are more.
func (v *View) largestGroups(r pebble.Reader, topic uint32, q *jobpb.DeadReasonsQuery, a *jobpb.DeadReasons) (groups []*jobpb.DeadGroup, err error) {
	prefix := record.AppendSizesPrefix(nil, topic)
	var last byte
	err = v.Scan(r, prefix, record.KeyAfter(prefix), func(key, _ []byte) error {
		_, size, reason, err := record.DecodeDeadSizeKey(key)
		if err != nil {
			return err
		}
		switch {
		case len(groups) >= int(q.Max) && size != last:
			a.More = true
			return record.ErrEnough // the others are smaller
		case len(groups) == job.MaxDeadScan:
			a.More, a.Incomplete = true, true
			return record.ErrEnough
		}
		last = size
		g := record.DeadGroup{Topic: topic, Reason: string(reason)}
		c, err := record.ReadDeadCount(r, g.AppendCountKey(nil))
		groups = append(groups, &jobpb.DeadGroup{Reason: g.Reason, Jobs: c.Jobs, Topics: c.Topics})
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
func (v *View) describeGroup(r pebble.Reader, t *record.Topic, g *jobpb.DeadGroup) error {
	// Before the head there are only tombstones.
	return record.EachDeadJob(r, record.DeadGroup{Topic: t.Number, Reason: g.Reason}, t.Heads[record.ListDead], func(p record.Place) error {
		rec, err := record.ReadJob(r, p.Seq, false)
		if err != nil {
			return err
		}
		if rec == nil {
			return fmt.Errorf("job %d is grouped with dead ones, but does not exist", p.Seq)
		}
		g.FirstId, g.FirstDiedMs = rec.Name(v.shard), rec.Status.DiedMS()
		return record.ErrEnough
	})
}

// describeAnywhere adds the first job of a group in one of its topics. Which of all died
// first would need a look at each topic.
func (v *View) describeAnywhere(r pebble.Reader, g *jobpb.DeadGroup) error {
	return v.eachDeadTopic(r, g.Reason, func(topic uint32, _ record.DeadCount) error {
		name, err := record.TopicName(r, topic)
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
		return record.ErrEnough
	})
}

// eachDeadTopic calls f for each topic that has dead jobs with a reason.
func (v *View) eachDeadTopic(r pebble.Reader, reason string, f func(topic uint32, c record.DeadCount) error) error {
	lower := record.DeadGroup{Topic: record.AllTopics + 1, Reason: reason}.AppendCountKey(nil)
	return v.Scan(r, lower, record.KeyAfter(record.AppendDeadCountsPrefix(nil, reason)), func(key, value []byte) error {
		topic, _, err := record.DecodeDeadCountKey(key)
		if err != nil {
			return err
		}
		c, err := record.DecodeDeadCount(value)
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
	err := v.With(func(r pebble.Reader) error {
		all, err := record.ReadDeadCount(r, record.DeadGroup{Topic: record.AllTopics, Reason: q.Reason}.AppendCountKey(nil))
		if err != nil {
			return err
		}
		a.Jobs, a.Topics, a.Incomplete = all.Jobs, all.Topics, all.Topics > job.MaxDeadScan
		type topicJobs struct {
			topic uint32
			jobs  uint64
		}
		var topics []topicJobs
		err = v.eachDeadTopic(r, q.Reason, func(topic uint32, c record.DeadCount) error {
			if len(topics) == job.MaxDeadScan {
				return record.ErrEnough
			}
			topics = append(topics, topicJobs{topic, c.Jobs})
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
			if g.Topic, err = record.TopicName(r, t.topic); err != nil {
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
