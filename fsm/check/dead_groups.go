package check

import (
	"fmt"

	"tarry/fsm/internal/record"
)

// checkGrouped checks that a dead job is in its group.
func (c *checker) checkGrouped(topic uint32, rec *record.Job, p record.Place) error {
	grouped := false
	key := record.DeadGroup{Topic: topic, Reason: rec.DeadReason()}.AppendJobKey(nil, p)
	err := record.ReadKey(c.r, key, func([]byte) error { grouped = true; return nil })
	if err == nil && !grouped {
		err = fmt.Errorf("job %d is dead with the reason %.40q, but is not in that group of its topic", rec.Seq, rec.DeadReason())
	}
	return err
}

// checkDeadGroups checks that no group has other jobs than those that checkGrouped has
// found, and that all counts are those of the jobs.
func (c *checker) checkDeadGroups() error {
	groups, err := c.checkDeadJobs()
	if err != nil {
		return err
	}
	counted, reasons, err := c.checkDeadCounts()
	switch {
	case err != nil:
		return err
	case counted != groups:
		return fmt.Errorf("%d groups of dead jobs have a count, but %d have jobs", counted, groups)
	case reasons != c.meta.State.DeadReasons:
		return fmt.Errorf("dead jobs have %d reasons, the state counts %d", reasons, c.meta.State.DeadReasons)
	}
	var sizes uint64
	err = c.scan(record.SpaceDead, func(key, _ []byte) error {
		switch {
		case len(key) > 1 && key[1] == record.DeadSizes:
			sizes++
		case len(key) < 2 || key[1] != record.DeadJobs && key[1] != record.DeadCounts:
			return fmt.Errorf("%x: %w", key, record.ErrDeadKey)
		}
		return nil
	})
	if err == nil && sizes != groups+reasons {
		err = fmt.Errorf("%d groups of dead jobs are listed by size, there are %d", sizes, groups+reasons)
	}
	return err
}

func (c *checker) scanDead(part byte, f func(key, value []byte) error) error {
	return c.view.Scan(c.r, []byte{record.SpaceDead, part}, []byte{record.SpaceDead, part + 1}, f)
}

// checkDeadJobs compares the number of jobs of each group with its count, and returns how
// many groups there are.
func (c *checker) checkDeadJobs() (groups uint64, err error) {
	var last record.DeadGroup
	var jobs, all uint64
	compare := func() error {
		if jobs == 0 {
			return nil
		}
		groups++
		all += jobs
		count, err := record.ReadDeadCount(c.r, last.AppendCountKey(nil))
		if err == nil && count != (record.DeadCount{Jobs: jobs}) {
			err = fmt.Errorf("topic %d counts %+v dead jobs with the reason %.40q, its group has %d", last.Topic, count, last.Reason, jobs)
		}
		return err
	}
	err = c.scanDead(record.DeadJobs, func(key, _ []byte) error {
		topic, reason, _, err := record.DecodeDeadJob(key)
		if err != nil {
			return err
		}
		if topic != last.Topic || string(reason) != last.Reason {
			if err := compare(); err != nil {
				return err
			}
			last, jobs = record.DeadGroup{Topic: topic, Reason: string(reason)}, 0
		}
		jobs++
		return nil
	})
	if err == nil {
		err = compare()
	}
	if err == nil && all != c.meta.State.Counts[record.ListDead] {
		err = fmt.Errorf("%d jobs are in groups of dead ones, the state counts %d dead jobs", all, c.meta.State.Counts[record.ListDead])
	}
	return groups, err
}

// checkDeadCounts checks that the counts of all topics are the sums of the others and that
// each is listed by its size. It returns how many there are of topics, and of all topics.
func (c *checker) checkDeadCounts() (groups, reasons uint64, err error) {
	var reason string
	var all, sum record.DeadCount
	compare := func() error {
		if all != sum {
			return fmt.Errorf("all topics count %+v dead jobs with the reason %.40q, together they have %+v", all, reason, sum)
		}
		return nil
	}
	err = c.scanDead(record.DeadCounts, func(key, value []byte) error {
		topic, text, err := record.DecodeDeadCountKey(key)
		if err != nil {
			return err
		}
		count, err := record.DecodeDeadCount(value)
		if err != nil {
			return err
		}
		g := record.DeadGroup{Topic: topic, Reason: string(text)}
		listed := false
		err = record.ReadKey(c.r, g.AppendSizeKey(nil, count.Size()), func([]byte) error { listed = true; return nil })
		if err != nil || !listed {
			return fmt.Errorf("group %.40q of dead jobs of topic %d is not listed by its size (%w)", g.Reason, topic, err)
		}
		if topic == record.AllTopics {
			err = compare()
			reasons++
			reason, all, sum = g.Reason, count, record.DeadCount{}
			return err
		}
		if g.Reason != reason {
			return fmt.Errorf("topic %d counts dead jobs with the reason %.40q, all topics have none", topic, g.Reason)
		}
		groups++
		sum.Jobs += count.Jobs
		sum.Topics++
		return nil
	})
	if err == nil {
		err = compare()
	}
	return groups, reasons, err
}
