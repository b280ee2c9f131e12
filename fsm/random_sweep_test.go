package fsm

import (
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/view"
	"tarry/job/jobpb"
)

func (s *simulation) filter() *jobpb.Filter {
	f := &jobpb.Filter{}
	switch s.rng.IntN(11) {
	case 0:
		f.IdPrefix = []string{"id-", "id-1", "id-1", "x", "$"}[s.rng.IntN(5)]
	case 1:
		f.Reason = []string{"r", "rr", "attempt"}[s.rng.IntN(3)]
	case 2:
		f.DueFromMs, f.DueToMs = max(s.now-s.pick(0, 50, 1000), 0), s.now+s.pick(0, 1, 100)
	case 3:
		f.DiedFromMs, f.DiedToMs = max(s.now-s.pick(0, 50, 1000), 0), s.now+s.pick(1, 100)
	case 4:
		f.Headers = []*jobpb.Header{{Name: "a", Value: []string{"1", "2"}[s.rng.IntN(2)]}}
	case 5:
		return nil
	case 6, 7:
		f.ExactReason = new([]string{"", "r", "rr", "expired", deadReasons[1], strings.Repeat("r", 201)}[s.rng.IntN(6)])
	}
	return f
}

// sweep begins a sweep or continues an earlier one, of any list.
func (s *simulation) sweep() *jobpb.Sweep {
	w := &jobpb.Sweep{Filter: s.filter(), Scan: uint32(s.pick(0, 1, 2, 5, 20, 20, 10_000, 10_001))}
	if n := len(s.sweeps); n > 0 && s.rng.IntN(2) == 0 {
		w.From = proto.Clone(s.sweeps[s.rng.IntN(n)]).(*jobpb.Progress)
	}
	if w.From != nil && s.rng.IntN(5) == 0 {
		w.From.After = nil // it goes on from another topic
		w.From.StartMs = s.pick(0, w.From.StartMs)
	}
	return w
}

// keepSweep keeps where a sweep continues.
func (s *simulation) keepSweep(r *jobpb.Result) {
	if r.GetDetails().GetNext() == nil {
		return
	}
	if len(s.sweeps) == 8 {
		s.sweeps = s.sweeps[1:]
	}
	s.sweeps = append(s.sweeps, proto.Clone(r.Details.Next).(*jobpb.Progress))
}

func (s *simulation) anyTopic() string {
	if s.rng.IntN(2) == 0 {
		return ""
	}
	return s.topic()
}

// manyOp returns an operation on many jobs.
func (s *simulation) manyOp() *jobpb.Op {
	most := uint32(s.pick(0, 1, 3, 3, 10, 100, 10_001))
	switch s.rng.IntN(6) {
	case 0, 1:
		return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{
			Topic: s.topic(), Max: most, Sweep: s.sweep(), RateMilli: uint32(s.pick(0, 0, 1, 1000, 60_000, 1<<32-1)), ToTopic: s.anyTopic(),
		}}}
	case 2:
		return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{
			Topic: s.topic(), State: jobpb.State(s.pick(1, 2, 4, 4, 0, 3)), Max: most, Sweep: s.sweep(),
			DropEmpty: s.model.version >= 2 && s.rng.IntN(3) == 0,
		}}}
	case 3:
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{To: s.topic(), Ref: s.ref()}}}
	case 4:
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: s.topic(), To: s.topic(), Max: most}}}
	default:
		states := []jobpb.State{jobpb.State(s.pick(1, 2, 3, 4, 0)), jobpb.State(s.pick(1, 2, 3, 4))}
		return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: s.topic(), To: s.anyTopic(), Max: most, States: states}}}
	}
}

// compareListings compares what pages of jobs show together with the model.
func (s *simulation) compareListings(v *view.View) {
	queries := []*jobpb.JobQuery{{Filter: &jobpb.Filter{IdPrefix: "id-"}}}
	for range 6 {
		q := &jobpb.JobQuery{Topic: s.topic(), State: jobpb.State(s.rng.IntN(7)), Filter: s.filter()}
		if !badFilter(q.Filter) {
			queries = append(queries, q)
		}
	}
	for _, q := range queries {
		q.Max, q.Body = 1+s.rng.Uint32N(7), true
		want := s.model.page(q)
		var got []*jobpb.Job
		for {
			page, err := v.Jobs(q)
			require.NoError(s.t, err)
			require.LessOrEqual(s.t, len(page.Jobs), int(q.Max))
			for _, j := range page.Jobs {
				if len(j.Body) == 0 {
					j.Body = nil
				}
				got = append(got, j)
			}
			if q.After = page.Next; page.Next == nil {
				break
			}
		}
		require.Len(s.t, got, len(want), "%v", q)
		for i, j := range want {
			if len(j.Body) == 0 {
				j.Body = nil
			}
			want := proto.Clone(&j.Job).(*jobpb.Job)
			want.History, want.HistoryDropped = nil, 0 // not in a listing
			require.Truef(s.t, proto.Equal(want, got[i]), "%v\nwant %v\ngot  %v", q, want, got[i])
		}
	}
}
