package fsm

import (
	"fmt"
	"slices"
)

// topicPeriod is a period of a topic.
type topicPeriod struct{ topic, period uint32 }

func (m topicMinute) inPeriod() topicPeriod { return topicPeriod{m.topic(), m.period()} }

// dueChecker compares due counts with the lists of delayed jobs. It holds one period of one
// topic at a time.
type dueChecker struct {
	// changes are the counts that are not in the records yet.
	changes map[topicPeriod][]dueCount
	listed  []dueCount // of the period of the last delayed job
	periods int        // that have delayed jobs
}

// readDueChanges reads the changes that the records of due counts do not have.
func (c *checker) readDueChanges() error {
	st := &c.meta.state
	if len(st.recentDue) > dueRecent {
		return fmt.Errorf("the state record has %d changes of due counts", len(st.recentDue))
	}
	changes, err := readDueChanges(c.r, st)
	if err != nil {
		return err
	}
	c.due.changes = make(map[topicPeriod][]dueCount)
	for _, change := range changes {
		p := change.at.inPeriod()
		c.due.changes[p] = append(c.due.changes[p], change)
	}
	return nil
}

// countDelayed counts a delayed job. Jobs are counted in the order of topics and due instants.
func (c *checker) countDelayed(topic uint32, p place) error {
	at := topicMinuteOf(topic, p.instant)
	listed := &c.due.listed
	if n := len(*listed); n > 0 {
		last := &(*listed)[n-1]
		if last.at == at {
			last.jobs++
			return nil
		}
		if last.at.inPeriod() != at.inPeriod() {
			if err := c.checkDuePeriod(); err != nil {
				return err
			}
		}
	}
	*listed = append(*listed, dueCount{at, 1})
	return nil
}

// checkDuePeriod compares the counts of one period of a topic with the list.
func (c *checker) checkDuePeriod() error {
	if len(c.due.listed) == 0 {
		return nil
	}
	p := c.due.listed[0].at.inPeriod()
	counts, err := readDueCounts(c.r, appendDueKey(nil, p.period, p.topic))
	if err != nil {
		return err
	}
	if counts = addSums(nil, counts, c.due.changes[p]); !slices.Equal(counts, c.due.listed) {
		return fmt.Errorf("in period %d topic %d counts the delayed jobs %v by minute, its list has %v", p.period, p.topic, counts, c.due.listed)
	}
	c.due.listed = c.due.listed[:0]
	c.due.periods++
	return nil
}

// checkDueCounts checks the records of due counts: that each is of its period and topic, that
// those of all topics are the sums of the others, and that no other counts jobs than those
// that checkDuePeriod has compared.
func (c *checker) checkDueCounts() error {
	if err := c.checkDuePeriod(); err != nil {
		return err
	}
	var all, sum []dueCount // of one period: of allTopics, and the sum of the topics
	var last uint32
	periods := 0
	compare := func() error {
		if !slices.Equal(all, sum) {
			return fmt.Errorf("in period %d all topics count the delayed jobs %v by minute, together they have %v", last, all, sum)
		}
		all, sum = nil, nil
		return nil
	}
	err := c.view.scan(c.r, []byte{spaceDue, 0}, []byte{spaceDue + 1}, func(key, value []byte) error {
		period, topic, err := decodeDueKey(key)
		if err != nil {
			return err
		}
		if period != last {
			if err := compare(); err != nil {
				return err
			}
			last = period
		}
		counts, err := decodeDueCounts(nil, value)
		if err != nil {
			return err
		}
		p := topicPeriod{topic, period}
		if len(counts) == 0 || counts[0].at.inPeriod() != p || counts[len(counts)-1].at.inPeriod() != p {
			return fmt.Errorf("due counts of period %d and topic %d are %v", period, topic, counts)
		}
		if topic == allTopics {
			all = counts
			return nil
		}
		if len(addSums(nil, counts, c.due.changes[p])) > 0 {
			periods++
		}
		delete(c.due.changes, p)
		for i := range counts {
			counts[i].at = topicMinute(counts[i].at.minute())
		}
		sum = addSums(nil, sum, counts)
		return nil
	})
	if err == nil {
		err = compare()
	}
	if periods += len(c.due.changes); err == nil && periods != c.due.periods {
		err = fmt.Errorf("due counts have jobs in %d periods of topics, the lists in %d", periods, c.due.periods)
	}
	return err
}
