package fsm

import "fmt"

// checkGrouped checks that a dead job is in its group.
func (c *checker) checkGrouped(topic uint32, rec *record, p place) error {
	grouped := false
	key := deadGroup{topic, rec.deadReason()}.appendJobKey(nil, p)
	err := readKey(c.r, key, func([]byte) error { grouped = true; return nil })
	if err == nil && !grouped {
		err = fmt.Errorf("job %d is dead with the reason %.40q, but is not in that group of its topic", rec.seq, rec.deadReason())
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
	case reasons != c.meta.state.deadReasons:
		return fmt.Errorf("dead jobs have %d reasons, the state counts %d", reasons, c.meta.state.deadReasons)
	}
	var sizes uint64
	err = c.scan(spaceDead, func(key, _ []byte) error {
		switch {
		case len(key) > 1 && key[1] == deadSizes:
			sizes++
		case len(key) < 2 || key[1] != deadJobs && key[1] != deadCounts:
			return fmt.Errorf("%x: %w", key, errDeadKey)
		}
		return nil
	})
	if err == nil && sizes != groups+reasons {
		err = fmt.Errorf("%d groups of dead jobs are listed by size, there are %d", sizes, groups+reasons)
	}
	return err
}

func (c *checker) scanDead(part byte, f func(key, value []byte) error) error {
	return c.view.scan(c.r, []byte{spaceDead, part}, []byte{spaceDead, part + 1}, f)
}

// checkDeadJobs compares the number of jobs of each group with its count, and returns how
// many groups there are.
func (c *checker) checkDeadJobs() (groups uint64, err error) {
	var last deadGroup
	var jobs, all uint64
	compare := func() error {
		if jobs == 0 {
			return nil
		}
		groups++
		all += jobs
		count, err := readDeadCount(c.r, last.appendCountKey(nil))
		if err == nil && count != (deadCount{jobs: jobs}) {
			err = fmt.Errorf("topic %d counts %+v dead jobs with the reason %.40q, its group has %d", last.topic, count, last.reason, jobs)
		}
		return err
	}
	err = c.scanDead(deadJobs, func(key, _ []byte) error {
		topic, reason, _, err := decodeDeadJob(key)
		if err != nil {
			return err
		}
		if topic != last.topic || string(reason) != last.reason {
			if err := compare(); err != nil {
				return err
			}
			last, jobs = deadGroup{topic, string(reason)}, 0
		}
		jobs++
		return nil
	})
	if err == nil {
		err = compare()
	}
	if err == nil && all != c.meta.state.counts[listDead] {
		err = fmt.Errorf("%d jobs are in groups of dead ones, the state counts %d dead jobs", all, c.meta.state.counts[listDead])
	}
	return groups, err
}

// checkDeadCounts checks that the counts of all topics are the sums of the others and that
// each is listed by its size. It returns how many there are of topics, and of all topics.
func (c *checker) checkDeadCounts() (groups, reasons uint64, err error) {
	var reason string
	var all, sum deadCount
	compare := func() error {
		if all != sum {
			return fmt.Errorf("all topics count %+v dead jobs with the reason %.40q, together they have %+v", all, reason, sum)
		}
		return nil
	}
	err = c.scanDead(deadCounts, func(key, value []byte) error {
		topic, text, err := decodeDeadCountKey(key)
		if err != nil {
			return err
		}
		count, err := decodeDeadCount(value)
		if err != nil {
			return err
		}
		g := deadGroup{topic, string(text)}
		listed := false
		err = readKey(c.r, g.appendSizeKey(nil, count.size()), func([]byte) error { listed = true; return nil })
		if err != nil || !listed {
			return fmt.Errorf("group %.40q of dead jobs of topic %d is not listed by its size (%w)", g.reason, topic, err)
		}
		if topic == allTopics {
			err = compare()
			reasons++
			reason, all, sum = g.reason, count, deadCount{}
			return err
		}
		if g.reason != reason {
			return fmt.Errorf("topic %d counts dead jobs with the reason %.40q, all topics have none", topic, g.reason)
		}
		groups++
		sum.jobs += count.jobs
		sum.topics++
		return nil
	})
	if err == nil {
		err = compare()
	}
	return groups, reasons, err
}
