package api

import (
	"slices"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

// previewSchedule responds with the next runs of a schedule, as this node computes them.
func (s *server) previewSchedule(x *call) (r wire.Preview, err error) {
	query := x.r.URL.Query()
	name, err := oneName(query, "max", "count")
	if err != nil {
		return r, err
	}
	most := wire.Opt[int64]{V: defaultPreview}
	if err := numberIn(query, name, &most); err != nil {
		return r, err
	}
	info, err := s.findSchedule(x)
	if err != nil {
		return r, err
	}
	return s.preview(info.Schedule, info.State.AnchorMs, time.Now().UnixMilli(), name, most.V)
}

// previewSpec responds with the runs of a schedule that does not exist.
func (s *server) previewSpec(_ *call, q *wire.PreviewRequest) (r wire.Preview, err error) {
	now := time.Now()
	made := &jobpb.Schedule{}
	if err := q.Fill(made, now); err != nil {
		return r, err
	}
	after := now.UnixMilli()
	if q.After.Set {
		var err error
		if after, err = q.After.Millis("after", now); err != nil {
			return r, err
		}
	}
	if err := schedule.Check(made, after); err != nil {
		return r, err
	}
	name, most := "max", q.Max
	if q.Count.Set {
		if q.Max.Set {
			return r, job.Invalid("count", "and max are both given; count is the old name of max")
		}
		name, most = "count", q.Count
	}
	return s.preview(made, after, after, name, most.Or(defaultPreview))
}

func (s *server) preview(def *jobpb.Schedule, anchor, after int64, name string, most int64) (r wire.Preview, err error) {
	n, err := wire.Within(name, most, wire.MaxPreview)
	if err != nil {
		return r, err
	}
	t, err := schedule.New(def, anchor)
	if err != nil {
		return r, err
	}
	r.Runs = each(t.List(after, int(n)), func(ms int64) wire.PlannedRun {
		return wire.PlannedRun{PlannedAt: wire.Time(ms), Local: job.FormatInstant(ms, t.OffsetOf(ms))}
	})
	return r, nil
}

// scheduleRuns responds with the outcomes of the last runs, the latest first.
func (s *server) scheduleRuns(x *call) (r wire.Runs, err error) {
	info, err := s.findSchedule(x)
	if err == nil {
		r.Runs = each(info.State.Past, runShown)
		slices.Reverse(r.Runs)
	}
	return r, err
}

func runShown(p *jobpb.PastRun) wire.Run {
	shown := wire.Run{
		PlannedAt: wire.Time(p.PlannedMs), At: wire.Time(p.AtMs), Outcome: outcomeNames[p.Outcome],
		Now: p.Now, Count: p.Count, ID: p.Id, Seq: p.Seq,
	}
	if p.Code != jobpb.Code_OK {
		shown.Code = string(job.CodeOfResult(p.Code))
	}
	return shown
}

// schedule adds all fields of a schedule except its last runs.
func (w *writer) schedule(info *jobpb.ScheduleInfo) {
	s, st := info.Schedule, info.State
	w.text("schedule", info.Name)
	w.number("revision", st.Revision)
	w.text("spec", s.Spec)
	w.text("zone", s.Zone)
	w.timestamp("start", s.StartMs)
	w.timestamp("end", s.EndMs)
	w.seconds("jitter", s.JitterMs)
	w.text("overlap", wire.OverlapNames[s.Overlap])
	w.text("missed", wire.MissedNames[s.Missed])
	if s.Missed == jobpb.Missed_MISSED_ALL {
		w.number("missed_max", uint64(s.MissedMax))
	}
	w.seconds("missed_after", s.MissedAfterMs)
	w.boolean("paused", st.Paused)
	w.textUnlessEmpty("trouble", st.Trouble)
	w.timestamp("next_at", st.NextMs)
	w.timestamp("created_at", st.CreatedMs)
	w.timestamp("changed_at", st.ChangedMs)
	w.beginNamedObject("counts")
	w.number("started", st.Runs)
	w.number("skipped", st.Skipped)
	w.number("missed", st.Missed)
	w.number("refused", st.Refused)
	w.endObject()
	w.beginNamedObject("job")
	w.template(s.Job)
	w.endObject()
}

// template adds the job of a schedule's runs. It omits fields that the topic's settings
// determine.
func (w *writer) template(a *jobpb.Add) {
	w.text("topic", a.Topic)
	w.number("priority", uint64(a.Priority))
	if !a.TopicTtr {
		w.seconds("ttr", a.TtrMs)
	}
	if !a.TopicAttempts {
		w.number("max_attempts", uint64(a.MaxAttempts))
	}
	w.backoff(a.Options.GetBackoff())
	w.headers(a.Options)
	w.pushURL(a.Options)
	w.body("body", a.BodyKind, a.Body)
}
