package api

import (
	"math/rand/v2"
	"net/http"
	"time"

	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

// timesRequest is the times of a schedule in a request.
type timesRequest struct {
	Spec  opt[string] `json:"spec"`
	Zone  opt[string] `json:"zone"`
	Start timestamp   `json:"start"`
	End   timestamp   `json:"end"`
}

// scheduleRequest is a whole schedule.
type scheduleRequest struct {
	timesRequest
	Jitter      opt[float64]    `json:"jitter"`
	Overlap     opt[string]     `json:"overlap"`
	Missed      opt[string]     `json:"missed"`
	MissedMax   opt[int64]      `json:"missed_max"`
	MissedAfter opt[float64]    `json:"missed_after"`
	Job         opt[addRequest] `json:"job"`
	Paused      opt[bool]       `json:"paused"`
	IfRevision  opt[int64]      `json:"if_revision"`
}

const (
	defaultZone      = "UTC"
	defaultMissedMax = 10

	defaultPreview = 10
	maxPreview     = 100
)

var (
	overlapNames = []string{jobpb.Overlap_OVERLAP_ALLOW: "allow", jobpb.Overlap_OVERLAP_SKIP: "skip"}
	missedNames  = []string{jobpb.Missed_MISSED_SKIP: "skip", jobpb.Missed_MISSED_ONE: "one", jobpb.Missed_MISSED_ALL: "all"}
	outcomeNames = []string{
		jobpb.RunOutcome_RUN_STARTED: "started", jobpb.RunOutcome_RUN_SKIPPED: "skipped",
		jobpb.RunOutcome_RUN_MISSED: "missed", jobpb.RunOutcome_RUN_REFUSED: "refused",
	}
)

// fill sets the times of the schedule.
func (q *timesRequest) fill(s *jobpb.Schedule, now time.Time) (err error) {
	s.Spec, s.Zone = q.Spec.v, q.Zone.or(defaultZone)
	if !q.Spec.set {
		return job.Invalid("spec", "is missing; it takes a cron expression, such as 30 2 * * *, or @every 90s")
	}
	if q.Start.set {
		if s.StartMs, err = q.Start.millis("start", now); err != nil {
			return err
		}
	}
	if q.End.set {
		if s.EndMs, err = q.End.millis("end", now); err != nil {
			return err
		}
	}
	return job.CheckTimes(s)
}

// op returns the operation with defaults for missing fields, and checks it.
func (q *scheduleRequest) op(name string, s *server, now time.Time) (*jobpb.Op, error) {
	def := &jobpb.Schedule{}
	if err := q.fill(def, now); err != nil {
		return nil, err
	}
	if err := q.fillPolicies(def); err != nil {
		return nil, err
	}
	if err := q.fillJob(def, s, now); err != nil {
		return nil, err
	}
	put := &jobpb.PutSchedule{Name: name, Schedule: def}
	if q.Paused.set {
		put.Paused = &q.Paused.v
	}
	var err error
	if put.IfRevision, err = scheduleRevision(q.IfRevision); err != nil {
		return nil, err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: put}}
	if err := check(op); err != nil {
		return nil, err
	}
	return op, schedule.Check(def, now.UnixMilli())
}

// scheduleRevision parses the condition on a revision; 0 for none.
func scheduleRevision(q opt[int64]) (uint64, error) {
	if q.set && q.v < 1 {
		return 0, job.Invalid("if_revision", "is %d; it must be at least 1", q.v)
	}
	return uint64(q.v), nil
}

func (q *scheduleRequest) fillPolicies(s *jobpb.Schedule) (err error) {
	s.JitterMs, s.MissedAfterMs = job.MillisOf(q.Jitter.v), job.MillisOf(q.MissedAfter.or(job.DefaultMissedAfter.Seconds()))
	overlap, err := wordOf("overlap", q.Overlap, overlapNames)
	if err != nil {
		return err
	}
	missed, err := wordOf("missed", q.Missed, missedNames)
	if err != nil {
		return err
	}
	s.Overlap, s.Missed = jobpb.Overlap(overlap), jobpb.Missed(missed)
	most := q.MissedMax
	if s.Missed == jobpb.Missed_MISSED_ALL {
		most.set, most.v = true, most.or(defaultMissedMax)
	}
	if most.set {
		s.MissedMax, err = within("missed_max", most.v, job.MaxScheduleRuns)
	}
	return err
}

// wordOf finds a word in a list; the first is the default.
func wordOf(field string, v opt[string], names []string) (int, error) {
	if !v.set {
		return 0, nil
	}
	for i, name := range names {
		if v.v == name {
			return i, nil
		}
	}
	return 0, job.Invalid(field, "is %.40q; it takes one of: %s", v.v, orNone(names))
}

// fillJob sets the job that each run adds.
func (q *scheduleRequest) fillJob(def *jobpb.Schedule, s *server, now time.Time) error {
	if !q.Job.set {
		return nil
	}
	j := &q.Job.v
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"id", j.ID.set}, {"delay", j.Delay.set}, {"due_at", j.DueAt.set}, {"if_exists", j.IfExists.set},
		{"if_revision", j.IfRevision.set}, {"if_state", j.IfState.set},
	} {
		if f.set {
			return job.Invalid("job."+f.name, "is not a field of a schedule's job")
		}
	}
	op, err := j.op(s, now)
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

func (s *server) putSchedule(x *call) error {
	name, err := x.pathSchedule()
	if err != nil {
		return err
	}
	var q scheduleRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if query := x.r.URL.Query(); query.Has("if_revision") {
		if q.IfRevision.set {
			return job.Invalid("if_revision", "is given in the query and in the request; give it in the query")
		}
		if err := numberIn(query, "if_revision", &q.IfRevision); err != nil {
			return err
		}
	}
	op, err := q.op(name, s, time.Now())
	if err != nil {
		return err
	}
	return s.apply(x, op, func(r *jobpb.Result) {
		if !r.Existing && !r.Replaced {
			x.status = http.StatusCreated
		}
		s.awaitPlan(x, name)
		x.json.schedulePut(r)
	})
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

// schedulePut adds the fields of a successful put.
func (w *writer) schedulePut(r *jobpb.Result) {
	w.boolean("success", true)
	w.text("schedule", r.Id)
	w.number("revision", r.GetDetails().GetScheduleRevision())
	w.boolean("existing", r.Existing)
	w.booleanIfTrue("replaced", r.Replaced)
}

// pauseSchedule handles POST /v1/schedules/{name}/pause and resume.
func (s *server) pauseSchedule(paused bool) handlerFunc {
	return func(x *call) error {
		name, err := x.pathSchedule()
		if err != nil {
			return err
		}
		op := &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Paused: &paused}}}
		return s.apply(x, op, func(r *jobpb.Result) {
			s.awaitPlan(x, name)
			x.json.boolean("success", true)
			x.json.text("schedule", r.Id)
			x.json.number("revision", r.GetDetails().GetScheduleRevision())
			x.json.boolean("paused", paused)
		})
	}
}

func (s *server) deleteSchedule(x *call) error {
	name, err := x.pathSchedule()
	if err != nil {
		return err
	}
	var given opt[int64]
	if err := numberIn(x.r.URL.Query(), "if_revision", &given); err != nil {
		return err
	}
	revision, err := scheduleRevision(given)
	if err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: name, IfRevision: revision}}}
	return s.apply(x, op, func(r *jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("schedule", r.Id)
	})
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

type runRequest struct {
	Key opt[string] `json:"key"`
}

// runSchedule handles POST /v1/schedules/{name}/run.
func (s *server) runSchedule(x *call) error {
	var q runRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	if q.Key.set {
		if err := job.CheckRunKey("key", q.Key.v); err != nil {
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
		Name: info.Name, Now: true, Key: q.Key.v, Runs: []*jobpb.ScheduledRun{run}, Entropy: rand.Uint64(),
	}}}, x.added)
}
