package api

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"tarry/api/wire"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

const (
	defaultPreview = 10
)

var (
	outcomeNames = []string{
		jobpb.RunOutcome_RUN_STARTED: "started", jobpb.RunOutcome_RUN_SKIPPED: "skipped",
		jobpb.RunOutcome_RUN_MISSED: "missed", jobpb.RunOutcome_RUN_REFUSED: "refused",
	}
)

// scheduleOp returns the operation with defaults for missing fields, and checks it.
func (s *server) scheduleOp(q *wire.ScheduleRequest, name string, now time.Time) (*jobpb.Op, error) {
	def := &jobpb.Schedule{}
	if err := q.Fill(def, now); err != nil {
		return nil, err
	}
	if err := q.FillPolicies(def); err != nil {
		return nil, err
	}
	if err := s.fillJob(q, def, now); err != nil {
		return nil, err
	}
	put := &jobpb.PutSchedule{Name: name, Schedule: def}
	if q.Paused.Set {
		put.Paused = &q.Paused.V
	}
	var err error
	if put.IfRevision, err = wire.ScheduleRevision(q.IfRevision); err != nil {
		return nil, err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: put}}
	if err := check(op); err != nil {
		return nil, err
	}
	return op, schedule.Check(def, now.UnixMilli())
}

// fillJob sets the job that each run adds.
func (s *server) fillJob(q *wire.ScheduleRequest, def *jobpb.Schedule, now time.Time) error {
	if !q.Job.Set {
		return nil
	}
	j := &q.Job.V
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"id", j.ID.Set}, {"delay", j.Delay.Set}, {"due_at", j.DueAt.Set}, {"if_exists", j.IfExists.Set},
		{"if_revision", j.IfRevision.Set}, {"if_state", j.IfState.Set},
	} {
		if f.set {
			return job.Invalid("job."+f.name, "is not a field of a schedule's job")
		}
	}
	op, err := s.addOp(j, now)
	if err != nil {
		return job.Under("job", err)
	}
	def.Job = op.GetAdd()
	return nil
}

// pathSchedule returns the schedule name in the path.
func (x *call) pathSchedule() (string, error) {
	name, err := x.pathValue("name")
	if err != nil {
		return "", err
	}
	return name, job.CheckScheduleName("name", name)
}

func (s *server) putSchedule(x *call, q *wire.ScheduleRequest) (r wire.SchedulePut, err error) {
	name, err := x.pathSchedule()
	if err != nil {
		return r, err
	}
	if query := x.r.URL.Query(); query.Has("if_revision") {
		if q.IfRevision.Set {
			return r, job.Invalid("if_revision", "is given in the query and in the request; give it in the query")
		}
		if err := wire.NumberIn(query, "if_revision", &q.IfRevision); err != nil {
			return r, err
		}
	}
	op, err := s.scheduleOp(q, name, time.Now())
	if err != nil {
		return r, err
	}
	done, err := s.doOne(x, op)
	if err != nil {
		return r, err
	}
	if !done.Existing && !done.Replaced {
		x.status = http.StatusCreated
	}
	s.awaitPlan(x, name)
	return wire.SchedulePut{Schedule: done.Id, Revision: done.GetDetails().GetScheduleRevision(), Existing: done.Existing, Replaced: done.Replaced}, nil
}

// planTime is how long a call waits until the leader has computed the next run of the schedule that it
// changed. The leader does not while adds are refused.
const planTime = time.Second

// awaitPlan waits until the next run of a schedule is known, so that nobody reads what they have just
// put without one: that would mean that no run is left. The instants depend on time zones, so the state
// machine does not compute them, and the leader does in an entry of its own.
func (s *server) awaitPlan(x *call, name string) {
	ctx, cancel := x.timeout(planTime)
	defer cancel()
	for {
		info, err := s.reads.Schedule(ctx, name, false)
		if err != nil || !info.State.Unplanned || !sleep.For(ctx, 2*time.Millisecond) {
			return
		}
	}
}

// pauseSchedule handles POST /v1/schedules/{name}/pause and resume.
func pauseSchedule(paused bool) func(*server, *call) error {
	return answer(func(s *server, x *call) (r wire.SchedulePause, err error) {
		name, err := x.pathSchedule()
		if err != nil {
			return r, err
		}
		done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Paused: &paused}}})
		if err != nil {
			return r, err
		}
		s.awaitPlan(x, name)
		return wire.SchedulePause{Schedule: done.Id, Revision: done.GetDetails().GetScheduleRevision(), Paused: paused}, nil
	})
}

func (s *server) deleteSchedule(x *call) (r wire.ScheduleDeleted, err error) {
	name, err := x.pathSchedule()
	if err != nil {
		return r, err
	}
	var given wire.Opt[int64]
	if err := wire.NumberIn(x.r.URL.Query(), "if_revision", &given); err != nil {
		return r, err
	}
	revision, err := wire.ScheduleRevision(given)
	if err != nil {
		return r, err
	}
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: name, IfRevision: revision}}})
	return wire.ScheduleDeleted{Schedule: done.GetId()}, err
}

// findSchedule finds the schedule in the path, and claims memory for a response with it.
func (s *server) findSchedule(x *call) (*jobpb.ScheduleInfo, error) {
	info, err := find(x, x.pathSchedule, s.reads.Schedule)
	if err == nil {
		err = x.claim(int64(len(info.Schedule.GetJob().GetBody())) + answerOverhead)
	}
	return info, err
}

func (s *server) getSchedule(x *call) error {
	info, err := s.findSchedule(x)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.schedule(info)
	x.json.endObject()
	return nil
}

func (s *server) schedules(x *call) error {
	page, full, err := findPage(x, s.reads.Schedules)
	if err != nil {
		return err
	}
	size := 0
	for _, info := range page {
		size += info.Schedule.SizeVT() + info.State.SizeVT()
	}
	next := ""
	if full || size > job.MaxScheduleListBytes {
		next = page[len(page)-1].Name
	}
	answerPage(x, "schedules", page, x.json.schedule, next)
	return nil
}

// runSchedule handles POST /v1/schedules/{name}/run.
func (s *server) runSchedule(x *call) error {
	var q wire.RunRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	if q.Key.Set {
		if err := job.CheckRunKey("key", q.Key.V); err != nil {
			return err
		}
	}
	info, err := s.findSchedule(x)
	if err != nil {
		return err
	}
	t, err := schedule.New(info.Schedule, info.State.AnchorMs)
	if err != nil {
		return err
	}
	run := &jobpb.ScheduledRun{OffsetS: t.OffsetOf(time.Now().UnixMilli())}
	return s.apply(x, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{
		Name: info.Name, Now: true, Key: q.Key.V, Runs: []*jobpb.ScheduledRun{run}, Entropy: rand.Uint64(),
	}}}, x.added)
}

// previewSchedule responds with the next runs of a schedule, as this node computes them.
func (s *server) previewSchedule(x *call) (r wire.Preview, err error) {
	query := x.r.URL.Query()
	name, err := wire.OneName(query, "max", "count")
	if err != nil {
		return r, err
	}
	most := wire.Opt[int64]{V: defaultPreview}
	if err := wire.NumberIn(query, name, &most); err != nil {
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
