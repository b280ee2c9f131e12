package fsm

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// deadReasons are those that jobs are buried and released with. The last two are one when cut.
var deadReasons = []string{"", "r", "rr", strings.Repeat("ä", 99) + "xyz", strings.Repeat("ä", 99) + "xyö", strings.Repeat("ä", 99) + "xyü"}

// deadReason cuts the reason of a job as jobs are grouped.
func (j *modelJob) deadReason() string {
	text := cmp.Or(j.Reason, j.LastError)
	for len(text) > 200 {
		runes := []rune(text)
		text = string(runes[:len(runes)-1])
	}
	return text
}

func (m *model) dead(topic string) []*modelJob {
	return m.sorted(func(j *modelJob) bool {
		return j.State == jobpb.State_STATE_DEAD && (topic == "" || j.Topic == topic)
	}, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(m.topics[a.Topic].number, m.topics[b.Topic].number), comparePlaced(a, b))
	})
}

// deadReasons groups the dead jobs of a topic, or of all.
func (m *model) deadReasons(q *jobpb.DeadReasonsQuery) *jobpb.DeadReasons {
	a := &jobpb.DeadReasons{}
	of := map[string]*jobpb.DeadGroup{}
	last := map[string]string{} // the last topic of a reason
	for _, j := range m.dead(q.Topic) {
		a.Jobs++
		g := of[j.deadReason()]
		if g == nil {
			g = &jobpb.DeadGroup{Topic: q.Topic, Reason: j.deadReason(), FirstId: j.Id, FirstDiedMs: j.DiedMs}
			of[g.Reason] = g
		}
		if q.Topic == "" {
			if g.FirstDiedMs = 0; last[g.Reason] != j.Topic {
				g.Topics++
			}
			last[g.Reason] = j.Topic
		}
		g.Jobs++
	}
	if q.Topic == "" {
		a.Reasons = uint64(len(of))
	}
	a.Groups = slices.SortedFunc(maps.Values(of), func(a, b *jobpb.DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Reason, b.Reason))
	})
	if len(a.Groups) > int(q.Max) {
		a.Groups, a.More = a.Groups[:q.Max], true
	}
	return a
}

// deadTopics groups the dead jobs with a reason by topic.
func (m *model) deadTopics(q *jobpb.DeadTopicsQuery) *jobpb.DeadTopics {
	a := &jobpb.DeadTopics{}
	for _, j := range m.dead("") {
		if j.deadReason() != q.Reason {
			continue
		}
		a.Jobs++
		if n := len(a.Groups); n == 0 || a.Groups[n-1].Topic != j.Topic {
			a.Groups = append(a.Groups, &jobpb.DeadGroup{Topic: j.Topic, Reason: q.Reason, FirstId: j.Id, FirstDiedMs: j.DiedMs})
		}
		a.Groups[len(a.Groups)-1].Jobs++
	}
	a.Topics = uint64(len(a.Groups))
	slices.SortStableFunc(a.Groups, func(a, b *jobpb.DeadGroup) int { return cmp.Compare(b.Jobs, a.Jobs) })
	a.Groups = a.Groups[:min(len(a.Groups), int(q.Max))]
	return a
}

// compareDead compares the dead jobs by reason with the model.
func (s *simulation) compareDead(v *view.View) {
	reasons := map[string]bool{"": true, "none": true}
	for _, j := range s.model.dead("") {
		reasons[j.deadReason()] = true
	}
	for _, topic := range append(slices.Sorted(maps.Keys(s.model.topics)), "", "none") {
		q := &jobpb.DeadReasonsQuery{Topic: topic, Max: 1 + s.trouble.Uint32N(4)}
		got, err := v.DeadReasons(q)
		require.NoError(s.t, err)
		want := s.model.deadReasons(q)
		require.Truef(s.t, proto.Equal(want, got), "%v\nwant %v\ngot  %v", q, want, got)
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		q := &jobpb.DeadTopicsQuery{Reason: reason, Max: 1 + s.trouble.Uint32N(4)}
		got, err := v.DeadTopics(q)
		require.NoError(s.t, err)
		want := s.model.deadTopics(q)
		require.Truef(s.t, proto.Equal(want, got), "%v\nwant %v\ngot  %v", q, want, got)
	}
}
