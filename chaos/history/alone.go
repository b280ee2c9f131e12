package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// turn is a run of a schedule whose runs are to be alone.
type turn struct {
	planned int64
	live    lease // when its job was certainly there and not done
	done    int64 // when its job was certainly finished or deleted; MaxInt64 if never
}

// checkAlone: of a schedule that skips a run while the last is not done, no two
// runs are there at once, and none is skipped without need.
func checkAlone(ops []Op, jobs []*jobHistory, o Options, r *Report) {
	turns := map[string][]turn{}
	for _, s := range jobs {
		if name, planned, ok := s.run(); ok && len(s.deliveries) > 0 {
			turns[name] = append(turns[name], s.turn(planned))
		}
	}
	for i := range ops {
		if op := &ops[i]; op.Kind == Unschedule && op.Outcome == OK && op.Plan.Alone {
			op.Plan.checkAlone(turns[op.Plan.Name], o.furthest(), r)
		}
	}
}

// turn looks when the job of a run was there. The dead count as done, and may be
// kicked while another run is there.
func (s *jobHistory) turn(planned int64) turn {
	first := slices.MinFunc(s.deliveries, func(a, b *Op) int { return cmp.Compare(a.Complete, b.Complete) })
	t := turn{planned: planned, live: lease{first.Complete, s.endOf(first.Seq), first}, done: math.MaxInt64}
	for _, f := range s.fenced {
		if f.Kind == Bury && f.maybe() {
			t.live.to = min(t.live.to, f.Invoke)
		}
	}
	for _, ops := range [][]*Op{s.finishes, s.deletes} {
		for _, op := range ops {
			if op.Outcome == OK {
				t.done = min(t.done, op.Complete)
			}
		}
	}
	return t
}

func (p *Plan) checkAlone(turns []turn, slack int64, r *Report) {
	var live []lease
	for _, t := range turns {
		live = append(live, t.live)
	}
	if last, n := mostHeld(live); n > 1 {
		r.Violate("schedule", last.op.ID, "it was there as the %dth run at once; each was to be alone", n)
	}
	if p.Lost > 0 || p.Refused > 0 {
		return // nobody knows which runs were skipped
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.planned, b.planned) })
	for i := 1; i < len(turns); i++ {
		before, every := turns[i-1], p.Every.Microseconds()
		for at := before.planned + every; at < turns[i].planned; at += every {
			if before.done < at-slack {
				r.Violate("schedule", before.live.op.ID, "the run %v after it was skipped, %v after it had been done", micros(at-before.planned), micros(at-before.done))
				break
			}
		}
	}
}

// furthest is how far clocks may have been apart at any time, in microseconds.
func (o Options) furthest() int64 {
	var by time.Duration
	for _, k := range o.Skews {
		by = max(by, k.By)
	}
	return (o.ClockBound + by).Microseconds()
}
