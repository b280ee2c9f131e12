package history

import (
	"strings"
	"time"
)

// Plan is a schedule that adds one job for each of its instants, with the name of
// the schedule as body. The job of a run has the id NAME@INSTANT.
type Plan struct {
	Name   string
	Every  time.Duration
	Missed string // what becomes of runs that could not be started in time: skip, one or all
	// Alone: a run is skipped while the job of the last is not done.
	Alone  bool          `json:",omitempty"`
	Jitter time.Duration `json:",omitempty"` // the job of a run is due so long after its instant at the latest

	// What the schedule itself counted, when it was ended.
	Started, Skipped, Lost, Refused uint64 `json:",omitempty"`
}

// run is the history of a job that is a run of a schedule, by its id.
func (s *jobHistory) run() (name string, planned int64, ok bool) {
	at := strings.LastIndexByte(s.id, '@')
	if at < 0 {
		return "", 0, false
	}
	instant, err := time.Parse(time.RFC3339Nano, s.id[at+1:])
	return s.id[:at], instant.UnixMicro(), err == nil
}

// takeRuns gives the runs of schedules the add that no client saw: it came between
// the planned instant and the first delivery.
func takeRuns(ops []Op, jobs []*jobHistory, o Options) {
	plans := map[string]*Op{}
	for i := range ops {
		if op := &ops[i]; op.Kind == Schedule && op.maybe() {
			plans[op.Plan.Name] = op
		}
	}
	for _, s := range jobs {
		name, planned, ok := s.run()
		plan := plans[name]
		if !ok || plan == nil || len(s.deliveries) == 0 {
			continue
		}
		first := s.deliveries[0]
		for _, d := range s.deliveries {
			if d.Complete < first.Complete {
				first = d
			}
		}
		if len(o.Skews) > 0 {
			planned = min(planned, first.Complete) // by a clock that was off
		}
		s.take(&Op{
			Kind: Add, ID: s.id, Topic: plan.Topic, Seq: first.Seq, Body: name, Result: created,
			Invoke: planned, Complete: max(planned, first.Complete), TTR: plan.TTR,
		})
	}
}

// checkSchedules: each run makes one job, which is due no earlier than planned, and
// the schedule knows how many.
func checkSchedules(ops []Op, jobs []*jobHistory, o Options, r *Report) {
	type tally struct {
		runs        uint64
		first, last int64
	}
	tallies := map[string]*tally{}
	for _, s := range jobs {
		name, planned, ok := s.run()
		if !ok || len(s.deliveries) == 0 {
			continue
		}
		t := tallies[name]
		if t == nil {
			t = &tally{first: planned, last: planned}
			tallies[name] = t
		}
		t.runs++
		t.first, t.last = min(t.first, planned), max(t.last, planned)
		// The deliveries are sorted by seq.
		if a, b := s.deliveries[0].Seq, s.deliveries[len(s.deliveries)-1].Seq; a != b {
			r.Violate("schedule", s.id, "one run made two jobs, seq %d and seq %d", a, b)
		}
		for _, d := range s.deliveries {
			if d.Due > 0 && d.Due < planned-s.slack() {
				r.Violate("schedule", s.id, "due %v before its planned instant", micros(planned-d.Due))
			}
		}
	}
	checkAlone(ops, jobs, o, r)
	for i := range ops {
		op := &ops[i]
		if op.Kind != Unschedule || op.Outcome != OK {
			continue
		}
		p, t := op.Plan, tallies[op.Plan.Name]
		if t == nil {
			t = &tally{}
		}
		if t.runs != p.Started {
			r.Violate("schedule", p.Name, "it started %d runs, and the jobs of %d were delivered", p.Started, t.runs)
		}
		whole := p.Missed == "all" && p.Lost == 0 && p.Refused == 0 && p.Skipped == 0 && t.runs > 0
		if planned := uint64(micros(t.last-t.first)/max(p.Every, 1)) + 1; whole && planned != t.runs {
			r.Violate("schedule", p.Name, "%d of the %d runs between its first and its last were never delivered", planned-t.runs, planned)
		}
	}
}
