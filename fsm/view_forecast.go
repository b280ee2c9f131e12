package fsm

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// Forecast returns how many delayed jobs are due in each of some steps. It reads due counts
// (index_due_counts.go): one record for each period up to the last step, however many jobs
// there are. The counts are zero if there is no such topic.
func (v *View) Forecast(q *jobpb.ForecastQuery) (f *jobpb.Forecast, err error) {
	if err := job.CheckForecast(q); err != nil {
		return nil, err
	}
	from, step := q.FromMs/minuteMS, q.StepMs/minuteMS
	now := max(q.NowMs, 0) / minuteMS
	end := from + step*int64(q.Steps)
	var before, after, overdue int64
	jobs := make([]int64, q.Steps)
	err = v.read(func(r pebble.Reader) error {
		topic, delayed, err := delayedOf(r, q.Topic)
		if err != nil || delayed == 0 {
			return err
		}
		after = int64(delayed)
		return v.eachDueCount(r, topic, max(end, now), func(minute, n int64) {
			if minute < now {
				overdue += n
			}
			if minute >= end {
				return
			}
			after -= n
			if minute < from {
				before += n
			} else {
				jobs[(minute-from)/step] += n
			}
		})
	})
	f = &jobpb.Forecast{Before: uint64(before), After: uint64(after), Overdue: uint64(overdue), Jobs: make([]uint64, len(jobs))}
	for i, n := range jobs {
		f.Jobs[i] = uint64(n)
	}
	return f, err
}

// delayedOf returns the number of a topic, and how many delayed jobs it has; without a name,
// allTopics and how many there are in all.
func delayedOf(r pebble.Reader, name string) (number uint32, delayed uint64, err error) {
	if name == "" {
		m, err := readMeta(r)
		return allTopics, m.state.counts[listDelayed], err
	}
	err = readKey(r, appendNameKey(nil, spaceTopic, name), func(value []byte) error {
		rec, err := decodeTopic(value)
		number, delayed = rec.number, rec.counts[listDelayed]
		return err
	})
	return number, delayed, err
}

// eachDueCount calls f for the due counts of a topic, or of all, before the minute end. The
// counts of a minute are the sum of several calls, of which some may be negative.
func (v *View) eachDueCount(r pebble.Reader, topic uint32, end int64, f func(minute, n int64)) error {
	m, err := readMeta(r)
	if err != nil {
		return err
	}
	changes, err := readDueChanges(r, &m.state)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if minute := int64(c.at.minute()); minute < end && (topic == allTopics || c.at.topic() == topic) {
			f(minute, c.jobs)
		}
	}
	first, err := v.firstDuePeriod(r)
	var counts []dueCount
	for period := first; err == nil && int64(period)*duePeriod < end; period++ {
		if v.ended.Load() {
			return ErrViewEnded
		}
		err = readKey(r, appendDueKey(nil, period, topic), func(value []byte) (err error) {
			counts, err = decodeDueCounts(counts[:0], value)
			for _, c := range counts {
				if minute := int64(c.at.minute()); minute < end {
					f(minute, c.jobs)
				}
			}
			return err
		})
	}
	return err
}

// firstDuePeriod returns the first period that has a record, or the last that there can be.
func (v *View) firstDuePeriod(r pebble.Reader) (first uint32, err error) {
	first = math.MaxUint32 / duePeriod
	err = v.scan(r, appendDueKey(nil, 0, 0), []byte{spaceDue + 1}, func(key, _ []byte) error {
		if first, _, err = decodeDueKey(key); err != nil {
			return err
		}
		return errEnough
	})
	return first, err
}

// DueTopics returns the topics of which most jobs are due within a time. It reads the due
// counts of all topics for that time.
func (v *View) DueTopics(q *jobpb.DueTopicsQuery) (*jobpb.DueTopics, error) {
	if err := job.CheckDueTopics(q); err != nil {
		return nil, err
	}
	due := &jobpb.DueTopics{}
	err := v.read(func(r pebble.Reader) error {
		jobs, err := v.dueByTopic(r, q.FromMs/minuteMS, q.UntilMs/minuteMS)
		if err != nil {
			return err
		}
		numbers := slices.Collect(maps.Keys(jobs))
		slices.SortFunc(numbers, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(jobs[b], jobs[a]), cmp.Compare(a, b))
		})
		for _, number := range numbers {
			n := uint64(jobs[number])
			due.Jobs += n
			if n == 0 || len(due.Topics) == int(q.Max) {
				continue
			}
			name, err := topicName(r, number)
			if err != nil {
				return err
			}
			due.Topics = append(due.Topics, &jobpb.DueTopic{Topic: name, Jobs: n})
		}
		return nil
	})
	return due, err
}

// dueByTopic counts the jobs that are due from one minute to another, which is not included,
// by topic number.
func (v *View) dueByTopic(r pebble.Reader, from, until int64) (map[uint32]int64, error) {
	m, err := readMeta(r)
	if err != nil {
		return nil, err
	}
	jobs := make(map[uint32]int64)
	add := func(counts []dueCount) {
		for _, c := range counts {
			if minute := int64(c.at.minute()); minute >= from && minute < until {
				jobs[c.at.topic()] += c.jobs
			}
		}
	}
	counts, err := readDueChanges(r, &m.state)
	if err != nil {
		return nil, err
	}
	add(counts)
	first, end := uint32(from/duePeriod), uint32((until+duePeriod-1)/duePeriod)
	err = v.scan(r, appendDueKey(nil, first, 0), appendDueKey(nil, end, 0), func(key, value []byte) error {
		_, topic, err := decodeDueKey(key)
		if err != nil || topic == allTopics {
			return err
		}
		if counts, err = decodeDueCounts(counts[:0], value); err != nil {
			return err
		}
		add(counts)
		return nil
	})
	return jobs, err
}
