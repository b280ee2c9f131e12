package fsm

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Schedules are recurring jobs. The state machine interprets neither cron expressions
// nor time zones: the leader computes the instants and proposes them (FireSchedule).
// A FireSchedule applies only to the revision and the next instant that the leader saw.
// So a run is started once, whichever node leads.

// putSchedule makes, replaces, pauses or resumes a schedule.
func (x *tx) putSchedule(op *jobpb.PutSchedule, r *jobpb.Result) error {
	s, err := x.schedule(op.Name)
	if err != nil {
		return err
	}
	switch {
	case s == nil && (op.Schedule == nil || op.IfRevision != 0):
		return x.refuseSchedule(op.Name, r)
	case s == nil && x.m.scheduleCount >= x.limits().MaxSchedules:
		return x.refuse(r, jobpb.Code_TOO_MANY_SCHEDULES, "there are %d schedules already, which is the limit", x.m.scheduleCount)
	case s != nil && op.IfRevision != 0 && op.IfRevision != s.state.Revision:
		return x.refuseRevision(s, op.IfRevision, r)
	}
	if err := x.checkScheduled(op.Name, s, op.Schedule); err != nil {
		return x.refuseInvalid(err, r)
	}
	if s == nil {
		s = &schedule{name: op.Name, state: &jobpb.ScheduleState{CreatedMs: x.clock()}}
		x.m.scheduleCount++
	}
	known := s.def != nil
	if s.put(op, x.clock()) {
		s.state.Revision = x.takeNumber()
		x.touchSchedule(s)
		known, r.Replaced = false, known
	}
	r.Existing = known
	if x.replies {
		r.Id, r.Details = strings.Clone(s.name), &jobpb.Details{ScheduleRevision: s.state.Revision}
	}
	return nil
}

// checkScheduled returns an error for a new definition whose topic would refuse the jobs
// because of their push_url or of their ids. s is the schedule as it is, or nil.
func (x *tx) checkScheduled(name string, s *schedule, def *jobpb.Schedule) error {
	if def == nil || s != nil && proto.Equal(s.def, def) {
		return nil
	}
	topic := def.Job.Topic
	if err := x.m.namespaceOf(topic).checkID(name); err != nil {
		return job.Invalid("name", "is %.40q; the ids of runs begin with it, and %w", name, err)
	}
	if err := record.CheckPushURL(topic, x.settingsOf(topic, x.m.topics[topic]), def.Job.Options.GetPushUrl()); err != nil {
		return job.Under("job", err)
	}
	return nil
}

// put applies a put to the schedule and reports whether it changed anything. If the put
// does not change the instants, the next one stays, even if it is due already.
func (s *schedule) put(op *jobpb.PutSchedule, clock int64) (changed bool) {
	old, st := s.def, s.state
	if op.Schedule != nil && (old == nil || !proto.Equal(old, op.Schedule)) {
		s.def, s.newDef, changed = op.Schedule, true, true
	}
	anew := old == nil || old.Spec != s.def.Spec || old.StartMs != s.def.StartMs
	if anew {
		st.AnchorMs = clock
	}
	replan := anew || old.Zone != s.def.Zone || old.EndMs != s.def.EndMs
	if paused := op.Paused; paused != nil && *paused != st.Paused {
		st.Paused, replan, changed = *paused, true, true
	}
	if !changed {
		return false
	}
	st.ChangedMs, st.Trouble = clock, ""
	if replan {
		st.NextMs, st.Unplanned = 0, !st.Paused
	}
	return true
}

// findSchedule returns a schedule; nil: the operation was refused or failed.
func (x *tx) findSchedule(name string, r *jobpb.Result) (*schedule, error) {
	s, err := x.schedule(name)
	if s == nil && err == nil {
		err = x.refuseSchedule(name, r)
	}
	return s, err
}

func (x *tx) refuseSchedule(name string, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_NOT_FOUND, "schedule %.40q does not exist", name)
}

func (x *tx) refuseRevision(s *schedule, want uint64, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_CONDITION_FAILED, "schedule %.40q has revision %d, not %d", s.name, s.state.Revision, want)
}

// deleteSchedule removes a schedule; the jobs of its runs stay.
func (x *tx) deleteSchedule(op *jobpb.DeleteSchedule, r *jobpb.Result) error {
	s, err := x.findSchedule(op.Name, r)
	if s == nil || err != nil {
		return err
	}
	if op.IfRevision != 0 && op.IfRevision != s.state.Revision {
		return x.refuseRevision(s, op.IfRevision, r)
	}
	s.gone = true
	x.m.scheduleCount--
	x.touchSchedule(s)
	if x.replies {
		r.Id, r.Details = strings.Clone(s.name), &jobpb.Details{ScheduleRevision: s.state.Revision}
	}
	return nil
}

// fireSchedule starts the runs that the leader found due.
func (x *tx) fireSchedule(op *jobpb.FireSchedule, r *jobpb.Result) error {
	s, err := x.findSchedule(op.Name, r)
	if s == nil || err != nil {
		return err
	}
	if err := x.checkFire(op); err != nil {
		return x.refuseInvalid(err, r)
	}
	st := s.state
	if op.Now {
		return x.startNow(s, op, r)
	}
	if st.Paused || st.Revision != op.Revision || st.NextMs != op.ExpectNextMs || st.Unplanned != (op.ExpectNextMs == 0) {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "schedule %.40q has changed since the leader planned its runs", s.name)
	}
	x.touchSchedule(s)
	st.NextMs, st.Unplanned = op.NextMs, false
	if op.Trouble != "" {
		st.Paused, st.Trouble, st.NextMs = true, strings.Clone(op.Trouble), 0
		return nil
	}
	if op.Missed > 0 {
		st.Missed += op.Missed
		x.addPastRun(s, &jobpb.PastRun{PlannedMs: op.LastMissedMs, AtMs: x.clock(), Outcome: jobpb.RunOutcome_RUN_MISSED, Count: op.Missed})
	}
	for _, run := range op.Runs {
		past, _, err := x.startRun(s, op, run)
		if err != nil {
			return err
		}
		if past.Outcome == jobpb.RunOutcome_RUN_STARTED {
			r.Count++
		}
	}
	return nil
}

// checkFire checks that the runs and the missed instants are not ahead of the clock.
func (x *tx) checkFire(op *jobpb.FireSchedule) error {
	ahead := func(run *jobpb.ScheduledRun) bool { return run.PlannedMs > x.clock() }
	switch {
	case op.Now: // its run has no planned instant
		return nil
	case op.Missed > 0 && op.LastMissedMs > x.clock():
		return job.Invalid("missed", "has instants that are ahead of the clock")
	case slices.ContainsFunc(op.Runs, ahead):
		return job.Invalid("runs", "has one that is ahead of the clock")
	}
	return nil
}

// startNow starts a run planned for now, whatever the overlap and even while the schedule
// is paused. With a key, a repeated request starts no other run.
func (x *tx) startNow(s *schedule, op *jobpb.FireSchedule, r *jobpb.Result) error {
	if op.Key != "" {
		if x.runsElsewhere(s.name, op.Key, r) {
			return nil
		}
		if again, err := x.startedNow(s, job.KeyedRunID(s.name, op.Key), r); again || err != nil {
			return err
		}
	}
	x.touchSchedule(s)
	run := &jobpb.ScheduledRun{PlannedMs: x.clock(), OffsetS: op.Runs[0].OffsetS}
	_, made, err := x.startRun(s, op, run)
	if err != nil || !x.replies {
		return err
	}
	r.Code, r.Message = made.Code, made.Message
	r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = made.Seq, made.Id, made.State, made.DueMs, made.Revision, made.Existing
	return nil
}

// startedNow reports whether there is a job with the id, or a past run with it, and sets r
// to that.
func (x *tx) startedNow(s *schedule, id string, r *jobpb.Result) (bool, error) {
	old, err := x.jobByID(id)
	if err != nil {
		return false, err
	}
	if old != nil {
		return true, x.addExisting(&jobpb.Add{Id: id, Topic: s.def.Job.Topic, IfExists: jobpb.IfExists_IF_EXISTS_KEEP}, old, r)
	}
	for _, past := range s.state.Past {
		if past.Id == id {
			r.Seq, r.Id, r.DueMs, r.Existing = past.Seq, id, past.PlannedMs, true
			return true, nil
		}
	}
	return false, nil
}

// startRun adds the job of a run, unless the last one is not done yet and the overlap is
// to skip. It also returns the result of the add.
func (x *tx) startRun(s *schedule, op *jobpb.FireSchedule, run *jobpb.ScheduledRun) (*jobpb.PastRun, *jobpb.Result, error) {
	st := s.state
	past := &jobpb.PastRun{PlannedMs: run.PlannedMs, AtMs: x.clock(), Now: op.Now}
	defer x.addPastRun(s, past)
	if s.def.Overlap == jobpb.Overlap_OVERLAP_SKIP && !op.Now && st.LastSeq != 0 {
		last, err := x.job(st.LastSeq, false)
		if err != nil {
			return past, nil, err
		}
		if last != nil && last.Status.Phase < record.PhaseDead {
			past.Outcome, past.Seq = jobpb.RunOutcome_RUN_SKIPPED, st.LastSeq
			st.Skipped++
			return past, nil, nil
		}
	}
	add := proto.Clone(s.def.Job).(*jobpb.Add)
	var outOfTurn uint64
	if op.Now {
		outOfTurn = st.Runs + 1
	}
	add.Id = job.RunID(s.name, run.PlannedMs, outOfTurn)
	if op.Key != "" {
		add.Id = job.KeyedRunID(s.name, op.Key)
	}
	add.Body = job.RunBody(add.Body, s.name, run, st.Runs+1)
	add.IfExists = jobpb.IfExists_IF_EXISTS_KEEP
	add.DueMs = run.PlannedMs
	if s.def.JitterMs > 0 && !op.Now {
		add.DueMs += int64(mix(op.Entropy^uint64(run.PlannedMs)) % uint64(s.def.JitterMs+1))
	}
	made := new(jobpb.Result)
	// The result of the add goes into the state, so followers need it too.
	replies := x.replies
	x.replies, x.planned = true, !op.Now
	err := x.addRun(add, made)
	x.replies, x.planned = replies, false
	if err != nil {
		return past, nil, err
	}
	if made.Code != jobpb.Code_OK {
		past.Outcome, past.Code = jobpb.RunOutcome_RUN_REFUSED, made.Code
		st.Refused++
		return past, made, nil
	}
	st.Runs++
	st.LastSeq = made.Seq
	past.Seq, past.Id = made.Seq, add.Id
	return past, made, nil
}

// addRun adds the job of a run. Who made or started the schedule had the right to.
func (x *tx) addRun(add *jobpb.Add, r *jobpb.Result) error {
	if err := oplog.CheckOp(&jobpb.Op{Kind: &jobpb.Op_Add{Add: add}}, x.limits()); err != nil {
		return x.refuseInvalid(err, r)
	}
	return x.add(add, r)
}

// addPastRun adds a run to the past ones and drops the oldest beyond the limit.
func (x *tx) addPastRun(s *schedule, past *jobpb.PastRun) {
	st := s.state
	st.Past = append(st.Past, past)
	if n := len(st.Past); n > x.limits().PastRuns {
		st.Past = append([]*jobpb.PastRun(nil), st.Past[n-x.limits().PastRuns:]...)
	}
}

// schedule is one schedule in the running transaction.
type schedule struct {
	name   string
	def    *jobpb.Schedule
	state  *jobpb.ScheduleState
	newDef bool // def has changed and must be written
	gone   bool
}

// schedule returns a schedule; nil: there is none.
func (x *tx) schedule(name string) (*schedule, error) {
	if s, ok := x.schedules[name]; ok {
		if s.gone {
			return nil, nil
		}
		return s, nil
	}
	info, err := record.ReadSchedule(x.db, name)
	if info == nil || err != nil {
		return nil, err
	}
	return &schedule{name: info.Name, def: info.Schedule, state: info.State}, nil
}

// touchSchedule marks a schedule as changed.
func (x *tx) touchSchedule(s *schedule) {
	if x.schedules == nil {
		x.schedules = make(map[string]*schedule)
	}
	x.schedules[s.name] = s
}

// writeSchedules adds the changed schedules to the batch. The keys differ, so their order
// makes no difference.
func (x *tx) writeSchedules() error {
	for _, s := range x.schedules {
		key := record.AppendScheduleKey(nil, record.ScheduleDef, s.name)
		stateKey := record.AppendScheduleKey(nil, record.ScheduleState, s.name)
		if s.gone {
			must(x.batch.Delete(key, nil))
			must(x.batch.Delete(stateKey, nil))
			continue
		}
		if s.newDef {
			if err := x.setMessage(key, s.def); err != nil {
				return err
			}
		}
		if err := x.setMessage(stateKey, s.state); err != nil {
			return err
		}
	}
	return nil
}

// setMessage writes one of the records of a schedule.
func (x *tx) setMessage(key []byte, m interface{ MarshalVT() ([]byte, error) }) error {
	b, err := record.EncodeSchedule(m)
	if err == nil {
		must(x.batch.Set(key, b, nil))
	}
	return err
}

// scheduleTimes has, earliest first, the instants at which the leader must fire or plan
// schedules: the next planned instant, or atOnce for a schedule without one.
type scheduleTimes struct {
	heap []*scheduleTime
	at   map[string]*scheduleTime
}

type scheduleTime struct {
	name     string
	next     int64
	position int
}

func (h *scheduleTimes) Len() int { return len(h.heap) }

func (h *scheduleTimes) Less(i, j int) bool { return h.heap[i].compare(h.heap[j]) < 0 }

func (h *scheduleTimes) Swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].position, h.heap[j].position = i, j
}

func (h *scheduleTimes) Push(x any) {
	t := x.(*scheduleTime)
	t.position = len(h.heap)
	h.heap = append(h.heap, t)
}

func (h *scheduleTimes) Pop() any {
	last := h.heap[len(h.heap)-1]
	h.heap[len(h.heap)-1] = nil
	h.heap = h.heap[:len(h.heap)-1]
	return last
}

func (t *scheduleTime) compare(u *scheduleTime) int {
	return cmp.Or(cmp.Compare(t.next, u.next), strings.Compare(t.name, u.name))
}

// atOnce is the instant of work that is due now: a schedule without a planned instant,
// ready jobs that are missing from the expiring list.
const atOnce = 1

// set adds or updates a schedule; a nil state removes it.
func (h *scheduleTimes) set(name string, st *jobpb.ScheduleState) {
	next := st.GetNextMs()
	if st.GetUnplanned() {
		next = atOnce
	}
	t := h.at[name]
	switch {
	case t == nil && next == 0:
	case t == nil:
		if h.at == nil {
			h.at = make(map[string]*scheduleTime)
		}
		t = &scheduleTime{name: strings.Clone(name), next: next}
		h.at[t.name] = t
		heap.Push(h, t)
	case next == 0:
		heap.Remove(h, t.position)
		delete(h.at, name)
	default:
		t.next = next
		heap.Fix(h, t.position)
	}
}

// earliest returns the first of the instants; 0: none.
func (h *scheduleTimes) earliest() int64 {
	if len(h.heap) == 0 {
		return 0
	}
	return h.heap[0].next
}

// due returns the first n schedules whose instant has come, earliest first.
func (h *scheduleTimes) due(nowMS int64, n int) []string {
	var found []*scheduleTime
	var walk func(i int)
	walk = func(i int) {
		if i >= len(h.heap) || h.heap[i].next > nowMS {
			return // its children are not earlier
		}
		found = append(found, h.heap[i])
		walk(2*i + 1)
		walk(2*i + 2)
	}
	walk(0)
	slices.SortFunc(found, (*scheduleTime).compare)
	var names []string
	for _, t := range found[:min(len(found), n)] {
		names = append(names, t.name)
	}
	return names
}

// NextSchedule returns the instant, in Unix milliseconds, at which the leader must next
// fire or plan a schedule; 0: none.
func (m *Machine) NextSchedule() int64 { return m.nextSchedule.Load() }

// DueSchedules returns the first n schedules whose instant has come, earliest first.
func (m *Machine) DueSchedules(nowMS int64, n int) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.public.schedules.due(nowMS, n)
}

// loadSchedules reads when each schedule is due and counts the schedules.
func loadSchedules(db *pebble.DB) (times scheduleTimes, count int, err error) {
	err = record.EachScheduleState(db, func(key, value []byte) error {
		var st jobpb.ScheduleState
		if err := record.DecodeSchedule(value, &st); err != nil {
			return fmt.Errorf("schedule %q: %w", key[2:], err)
		}
		times.set(string(key[2:]), &st)
		count++
		return nil
	})
	return times, count, err
}
