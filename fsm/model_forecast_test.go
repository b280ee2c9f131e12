package fsm

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// forecast counts the delayed jobs of a topic, or of all.
func (m *model) forecast(q *jobpb.ForecastQuery) *jobpb.Forecast {
	f := &jobpb.Forecast{Jobs: make([]uint64, q.Steps)}
	for _, j := range m.jobs {
		if j.State != jobpb.State_STATE_DELAYED || q.Topic != "" && j.Topic != q.Topic {
			continue
		}
		if j.DueMs < q.NowMs/60_000*60_000 {
			f.Overdue++
		}
		switch step := (j.DueMs - q.FromMs) / q.StepMs; {
		case j.DueMs < q.FromMs:
			f.Before++
		case step >= int64(q.Steps):
			f.After++
		default:
			f.Jobs[step]++
		}
	}
	return f
}

// dueTopics returns the topics with delayed jobs that are due within a time.
func (m *model) dueTopics(q *jobpb.DueTopicsQuery) *jobpb.DueTopics {
	jobs := map[string]uint64{}
	due := &jobpb.DueTopics{}
	for _, j := range m.jobs {
		if j.State == jobpb.State_STATE_DELAYED && j.DueMs >= q.FromMs && j.DueMs < q.UntilMs {
			jobs[j.Topic]++
			due.Jobs++
		}
	}
	names := slices.SortedFunc(maps.Keys(jobs), func(a, b string) int {
		return cmp.Or(cmp.Compare(jobs[b], jobs[a]), cmp.Compare(m.topics[a].number, m.topics[b].number))
	})
	for _, name := range names[:min(len(names), int(q.Max))] {
		due.Topics = append(due.Topics, &jobpb.DueTopic{Topic: name, Jobs: jobs[name]})
	}
	return due
}

// compareForecasts compares forecasts at random, and others that begin with the first job.
func (s *simulation) compareForecasts(v *view.View) {
	pick := func(of ...int64) int64 { return of[s.trouble.IntN(len(of))] }
	first := s.model.clock
	for _, j := range s.model.jobs {
		if j.State == jobpb.State_STATE_DELAYED {
			first = min(first, j.DueMs)
		}
	}
	for _, topic := range append(slices.Collect(maps.Keys(s.model.topics)), "", "none") {
		q := &jobpb.ForecastQuery{
			Topic: topic, FromMs: pick(0, first, first, s.model.clock, s.model.clock+maxDelay/2) / record.MinuteMS * record.MinuteMS,
			StepMs: record.MinuteMS * pick(1, 1, 60, 24*60, 400*24*60), NowMs: s.model.clock + pick(0, 0, 90_000, maxDelay),
		}
		q.Steps = uint32(min(pick(1, 2, 60, 1500), 400*24*hourMS/q.StepMs))
		got, err := v.Forecast(q)
		require.NoError(s.t, err)
		want := s.model.forecast(q)
		require.Truef(s.t, proto.Equal(want, got), "%v\nwant %v\ngot  %v", q, want, got)
	}
	for range 5 {
		q := &jobpb.DueTopicsQuery{FromMs: pick(first, s.model.clock) / record.MinuteMS * record.MinuteMS, Max: uint32(pick(1, 3, 1000))}
		q.UntilMs = q.FromMs + record.MinuteMS*pick(1, 60, 31*24*60)
		got, err := v.DueTopics(q)
		require.NoError(s.t, err)
		want := s.model.dueTopics(q)
		require.Truef(s.t, proto.Equal(want, got), "%v\nwant %v\ngot  %v", q, want, got)
	}
}
