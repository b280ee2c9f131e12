package view

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Forecast returns how many delayed jobs are due in each of some steps. It reads due counts
// (fsm/due_counts.go): one record for each period up to the last step, however many jobs
// there are. The counts are zero if there is no such topic.
func (v *View) Forecast(q *jobpb.ForecastQuery) (f *jobpb.Forecast, err error) {
	if err := job.CheckForecast(q); err != nil {
		return nil, err
	}
	from, step := q.FromMs/record.MinuteMS, q.StepMs/record.MinuteMS
	now := max(q.NowMs, 0) / record.MinuteMS
	end := from + step*int64(q.Steps)
	var before, after, overdue int64
	jobs := make([]int64, q.Steps)
	err = v.With(func(r pebble.Reader) error {
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
// AllTopics and how many there are in all.
func delayedOf(r pebble.Reader, name string) (number uint32, delayed uint64, err error) {
	if name == "" {
		m, err := record.ReadMeta(r)
		return record.AllTopics, m.State.Counts[record.ListDelayed], err
	}
	err = record.ReadKey(r, record.AppendNameKey(nil, record.SpaceTopic, name), func(value []byte) error {
		rec, err := record.DecodeTopic(value)
		number, delayed = rec.Number, rec.Counts[record.ListDelayed]
		return err
	})
	return number, delayed, err
}

// eachDueCount calls f for the due counts of a topic, or of all, before the minute end. The
// counts of a minute are the sum of several calls, of which some may be negative.
func (v *View) eachDueCount(r pebble.Reader, topic uint32, end int64, f func(minute, n int64)) error {
	m, err := record.ReadMeta(r)
	if err != nil {
		return err
	}
	changes, err := record.ReadDueChanges(r, &m.State)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if minute := int64(c.At.Minute()); minute < end && (topic == record.AllTopics || c.At.Topic() == topic) {
			f(minute, c.Jobs)
		}
	}
	first, err := v.firstDuePeriod(r)
	var counts []record.DueCount
	for period := first; err == nil && int64(period)*record.DuePeriod < end; period++ {
		if v.ended.Load() {
			return ErrEnded
		}
		err = record.ReadKey(r, record.AppendDueKey(nil, period, topic), func(value []byte) (err error) {
			counts, err = record.DecodeDueCounts(counts[:0], value)
			for _, c := range counts {
				if minute := int64(c.At.Minute()); minute < end {
					f(minute, c.Jobs)
				}
			}
			return err
		})
	}
	return err
}

// firstDuePeriod returns the first period that has a record, or the last that there can be.
func (v *View) firstDuePeriod(r pebble.Reader) (first uint32, err error) {
	first = math.MaxUint32 / record.DuePeriod
	err = v.Scan(r, record.AppendDueKey(nil, 0, 0), []byte{record.SpaceDue + 1}, func(key, _ []byte) error {
		if first, _, err = record.DecodeDueKey(key); err != nil {
			return err
		}
		return record.ErrEnough
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
	err := v.With(func(r pebble.Reader) error {
		jobs, err := v.dueByTopic(r, q.FromMs/record.MinuteMS, q.UntilMs/record.MinuteMS)
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
			name, err := record.TopicName(r, number)
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
	m, err := record.ReadMeta(r)
	if err != nil {
		return nil, err
	}
	jobs := make(map[uint32]int64)
	add := func(counts []record.DueCount) {
		for _, c := range counts {
			if minute := int64(c.At.Minute()); minute >= from && minute < until {
				jobs[c.At.Topic()] += c.Jobs
			}
		}
	}
	counts, err := record.ReadDueChanges(r, &m.State)
	if err != nil {
		return nil, err
	}
	add(counts)
	first, end := uint32(from/record.DuePeriod), uint32((until+record.DuePeriod-1)/record.DuePeriod)
	err = v.Scan(r, record.AppendDueKey(nil, first, 0), record.AppendDueKey(nil, end, 0), func(key, value []byte) error {
		_, topic, err := record.DecodeDueKey(key)
		if err != nil || topic == record.AllTopics {
			return err
		}
		if counts, err = record.DecodeDueCounts(counts[:0], value); err != nil {
			return err
		}
		add(counts)
		return nil
	})
	return jobs, err
}
