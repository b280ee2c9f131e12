package check

import (
	"fmt"
	"slices"

	"tarry/fsm/internal/record"
)

// topicPeriod is a period of a topic.
type topicPeriod struct{ topic, period uint32 }

func periodOf(m record.TopicMinute) topicPeriod { return topicPeriod{m.Topic(), m.Period()} }

// dueChecker compares due counts with the lists of delayed jobs. It holds one period of one
// topic at a time.
type dueChecker struct {
	// changes are the counts that are not in the records yet.
	changes map[topicPeriod][]record.DueCount
	listed  []record.DueCount // of the period of the last delayed job
	periods int               // that have delayed jobs
}

// readDueChanges reads the changes that the records of due counts do not have.
func (c *checker) readDueChanges() error {
	st := &c.meta.State
	if len(st.RecentDue) > record.DueRecent {
		return fmt.Errorf("the state record has %d changes of due counts", len(st.RecentDue))
	}
	changes, err := record.ReadDueChanges(c.r, st)
	if err != nil {
		return err
	}
	c.due.changes = make(map[topicPeriod][]record.DueCount)
	for _, change := range changes {
		p := periodOf(change.At)
		c.due.changes[p] = append(c.due.changes[p], change)
	}
	return nil
}

// countDelayed counts a delayed job. Jobs are counted in the order of topics and due instants.
func (c *checker) countDelayed(topic uint32, p record.Place) error {
	at := record.TopicMinuteOf(topic, p.Instant)
	listed := &c.due.listed
	if n := len(*listed); n > 0 {
		last := &(*listed)[n-1]
		if last.At == at {
			last.Jobs++
			return nil
		}
		if periodOf(last.At) != periodOf(at) {
			if err := c.checkDuePeriod(); err != nil {
				return err
			}
		}
	}
	*listed = append(*listed, record.DueCount{At: at, Jobs: 1})
	return nil
}

// checkDuePeriod compares the counts of one period of a topic with the list.
func (c *checker) checkDuePeriod() error {
	if len(c.due.listed) == 0 {
		return nil
	}
	p := periodOf(c.due.listed[0].At)
	counts, err := record.ReadDueCounts(c.r, record.AppendDueKey(nil, p.period, p.topic))
	if err != nil {
		return err
	}
	if counts = record.AddSums(nil, counts, c.due.changes[p]); !slices.Equal(counts, c.due.listed) {
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
	var all, sum []record.DueCount // of one period: of AllTopics, and the sum of the topics
	var last uint32
	periods := 0
	compare := func() error {
		if !slices.Equal(all, sum) {
			return fmt.Errorf("in period %d all topics count the delayed jobs %v by minute, together they have %v", last, all, sum)
		}
		all, sum = nil, nil
		return nil
	}
	err := c.view.Scan(c.r, []byte{record.SpaceDue, 0}, []byte{record.SpaceDue + 1}, func(key, value []byte) error {
		period, topic, err := record.DecodeDueKey(key)
		if err != nil {
			return err
		}
		if period != last {
			if err := compare(); err != nil {
				return err
			}
			last = period
		}
		counts, err := record.DecodeDueCounts(nil, value)
		if err != nil {
			return err
		}
		p := topicPeriod{topic, period}
		if len(counts) == 0 || periodOf(counts[0].At) != p || periodOf(counts[len(counts)-1].At) != p {
			return fmt.Errorf("due counts of period %d and topic %d are %v", period, topic, counts)
		}
		if topic == record.AllTopics {
			all = counts
			return nil
		}
		if len(record.AddSums(nil, counts, c.due.changes[p])) > 0 {
			periods++
		}
		delete(c.due.changes, p)
		for i := range counts {
			counts[i].At = record.TopicMinute(counts[i].At.Minute())
		}
		sum = record.AddSums(nil, sum, counts)
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
