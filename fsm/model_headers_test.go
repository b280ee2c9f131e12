package fsm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// modelWalk is a walk over the jobs from before a change of index_headers. limit 0: none.
type modelWalk struct {
	limit, next uint64          // seqs
	names       map[string]bool // the headers that changed; true: some topic began to index it
	justNow     bool            // by the running entry
}

func (m *model) indexes(topic, name string) bool {
	return slices.Contains(m.settings[topic].GetIndexHeaders(), name)
}

func headerSet(s *jobpb.TopicSettings) []string {
	return slices.Sorted(slices.Values(s.GetIndexHeaders()))
}

// reindex begins a walk if the settings of a topic with jobs name other headers.
func (m *model) reindex(topic string, old, made *jobpb.TopicSettings) {
	before, after := headerSet(old), headerSet(made)
	hasJobs := slices.ContainsFunc(m.all(), func(j *modelJob) bool { return j.Topic == topic })
	if slices.Equal(before, after) || !hasJobs {
		return
	}
	names := m.walk.names
	if names == nil {
		names = map[string]bool{}
	}
	for _, name := range before {
		if !slices.Contains(after, name) {
			names[name] = names[name] || false
		}
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			names[name] = true
		}
	}
	m.walk = modelWalk{limit: m.nextSeq, next: 1, names: names, justNow: true}
}

// walkOn processes the next jobs of the walk.
func (m *model) walkOn(most int) {
	w := &m.walk
	if w.limit == 0 || w.justNow {
		return
	}
	left := m.sorted(w.ahead, func(a, b *modelJob) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range left[:min(most, len(left))] {
		w.next = j.Seq + 1
	}
	if len(left) <= most {
		*w = modelWalk{}
	}
}

func (w *modelWalk) ahead(j *modelJob) bool { return j.Seq >= w.next && j.Seq < w.limit }

func badIndex(names []string) bool {
	return len(names) > 4 || slices.Contains(names, "") || len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names)
}

var longValue = strings.Repeat("v", record.HeaderValueMax+1)

// indexHeaders returns what topics index; some of it is refused.
func (s *simulation) indexHeaders() []string {
	return [][]string{{"a"}, {"a"}, {"a", "c"}, {"c", "a"}, {"c"}, {"b", "d"}, {"a", "a"}, {""}, {"a", "b", "c", "d", "e"}}[s.rng.IntN(9)]
}

// jobHeaders returns headers of a job.
func (s *simulation) jobHeaders() []*jobpb.Header {
	return [][]*jobpb.Header{
		{{Name: "a", Value: "1"}, {Name: "b"}}, {{Name: "a", Value: "2"}, {Name: "c", Value: "1"}},
		{{Name: "c", Value: "1"}, {Name: "d", Value: longValue}}, {{Name: "a", Value: longValue}}, {{Name: "d", Value: longValue + "x"}},
	}[s.rng.IntN(5)]
}

// compareFound compares the pages that are found by header with the model's jobs. While a
// walk is under way, jobs that it has yet to process may be missing, as the page reports.
func (s *simulation) compareFound(v *view.View) {
	for _, headers := range [][]*jobpb.Header{
		{{Name: "a", Value: "1"}}, {{Name: "a", Value: "2"}}, {{Name: "a", Value: longValue}}, {{Name: "c", Value: "1"}}, {{Name: "d", Value: longValue}},
		{{Name: "a", Value: "2"}, {Name: "c", Value: "1"}}, {{Name: "c", Value: "1"}, {Name: "d", Value: longValue}}, {{Name: "e", Value: "1"}},
	} {
		q := &jobpb.JobQuery{ByHeader: true, Max: 1 + s.rng.Uint32N(4), State: jobpb.State(s.rng.IntN(7)), Filter: &jobpb.Filter{Headers: headers}}
		if s.rng.IntN(3) == 0 {
			q.Topic = s.topic()
		}
		s.compareQuery(v, q)
	}
}

func (s *simulation) compareQuery(v *view.View, q *jobpb.JobQuery) {
	indexed := func(topic string) int { // the first of the headers that it indexes; -1: none
		return slices.IndexFunc(q.Filter.Headers, func(h *jobpb.Header) bool { return s.model.indexes(topic, h.Name) })
	}
	var misses []string
	known := false
	for _, h := range q.Filter.Headers {
		ok := q.Topic != "" && s.model.indexes(q.Topic, h.Name)
		for topic := range s.model.settings {
			ok = ok || q.Topic == "" && s.model.indexes(topic, h.Name)
		}
		known = known || ok
		if ok && s.model.walk.names[h.Name] {
			misses = append(misses, h.Name)
		}
	}
	var got []uint64
	for {
		page, err := v.Jobs(q)
		if !known {
			require.ErrorContains(s.t, err, "is not indexed by")
			return
		}
		require.NoError(s.t, err)
		require.Equal(s.t, len(misses) > 0, page.Incomplete, "%v", q)
		for _, j := range page.Jobs {
			want := proto.Clone(&s.model.jobs[j.Seq].Job).(*jobpb.Job)
			want.History, want.HistoryDropped, want.Body = nil, 0, nil
			require.Truef(s.t, proto.Equal(want, j), "%v\nwant %v\ngot  %v", q, want, j)
			got = append(got, j.Seq)
		}
		if q.After = page.Next; page.Next == nil {
			break
		}
	}
	want := s.model.sorted(func(j *modelJob) bool {
		return (q.Topic == "" || j.Topic == q.Topic) && (q.State == 0 && !j.ended() || j.State == q.State) && wants(q.Filter, j) && indexed(j.Topic) >= 0
	}, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(indexed(a.Topic), indexed(b.Topic)), cmp.Compare(a.Seq, b.Seq))
	})
	want = slices.DeleteFunc(want, func(j *modelJob) bool {
		missing := len(misses) > 0 && s.model.walk.ahead(j) && slices.Contains(misses, q.Filter.Headers[indexed(j.Topic)].Name)
		return missing && !slices.Contains(got, j.Seq)
	})
	seqs := []uint64{}
	for _, j := range want {
		seqs = append(seqs, j.Seq)
	}
	require.Equal(s.t, seqs, append([]uint64{}, got...), "%v", q)
}
