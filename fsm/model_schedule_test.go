package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// applySchedule applies the operations on schedules, and reports whether op is one.
func (m *model) applySchedule(op *jobpb.Op, r *jobpb.Result) bool {
	switch k := op.Kind.(type) {
	case *jobpb.Op_PutSchedule:
		m.putSchedule(k.PutSchedule, r)
	case *jobpb.Op_DeleteSchedule:
		s := m.schedules[k.DeleteSchedule.Name]
		switch {
		case s == nil:
			r.Code = jobpb.Code_NOT_FOUND
		case k.DeleteSchedule.IfRevision != 0 && k.DeleteSchedule.IfRevision != s.State.Revision:
			r.Code = jobpb.Code_CONDITION_FAILED
		default:
			delete(m.schedules, s.Name)
			r.Id, r.Details = s.Name, &jobpb.Details{ScheduleRevision: s.State.Revision}
		}
	case *jobpb.Op_FireSchedule:
		m.fireSchedule(k.FireSchedule, r)
	default:
		return false
	}
	return true
}

func (m *model) putSchedule(op *jobpb.PutSchedule, r *jobpb.Result) {
	d := op.Schedule
	if op.Name == "" || strings.HasPrefix(op.Name, "$") || d != nil && (d.Job == nil || d.Job.Topic == "" || d.MissedAfterMs < 1 ||
		(d.Missed == jobpb.Missed_MISSED_ALL) != (d.MissedMax > 0)) {
		r.Code = jobpb.Code_INVALID
		return
	}
	s := m.schedules[op.Name]
	if s == nil && (d == nil || op.IfRevision != 0) {
		r.Code = jobpb.Code_NOT_FOUND
		return
	}
	isNew := s == nil
	if isNew {
		s = &jobpb.ScheduleInfo{Name: op.Name, State: &jobpb.ScheduleState{CreatedMs: m.clock}}
	}
	if op.IfRevision != 0 && op.IfRevision != s.State.Revision {
		r.Code = jobpb.Code_CONDITION_FAILED
		return
	}
	if d != nil && (isNew || !proto.Equal(d, s.Schedule)) && !m.mayPush(d.Job.Topic, d.Job.Options.GetPushUrl()) {
		r.Code = jobpb.Code_INVALID
		return
	}
	newDef := d != nil && (isNew || !proto.Equal(d, s.Schedule))
	newPause := op.Paused != nil && *op.Paused != s.State.Paused
	r.Id = op.Name
	if !newDef && !newPause {
		r.Existing, r.Details = true, &jobpb.Details{ScheduleRevision: s.State.Revision}
		return
	}
	otherTimes := newPause
	if newDef {
		counted := isNew || d.Spec != s.Schedule.Spec || d.StartMs != s.Schedule.StartMs
		if counted {
			s.State.AnchorMs = m.clock
		}
		otherTimes = otherTimes || counted || d.Zone != s.Schedule.Zone || d.EndMs != s.Schedule.EndMs
		s.Schedule = proto.Clone(d).(*jobpb.Schedule)
	}
	if newPause {
		s.State.Paused = *op.Paused
	}
	if otherTimes {
		s.State.NextMs, s.State.Unplanned = 0, !s.State.Paused
	}
	r.Replaced = !isNew
	s.State.Revision, s.State.ChangedMs, s.State.Trouble = m.takeNumber(), m.clock, ""
	r.Details = &jobpb.Details{ScheduleRevision: s.State.Revision}
	m.schedules[op.Name] = s
}

func (m *model) fireSchedule(op *jobpb.FireSchedule, r *jobpb.Result) {
	s := m.schedules[op.Name]
	switch {
	case invalidFire(op, maxClockMS): // whatever the clock and the state
		r.Code = jobpb.Code_INVALID
		return
	case s == nil:
		r.Code = jobpb.Code_NOT_FOUND
		return
	case invalidFire(op, m.clock):
		r.Code = jobpb.Code_INVALID
		return
	}
	st := s.State
	if op.Now {
		if m.runsElsewhere(s.Name, op.Key) {
			r.Code = jobpb.Code_CROSS_SLOT
			return
		}
		if op.Key != "" && m.ranNow(st, s.Name+"@now-"+op.Key, r) {
			return
		}
		made := m.startRun(s, &jobpb.ScheduledRun{PlannedMs: m.clock, OffsetS: op.Runs[0].OffsetS}, true, op.Key)
		made.Count, made.Jobs = 0, nil
		proto.Merge(r, made)
		return
	}
	switch {
	case st.Paused, st.Revision != op.Revision, st.NextMs != op.ExpectNextMs, st.NextMs == 0 && !st.Unplanned:
		r.Code = jobpb.Code_CONDITION_FAILED
		return
	}
	st.NextMs, st.Unplanned = op.NextMs, false
	if op.Trouble != "" {
		st.NextMs, st.Paused, st.Trouble = 0, true, op.Trouble
		return
	}
	if op.Missed > 0 {
		st.Missed += op.Missed
		m.addPastRun(st, &jobpb.PastRun{PlannedMs: op.LastMissedMs, AtMs: m.clock, Outcome: jobpb.RunOutcome_RUN_MISSED, Count: op.Missed})
	}
	for _, run := range op.Runs {
		if made := m.startRun(s, run, false, ""); made != nil && made.Code == jobpb.Code_OK {
			r.Count++
		}
	}
}

// ranNow reports whether a run was started before, and sets r to it.
func (m *model) ranNow(st *jobpb.ScheduleState, id string, r *jobpb.Result) bool {
	if j := m.taken(id); j != nil {
		r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = j.Seq, id, j.State, j.DueMs, j.Revision, true
		return true
	}
	i := slices.IndexFunc(st.Past, func(p *jobpb.PastRun) bool { return p.Id == id })
	if i >= 0 {
		r.Seq, r.Id, r.DueMs, r.Existing = st.Past[i].Seq, id, st.Past[i].PlannedMs, true
	}
	return i >= 0
}

func invalidFire(op *jobpb.FireSchedule, clock int64) bool {
	if len(op.Key) > 40 || op.Key != "" && !op.Now {
		return true
	}
	instants := []int64{op.ExpectNextMs - 1}
	if op.Now {
		return len(op.Runs) != 1 || op.Missed > 0 || op.Trouble != ""
	}
	if op.Missed > 0 {
		instants = append(instants, op.LastMissedMs)
	}
	for _, run := range op.Runs {
		instants = append(instants, run.PlannedMs)
	}
	for i, at := range instants[1:] {
		if at <= instants[i] || at > clock || at < 1 && op.Missed == 0 {
			return true
		}
	}
	last := instants[len(instants)-1]
	return op.NextMs != 0 && op.NextMs <= last || len(instants) > 1 && (op.ExpectNextMs == 0 || op.Trouble != "")
}

// startRun returns the result of the add; nil: the run was skipped.
func (m *model) startRun(s *jobpb.ScheduleInfo, run *jobpb.ScheduledRun, now bool, key string) *jobpb.Result {
	st := s.State
	past := &jobpb.PastRun{PlannedMs: run.PlannedMs, AtMs: m.clock, Now: now}
	defer m.addPastRun(st, past)
	if last := m.jobs[st.LastSeq]; last != nil && last.State < jobpb.State_STATE_DEAD && s.Schedule.Overlap == jobpb.Overlap_OVERLAP_SKIP && !now {
		past.Outcome, past.Seq = jobpb.RunOutcome_RUN_SKIPPED, st.LastSeq
		st.Skipped++
		return nil
	}
	a := proto.Clone(s.Schedule.Job).(*jobpb.Add)
	utc := time.UnixMilli(run.PlannedMs).UTC()
	a.Id = fmt.Sprintf("%s@%s", s.Name, utc.Format("2006-01-02T15:04:05.999Z"))
	switch {
	case key != "":
		a.Id = s.Name + "@now-" + key
	case now:
		a.Id += fmt.Sprintf("-now%d", st.Runs+1)
	}
	body := strings.ReplaceAll(string(a.Body), "{{run}}", fmt.Sprint(st.Runs+1))
	local := strings.Replace(utc.Add(time.Duration(run.OffsetS)*time.Second).Format("2006-01-02T15:04:05.999Z"), "Z", offsetText(run.OffsetS), 1)
	a.Body = []byte(strings.ReplaceAll(body, "{{planned}}", local))
	a.DueMs, a.IfExists = run.PlannedMs, jobpb.IfExists_IF_EXISTS_KEEP
	r := &jobpb.Result{}
	m.planned = !now
	m.add(a, r)
	m.planned = false
	if r.Code != jobpb.Code_OK {
		past.Outcome, past.Code = jobpb.RunOutcome_RUN_REFUSED, r.Code
		st.Refused++
		return r
	}
	st.Runs++
	st.LastSeq, past.Seq, past.Id = r.Seq, r.Seq, a.Id
	return r
}

func offsetText(seconds int32) string {
	if seconds == 0 {
		return "Z"
	}
	return fmt.Sprintf("+%02d:%02d", seconds/3600, seconds%3600/60)
}

func (m *model) addPastRun(st *jobpb.ScheduleState, past *jobpb.PastRun) {
	st.Past = append(st.Past, past)
	st.Past = st.Past[max(0, len(st.Past)-20):]
}

func (m *model) nextSchedule() (next int64) {
	for _, s := range m.schedules {
		at := s.State.NextMs
		if s.State.Unplanned {
			at = 1
		}
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

// scheduleOp returns an operation on a schedule, mostly one that fits its state.
func (s *simulation) scheduleOp() *jobpb.Op {
	name := s.scheduleName()
	known := s.model.schedules[name]
	revision := uint64(0)
	if known != nil && s.rng.IntN(3) == 0 {
		revision = known.State.Revision + uint64(s.pick(0, 0, 1))
	}
	switch n := s.rng.IntN(20); {
	case n == 0:
		return &jobpb.Op{Kind: &jobpb.Op_DeleteSchedule{DeleteSchedule: &jobpb.DeleteSchedule{Name: name, IfRevision: revision}}}
	case n < 3 || known == nil:
		return &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: s.put(name, revision)}}
	case n < 5:
		return &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Paused: new(s.rng.IntN(3) == 0), IfRevision: revision}}}
	default:
		return &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: s.fire(known)}}
	}
}

func (s *simulation) put(name string, revision uint64) *jobpb.PutSchedule {
	put := &jobpb.PutSchedule{Name: name, IfRevision: revision, Schedule: &jobpb.Schedule{
		Spec: fmt.Sprintf("spec %d", s.rng.IntN(2)), Zone: fmt.Sprintf("zone %d", s.rng.IntN(2)), StartMs: s.pick(0, 0, 5), EndMs: s.pick(0, 0, 1<<40),
		Overlap: jobpb.Overlap(s.rng.IntN(2)), Missed: jobpb.Missed(s.rng.IntN(2)), MissedAfterMs: 10,
		Job: &jobpb.Add{Topic: s.topic(), TtrMs: 300, MaxAttempts: 1, Body: []byte(`run {{run}} at {{planned}}`)},
	}}
	if url := s.pushURL(); url != "" && len(url) <= 2000 {
		put.Schedule.Job.Options = &jobpb.JobOptions{PushUrl: url}
	}
	if s.rng.IntN(3) == 0 {
		put.Paused = new(s.rng.IntN(2) == 0)
	}
	switch s.rng.IntN(15) {
	case 0:
		put.Name = "$x"
	case 1:
		put.Schedule.Job = nil
	case 2:
		put.Schedule.Missed, put.Schedule.MissedMax = jobpb.Missed_MISSED_ALL, uint32(s.pick(0, 3))
	case 3:
		put.Schedule.MissedAfterMs = 0
	case 4:
		put.Schedule.Job.Topic = ""
	}
	return put
}

func (s *simulation) fire(known *jobpb.ScheduleInfo) *jobpb.FireSchedule {
	st := known.State
	f := &jobpb.FireSchedule{Name: known.Name, Revision: st.Revision, ExpectNextMs: st.NextMs, Entropy: s.rng.Uint64()}
	next := st.NextMs
	for next != 0 && next <= s.now && s.rng.IntN(8) > 0 && len(f.Runs) < 25 {
		if len(f.Runs) == 0 && s.rng.IntN(6) == 0 {
			f.Missed, f.LastMissedMs = 1+s.rng.Uint64N(3), next
		} else {
			f.Runs = append(f.Runs, &jobpb.ScheduledRun{PlannedMs: next, OffsetS: int32(s.pick(0, 7200))})
		}
		next += 1 + s.rng.Int64N(40)
	}
	if f.NextMs = next; next == 0 {
		f.NextMs = s.now + s.pick(-5, 5, 60)
	}
	switch s.rng.IntN(25) {
	case 0:
		f.Revision++
	case 1:
		f.ExpectNextMs += s.pick(-1, 1)
	case 2:
		f.NextMs = s.pick(0, 1)
	case 3:
		f.Trouble = "no such zone"
	case 4:
		f.Runs = append(f.Runs, &jobpb.ScheduledRun{PlannedMs: s.now + s.pick(0, 50)})
	case 5, 6:
		key := strings.Repeat("k", int(s.pick(0, 0, 1, 1, 2, 2, 3, 4, 40, 41)))
		if s.model.shards > 0 && s.rng.IntN(3) == 0 {
			key = "{" + key + "}"
		}
		return &jobpb.FireSchedule{Name: known.Name, Now: true, Key: key, Runs: []*jobpb.ScheduledRun{{PlannedMs: s.now - s.pick(0, 30)}}}
	case 7:
		f.Key = "k"
	}
	return f
}

// compareSchedules compares all schedules with the model's.
func (s *simulation) compareSchedules(r *rig, v *view.View) {
	require.Equal(s.t, s.model.nextSchedule(), r.m.NextSchedule())
	var all []*jobpb.ScheduleInfo
	for after := ""; ; {
		page, err := v.Schedules(after, 2)
		require.NoError(s.t, err)
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		after = page[len(page)-1].Name
	}
	require.Len(s.t, all, len(s.model.schedules))
	due := []string{}
	for i, name := range slices.Sorted(maps.Keys(s.model.schedules)) {
		want := s.model.schedules[name]
		require.Truef(s.t, proto.Equal(want, all[i]), "want %v\ngot  %v", want, all[i])
		if want.State.Unplanned || want.State.NextMs != 0 && want.State.NextMs <= s.now {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		at := func(name string) int64 { return max(1, s.model.schedules[name].State.NextMs) }
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
	require.ElementsMatch(s.t, due, r.m.DueSchedules(s.now, 100))
	require.Equal(s.t, append([]string(nil), due[:min(1, len(due))]...), append([]string(nil), r.m.DueSchedules(s.now, 1)...))
}

// checkScheduleTimes compares the times of schedules in memory with the store.
func checkScheduleTimes(m *Machine) error {
	times, count, err := loadSchedules(m.store.db.DB)
	if err != nil {
		return err
	}
	const always = 1 << 62
	if count != m.scheduleCount || times.Len() != m.public.schedules.Len() || !slices.Equal(times.due(always, count), m.public.schedules.due(always, count)) || m.NextSchedule() != times.earliest() {
		return fmt.Errorf("%d schedules are counted, %d due some day, the next at %d; the store has %d, %d, %d",
			m.scheduleCount, m.public.schedules.Len(), m.NextSchedule(), count, times.Len(), times.earliest())
	}
	return nil
}

func TestScheduleRecordsOfAnotherReleaseAreRefused(t *testing.T) {
	require.ErrorContains(t, record.DecodeSchedule([]byte{record.ScheduleVersion + 1}, new(jobpb.Schedule)), "format version 2")
	require.ErrorIs(t, record.DecodeSchedule(nil, new(jobpb.Schedule)), record.ErrShort)
	require.Error(t, record.DecodeSchedule([]byte{record.ScheduleVersion, 0xff}, new(jobpb.Schedule)))
}
