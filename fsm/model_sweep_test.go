package fsm

import (
	"cmp"
	"slices"
	"strings"

	"tarry/job/jobpb"
)

// wants reports whether a filter selects a job.
func wants(f *jobpb.Filter, j *modelJob) bool {
	if f == nil {
		return true
	}
	id := j.Id
	if !j.ownID {
		id = ""
	}
	in := func(at, from, to int64) bool { return at >= from && (to == 0 || at < to) }
	for _, h := range f.Headers {
		if !slices.ContainsFunc(j.Options.GetHeaders(), func(g *jobpb.Header) bool { return g.Name == h.Name && g.Value == h.Value }) {
			return false
		}
	}
	if f.ExactReason != nil && *f.ExactReason != j.deadReason() {
		return false
	}
	return strings.HasPrefix(id, f.IdPrefix) && (strings.Contains(j.Reason, f.Reason) || strings.Contains(j.LastError, f.Reason)) &&
		in(j.DueMs, f.DueFromMs, f.DueToMs) && in(j.DiedMs, f.DiedFromMs, f.DiedToMs)
}

// place returns the place of a job in the list of its state.
func (j *modelJob) place() *jobpb.Place {
	p := &jobpb.Place{Seq: j.Seq}
	switch j.State {
	case jobpb.State_STATE_DELAYED:
		p.Instant = j.DueMs
	case jobpb.State_STATE_READY:
		p.Priority, p.Instant = j.Priority, j.DueMs
	case jobpb.State_STATE_RESERVED:
		p.Instant = j.ReservedUntilMs
	case jobpb.State_STATE_DEAD:
		p.Instant = int64(j.deadRank)
	default:
		p.Instant = j.RetainedUntilMs
	}
	return p
}

func comparePlaces(a, b *jobpb.Place) int {
	return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), cmp.Compare(a.GetInstant(), b.GetInstant()), cmp.Compare(a.GetSeq(), b.GetSeq()))
}

func comparePlaced(a, b *modelJob) int { return comparePlaces(a.place(), b.place()) }

func badSweep(m *model, s *jobpb.Sweep) bool {
	return s == nil || s.Scan == 0 || s.Scan > 10_000 || s.From.GetStartMs() < 0 || s.From.GetStartMs() > m.clock ||
		s.From.GetAfter().GetInstant() < 0 || s.From.GetDone() > 1<<40 || badFilter(s.Filter)
}

func badFilter(f *jobpb.Filter) bool {
	return strings.HasPrefix(f.GetIdPrefix(), "$") || f.GetDueToMs() != 0 && f.DueToMs <= f.DueFromMs || f.GetDueFromMs() < 0 || len(f.GetExactReason()) > 200
}

// sweep calls act for the jobs of a list that one command covers.
func (m *model) sweep(topic string, state jobpb.State, most uint32, op *jobpb.Sweep, r *jobpb.Result, also func(*modelJob) bool, act func(j *modelJob, start int64, k uint64)) {
	t := m.topics[topic]
	if t == nil {
		return
	}
	at := &jobpb.Progress{Limit: t.deaths, StartMs: m.clock, After: &jobpb.Place{}}
	if f := op.From; f != nil {
		at = &jobpb.Progress{Limit: f.Limit, StartMs: f.StartMs, Done: f.Done, After: f.After}
		if f.After == nil {
			at.Limit, at.After = t.deaths, &jobpb.Place{}
		}
		at.StartMs = cmp.Or(at.StartMs, m.clock)
	}
	list := m.sorted(func(j *modelJob) bool {
		return j.Topic == topic && j.State == state && comparePlaces(j.place(), at.After) > 0 &&
			(state != jobpb.State_STATE_DEAD || j.deadRank < at.Limit && (op.Filter.GetExactReason() == j.deadReason() || op.Filter == nil || op.Filter.ExactReason == nil))
	}, comparePlaced)
	for i, j := range list {
		if i == int(op.Scan) || r.Count == most {
			r.Details = &jobpb.Details{Next: at}
			return
		}
		at.After = j.place()
		if wants(op.Filter, j) && (also == nil || also(j)) {
			act(j, at.StartMs, at.Done)
			at.Done++
			r.Count++
		}
	}
}

func (m *model) kickSweep(op *jobpb.KickTopic, r *jobpb.Result) {
	if op.Max == 0 || op.Max > 10_000 || badSweep(m, op.Sweep) {
		r.Code = jobpb.Code_INVALID
		return
	}
	dead := slices.ContainsFunc(m.sorted(func(j *modelJob) bool { return j.Topic == op.Topic }, comparePlaced), func(j *modelJob) bool { return j.State == jobpb.State_STATE_DEAD })
	if !dead {
		return
	}
	if op.ToTopic != "" && !m.mayPushAll(op.Topic, op.ToTopic) {
		r.Code = jobpb.Code_INVALID
		return
	}
	if op.ToTopic != "" && m.topics[op.ToTopic] == nil && m.topicsAtLimit() {
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	}
	m.sweep(op.Topic, jobpb.State_STATE_DEAD, op.Max, op.Sweep, r, nil, func(j *modelJob, start int64, k uint64) {
		m.revive(j, cmp.Or(op.ToTopic, op.Topic))
		m.moveTo(j, op.ToTopic)
		if op.RateMilli > 0 {
			j.DueMs = max(start+int64(min(k*1_000_000/uint64(op.RateMilli), 1_000_000_000_000)), m.clock)
			if j.expiresOwn <= j.DueMs {
				j.expiresOwn = 0
			}
			if j.DelayMs = j.DueMs - m.clock; j.DelayMs > 0 {
				j.State = jobpb.State_STATE_DELAYED
			}
		}
		m.noteKick(j, op.Topic)
	})
}

// moveTo moves a job to another topic, which is made if needed; "" is its own.
func (m *model) moveTo(j *modelJob, to string) {
	if to == "" || to == j.Topic {
		return
	}
	t := m.topics[to]
	if t == nil {
		t = m.newTopic(to)
	}
	from := j.Topic
	j.Topic, j.first.Topic = to, to
	if !slices.ContainsFunc(m.all(), func(k *modelJob) bool { return k.Topic == from }) {
		m.topics[from].emptySince = m.clock
	}
	switch j.State {
	case jobpb.State_STATE_DEAD:
		j.deadRank = t.deaths
		t.deaths++
	case jobpb.State_STATE_READY:
		m.makeReady(j)
	}
}

func (m *model) all() []*modelJob {
	return m.sorted(func(*modelJob) bool { return true }, comparePlaced)
}

func (m *model) purge(op *jobpb.Purge, r *jobpb.Result) {
	if op.State == jobpb.State_STATE_NONE || op.State == jobpb.State_STATE_RESERVED || op.Max == 0 || op.Max > 10_000 || badSweep(m, op.Sweep) {
		r.Code = jobpb.Code_INVALID
		return
	}
	m.sweep(op.Topic, op.State, op.Max, op.Sweep, r, nil, func(j *modelJob, _ int64, _ uint64) {
		m.topics[op.Topic].Deleted++
		m.end(j, jobpb.State_STATE_DELETED)
	})
	if op.DropEmpty && !slices.ContainsFunc(m.all(), func(j *modelJob) bool { return j.Topic == op.Topic }) {
		delete(m.topics, op.Topic)
	}
}

func (m *model) moveJobs(op *jobpb.MoveJobs, r *jobpb.Result) {
	if op.To == "" || op.Ref == nil && (op.To == op.Topic || op.Max == 0 || op.Max > 10_000 || slices.Contains(op.States, jobpb.State_STATE_NONE)) {
		r.Code = jobpb.Code_INVALID
		return
	}
	tooMany := func() bool { return m.topics[op.To] == nil && m.topicsAtLimit() }
	if op.Ref != nil {
		m.moveOne(op, tooMany, r)
		return
	}
	here := m.sorted(func(j *modelJob) bool { return j.Topic == op.Topic }, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.State, b.State), comparePlaced(a, b))
	})
	all := len(here)
	here = slices.DeleteFunc(here, func(j *modelJob) bool { return j.ended() || len(op.States) > 0 && !slices.Contains(op.States, j.State) })
	switch {
	case len(here) == 0:
		return
	case !m.mayPushAll(op.Topic, op.To):
		r.Code = jobpb.Code_INVALID
		return
	case tooMany():
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	}
	if len(here) == all && !slices.ContainsFunc(m.all(), func(j *modelJob) bool { return j.Topic == op.To }) &&
		slices.Equal(headerSet(m.settings[op.Topic]), headerSet(m.settings[op.To])) {
		m.swapJobs(op.Topic, op.To, here)
		r.Count = uint32(all)
		return
	}
	for i, j := range here {
		if i == int(op.Max) {
			r.More = true
			return
		}
		m.moveTo(j, op.To)
		j.Revision++
		m.noteMove(j, op.Topic)
		r.Count++
	}
}

// swapJobs moves all jobs of a topic to one without jobs.
func (m *model) swapJobs(from, to string, jobs []*modelJob) {
	t, u := m.topics[from], m.topics[to]
	if u == nil {
		u = m.newTopic(to)
	}
	t.number, u.number = u.number, t.number
	t.deaths, u.deaths = u.deaths, t.deaths
	t.covered, u.covered = u.covered, t.covered
	t.emptySince = m.clock
	for _, j := range jobs {
		j.Topic, j.first.Topic = to, to
	}
}

func (m *model) moveOne(op *jobpb.MoveJobs, tooMany func() bool, r *jobpb.Result) {
	if op.Ref.Id == "" && op.Ref.Seq == 0 {
		r.Code = jobpb.Code_INVALID
		return
	}
	j := m.find(op.Ref)
	switch {
	case j == nil:
		r.Code = jobpb.Code_NOT_FOUND
		return
	case op.Ref.Generation != 0 && (j.State != jobpb.State_STATE_RESERVED || op.Ref.Generation != j.generation):
		r.Code = jobpb.Code_STALE_TOKEN
		return
	case j.Topic != op.To && !m.mayPush(op.To, j.Options.GetPushUrl()):
		r.Code = jobpb.Code_INVALID
		return
	case j.Topic != op.To && tooMany():
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	}
	if j.Topic != op.To {
		from := j.Topic
		m.moveTo(j, op.To)
		j.Revision++
		m.noteMove(j, from)
	}
	r.Seq, r.Id, r.DueMs, r.State, r.Revision = j.Seq, j.Id, j.DueMs, j.State, j.Revision
}

// page returns what a listing by state shows, from the beginning.
func (m *model) page(q *jobpb.JobQuery) []*modelJob {
	order := func(a, b *modelJob) int { return cmp.Or(cmp.Compare(a.State, b.State), comparePlaced(a, b)) }
	if q.Filter.GetIdPrefix() != "" {
		order = func(a, b *modelJob) int { return cmp.Compare(a.Id, b.Id) }
	}
	return m.sorted(func(j *modelJob) bool {
		return (q.Topic == "" || j.Topic == q.Topic) && (q.State == 0 && !j.ended() || j.State == q.State) && wants(q.Filter, j)
	}, order)
}

// revive makes a dead job ready, which moves to the topic to.
func (m *model) revive(j *modelJob, to string) {
	m.makeReady(j)
	j.DiedMs = 0
	j.Attempts = 0
	m.restartExpiry(j, to)
	j.Kicks++
	j.Revision++
}

func (m *model) kickTopic(op *jobpb.KickTopic, r *jobpb.Result) {
	if op.Max == 0 || op.Max > 10_000 {
		r.Code = jobpb.Code_INVALID
		return
	}
	dead := m.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_DEAD && j.Topic == op.Topic },
		func(a, b *modelJob) int { return cmp.Compare(a.deadRank, b.deadRank) })
	for i, j := range dead {
		if i == int(op.Max) {
			break
		}
		m.revive(j, op.Topic)
		m.noteKick(j, op.Topic)
		r.Count++
	}
	if !op.OrDelayed || len(dead) > 0 {
		return
	}
	delayed := m.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_DELAYED && j.Topic == op.Topic },
		func(a, b *modelJob) int { return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq)) })
	for _, j := range delayed[:min(len(delayed), int(op.Max))] {
		m.kickDelayed(j)
		m.noteKick(j, op.Topic)
		r.Count++
	}
}

func (m *model) kickDelayed(j *modelJob) {
	j.DueMs = m.clock
	j.Kicks++
	j.Revision++
	m.makeReady(j)
}
