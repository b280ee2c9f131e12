package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// model is the state machine as naive as can be: a map of jobs, and for every
// question a look at all of them. It shares no code with the machine.
type model struct {
	clock     int64
	lastSeq   uint64
	jobs      map[uint64]*modelJob
	topics    map[string]*modelTopic
	lastTopic uint32
	maxTopics int
	cluster   string
	forgotten map[string]bool
}

type modelJob struct {
	jobpb.Job            // as a reader sees it; Id is never empty
	ownID      bool      // the producer's
	first      jobpb.Add // as requested
	generation uint32
	deadRank   uint64
}

type modelTopic struct {
	jobpb.Topic
	number     uint32
	emptySince int64
	deaths     uint64
}

func newModel(maxTopics int) *model {
	return &model{
		jobs: map[uint64]*modelJob{}, topics: map[string]*modelTopic{},
		maxTopics: maxTopics, forgotten: map[string]bool{},
	}
}

// apply does one operation; the result has no message.
func (m *model) apply(now int64, op *jobpb.Op) *jobpb.Result {
	m.clock = max(m.clock, now)
	r := &jobpb.Result{}
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		m.add(k.Add, r)
	case *jobpb.Op_Reserve:
		m.reserve(k.Reserve, r)
	case *jobpb.Op_Advance:
		m.advance(k.Advance, r)
	case *jobpb.Op_PauseTopic:
		m.pauseTopic(k.PauseTopic, r)
	case *jobpb.Op_KickTopic:
		m.kickTopic(k.KickTopic, r)
	case *jobpb.Op_SetCluster:
		if m.cluster == "" {
			m.cluster = k.SetCluster.ClusterId
		} else if m.cluster != k.SetCluster.ClusterId {
			r.Code = jobpb.Code_CLUSTER_MISMATCH
		}
	case *jobpb.Op_ForgetMember:
		m.forgotten[k.ForgetMember.ServerId] = true
	case *jobpb.Op_Mark:
	case *jobpb.Op_Compose:
		m.compose(k.Compose, r)
	case *jobpb.Op_Update:
		m.update(k.Update, r)
	default:
		m.change(op, r)
	}
	return r
}

func (m *model) find(ref *jobpb.Ref) *modelJob {
	for _, j := range m.jobs {
		if (ref.Id == "" || ref.Id == j.Id) && (ref.Seq == 0 || ref.Seq == j.Seq) {
			return j
		}
	}
	return nil
}

func (m *model) add(a *jobpb.Add, r *jobpb.Result) {
	const maxDelay = int64(1_000_000_000_000)
	bad := badExtras(a.Extras) || a.TtrMs < 1 || a.TtrMs > 10*365*24*3600*1000 || a.Topic == "" || len(a.Topic) > 200 ||
		strings.HasPrefix(a.Id, "$") || a.DueMs < 0 || a.DueMs > m.clock+maxDelay ||
		(a.DueMs == 0 && (a.DelayMs < 0 || a.DelayMs > maxDelay))
	if bad {
		r.Code = jobpb.Code_INVALID
		return
	}
	if a.Id != "" {
		if old := m.find(&jobpb.Ref{Id: a.Id}); old != nil && !m.addTo(a, old, r) {
			return
		}
	}
	t := m.topics[a.Topic]
	if t == nil {
		if len(m.topics) >= m.maxTopics {
			r.Code = jobpb.Code_TOO_MANY_TOPICS
			return
		}
		t = m.newTopic(a.Topic)
	}
	t.Added++
	m.lastSeq++
	j := &modelJob{ownID: a.Id != "", first: jobpb.Add{
		Id: a.Id, Topic: a.Topic, Body: a.Body, BodyKind: a.BodyKind, Priority: a.Priority,
		DelayMs: a.DelayMs, DueMs: a.DueMs, TtrMs: a.TtrMs, MaxAttempts: a.MaxAttempts, Extras: a.Extras,
	}}
	j.Extras = a.Extras
	j.Seq, j.Id, j.Topic, j.Body, j.BodyKind = m.lastSeq, a.Id, a.Topic, a.Body, a.BodyKind
	if a.Id == "" {
		j.Id = "$0-" + strconv.FormatUint(j.Seq, 10)
	}
	j.Priority, j.TtrMs, j.MaxAttempts, j.CreatedMs = a.Priority, a.TtrMs, a.MaxAttempts, m.clock
	j.DueMs = m.clock + a.DelayMs
	if a.DueMs != 0 {
		j.DueMs = max(a.DueMs, m.clock)
	}
	j.DelayMs = j.DueMs - m.clock
	j.State = jobpb.State_STATE_READY
	if j.DueMs > m.clock {
		j.State = jobpb.State_STATE_DELAYED
	}
	j.Revision = 1
	m.jobs[j.Seq] = j
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = j.Seq, j.Id, j.State, j.DueMs, j.Revision
}

func (m *model) newTopic(name string) *modelTopic {
	m.lastTopic++
	t := &modelTopic{number: m.lastTopic}
	t.Name = name
	m.topics[name] = t
	return t
}

func (m *model) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) {
	t := m.topics[op.Topic]
	switch {
	case op.PauseMs < 0 || op.PauseMs > 4_294_967_295_000:
		r.Code = jobpb.Code_INVALID
		return
	case t == nil && !op.Create:
		r.Code = jobpb.Code_NOT_FOUND
		return
	case t == nil && op.Topic == "":
		r.Code = jobpb.Code_INVALID
		return
	case t == nil && len(m.topics) >= m.maxTopics:
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	case t == nil:
		t = m.newTopic(op.Topic)
		t.emptySince = m.clock
	}
	t.Pauses++
	t.PausedUntilMs, t.PauseMs = 0, op.PauseMs
	if op.PauseMs > 0 {
		t.PausedUntilMs = m.clock + op.PauseMs
	}
}

func (m *model) addAgain(a *jobpb.Add, old *modelJob, r *jobpb.Result) {
	f := &old.first
	same := a.Topic == f.Topic && string(a.Body) == string(f.Body) && a.BodyKind == f.BodyKind &&
		a.Priority == f.Priority && a.TtrMs == f.TtrMs && a.MaxAttempts == f.MaxAttempts &&
		proto.Equal(a.Extras, f.Extras) && a.DueMs == f.DueMs && (a.DueMs != 0 || a.DelayMs == f.DelayMs)
	if !same && a.IfExists != jobpb.IfExists_IF_EXISTS_KEEP {
		r.Code = jobpb.Code_ID_CONFLICT
		return
	}
	r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = old.Seq, old.Id, old.State, old.DueMs, old.Revision, true
}

// sorted lists the jobs that match, in the order of less.
func (m *model) sorted(match func(*modelJob) bool, order func(a, b *modelJob) int) []*modelJob {
	var all []*modelJob
	for _, j := range m.jobs {
		if match(j) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, order)
	return all
}

func (m *model) reserve(op *jobpb.Reserve, r *jobpb.Result) {
	if len(op.Topics) == 0 || op.Max == 0 || op.Max > 1000 || op.TtrMs < 0 || op.MaxBytes < 0 {
		r.Code = jobpb.Code_INVALID
		return
	}
	ready := m.sorted(func(j *modelJob) bool {
		return j.State == jobpb.State_STATE_READY && slices.Contains(op.Topics, j.Topic) && m.topics[j.Topic].PausedUntilMs == 0
	}, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq))
	})
	bytes := 0
	for i, j := range ready {
		bytes += len(j.Body)
		if i == int(op.Max) || (i > 0 && op.MaxBytes > 0 && bytes > int(op.MaxBytes)) {
			break
		}
		r.Jobs = append(r.Jobs, m.handOut(j, cmp.Or(op.TtrMs, j.TtrMs)))
	}
}

func (m *model) handOut(j *modelJob, ttr int64) *jobpb.Reserved {
	j.State, j.DiedMs = jobpb.State_STATE_RESERVED, 0
	j.Revision++
	j.Attempts++
	j.Reserves++
	j.generation++
	j.ReservedUntilMs = m.clock + ttr
	return &jobpb.Reserved{
		Id: j.Id, Seq: j.Seq, Topic: j.Topic, Body: j.Body, BodyKind: j.BodyKind,
		Generation: j.generation, Attempts: j.Attempts, Priority: j.Priority,
		DueMs: j.DueMs, ReservedUntilMs: j.ReservedUntilMs, TtrMs: ttr, Extras: j.Extras,
	}
}

// change does the operations on one job.
func (m *model) change(op *jobpb.Op, r *jobpb.Result) {
	var ref *jobpb.Ref
	needsReservation := true
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		ref = k.Finish.Ref
	case *jobpb.Op_Delete:
		ref, needsReservation = k.Delete.Ref, false
	case *jobpb.Op_ReserveJob:
		ref, needsReservation = k.ReserveJob.Ref, false
		if k.ReserveJob.TtrMs < 0 || k.ReserveJob.TtrMs > 10*365*24*3600*1000 {
			r.Code = jobpb.Code_INVALID
			return
		}
	case *jobpb.Op_Release:
		ref = k.Release.Ref
		if k.Release.DelayMs < 0 || k.Release.DelayMs > 1_000_000_000_000 {
			r.Code = jobpb.Code_INVALID
			return
		}
	case *jobpb.Op_Touch:
		ref = k.Touch.Ref
	case *jobpb.Op_Bury:
		ref = k.Bury.Ref
	case *jobpb.Op_Kick:
		ref, needsReservation = k.Kick.Ref, false
	}
	if ref.Id == "" && ref.Seq == 0 {
		r.Code = jobpb.Code_INVALID
		return
	}
	j := m.find(ref)
	if j == nil {
		r.Code = jobpb.Code_NOT_FOUND
		return
	}
	held := j.State == jobpb.State_STATE_RESERVED
	if ref.Generation != 0 && (!held || ref.Generation != j.generation) {
		r.Code = jobpb.Code_STALE_TOKEN
		return
	}
	r.Seq, r.Id, r.DueMs = j.Seq, j.Id, j.DueMs
	if needsReservation && !held {
		r.Code = jobpb.Code_NOT_RESERVED
		return
	}
	m.changeFound(op, j, r)
}

func (m *model) changeFound(op *jobpb.Op, j *modelJob, r *jobpb.Result) {
	t := m.topics[j.Topic]
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		t.Finished++
		m.remove(j)
		return
	case *jobpb.Op_Delete:
		if k.Delete.SpareReserved && j.State == jobpb.State_STATE_RESERVED && k.Delete.Ref.Generation == 0 {
			r.Code = jobpb.Code_ALREADY_RESERVED
			return
		}
		if !meets(k.Delete.Condition, j) {
			r.Code = jobpb.Code_CONDITION_FAILED
			return
		}
		t.Deleted++
		m.remove(j)
		return
	case *jobpb.Op_ReserveJob:
		switch j.State {
		case jobpb.State_STATE_RESERVED:
			r.Code = jobpb.Code_ALREADY_RESERVED
			return
		case jobpb.State_STATE_DELAYED:
			j.DueMs = min(j.DueMs, m.clock)
		case jobpb.State_STATE_DEAD:
			j.Attempts = 0
		}
		r.Jobs = append(r.Jobs, m.handOut(j, cmp.Or(k.ReserveJob.TtrMs, j.TtrMs)))
		r.ReservedUntilMs = j.ReservedUntilMs
	case *jobpb.Op_Release:
		j.Revision++
		if k.Release.Returned {
			m.giveBack(k.Release, t, j)
		} else {
			m.release(k.Release, t, j)
		}
	case *jobpb.Op_Touch:
		j.Revision++
		j.ReservedUntilMs = m.clock + cmp.Or(k.Touch.TtrMs, j.TtrMs)
		r.ReservedUntilMs = j.ReservedUntilMs
	case *jobpb.Op_Bury:
		if k.Bury.SetPriority {
			j.Priority = k.Bury.Priority
		}
		j.Reason = cmp.Or(k.Bury.Reason, j.Reason)
		j.LastError = cmp.Or(k.Bury.Reason, j.LastError)
		j.Buries++
		j.Revision++
		m.die(t, j)
	case *jobpb.Op_Kick:
		switch j.State {
		case jobpb.State_STATE_DEAD:
			m.revive(j)
		case jobpb.State_STATE_DELAYED:
			m.hasten(j)
		default:
			r.Code = jobpb.Code_NOT_KICKABLE
			return
		}
	}
	r.State, r.DueMs, r.Revision = j.State, j.DueMs, j.Revision
}

func (m *model) release(op *jobpb.Release, t *modelTopic, j *modelJob) {
	if op.SetPriority {
		j.Priority = op.Priority
	}
	delay := op.DelayMs
	last := j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts
	if op.Undelivered {
		j.Attempts--
		j.Reserves--
		last = false
	} else {
		j.Releases++
	}
	if op.Backoff && delay == 0 && !last && !op.Undelivered {
		delay = modelBackoff(j)
	}
	j.DelayMs = delay
	j.Reason = cmp.Or(op.Reason, j.Reason)
	j.LastError = cmp.Or(op.Reason, j.LastError)
	j.ReservedUntilMs = 0
	switch {
	case last:
		if op.Reason == "" {
			j.Reason = fmt.Sprintf("released on attempt %d of %d", j.Attempts, j.MaxAttempts)
		}
		m.die(t, j)
	case delay > 0:
		j.State = jobpb.State_STATE_DELAYED
		j.DueMs = m.clock + delay
	default:
		j.State = jobpb.State_STATE_READY
	}
}

func (m *model) giveBack(op *jobpb.Release, t *modelTopic, j *modelJob) {
	j.ReservedUntilMs = 0
	switch {
	case op.Undelivered:
		j.Attempts--
		j.Reserves--
		j.State = jobpb.State_STATE_READY
	case j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts:
		j.Reason = fmt.Sprintf("the consumer's connection ended on attempt %d of %d", j.Attempts, j.MaxAttempts)
		m.die(t, j)
	default:
		j.State = jobpb.State_STATE_READY
	}
}

func (m *model) die(t *modelTopic, j *modelJob) {
	j.State = jobpb.State_STATE_DEAD
	j.ReservedUntilMs = 0
	j.DiedMs = m.clock
	t.deaths++
	t.Died++
	j.deadRank = t.deaths
}

func (m *model) revive(j *modelJob) {
	j.State = jobpb.State_STATE_READY
	j.DiedMs = 0
	j.Attempts = 0
	j.Kicks++
	j.Revision++
}

func (m *model) remove(j *modelJob) {
	delete(m.jobs, j.Seq)
	for _, other := range m.jobs {
		if other.Topic == j.Topic {
			return
		}
	}
	m.topics[j.Topic].emptySince = m.clock
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
		m.revive(j)
		r.Count++
	}
	if !op.OrDelayed || len(dead) > 0 {
		return
	}
	delayed := m.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_DELAYED && j.Topic == op.Topic },
		func(a, b *modelJob) int { return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq)) })
	for _, j := range delayed[:min(len(delayed), int(op.Max))] {
		m.hasten(j)
		r.Count++
	}
}

func (m *model) hasten(j *modelJob) {
	j.DueMs = m.clock
	j.Kicks++
	j.Revision++
	j.State = jobpb.State_STATE_READY
}

// instant is when a job needs an Advance; 0: never.
func (j *modelJob) instant() int64 {
	switch j.State {
	case jobpb.State_STATE_DELAYED:
		return j.DueMs
	case jobpb.State_STATE_RESERVED:
		return j.ReservedUntilMs
	}
	return 0
}

// nextOf is the job of a topic that needs an Advance first, and when; the
// instant alone is that of a topic to be dropped, or of a pause to end.
func (m *model) nextOf(t *modelTopic) (*modelJob, int64) {
	j, at := m.nextJob(t)
	if t.PausedUntilMs != 0 && (j == nil || t.PausedUntilMs < at) {
		return nil, t.PausedUntilMs
	}
	return j, at
}

func (m *model) nextJob(t *modelTopic) (*modelJob, int64) {
	inTopic := m.sorted(func(j *modelJob) bool { return j.Topic == t.Name }, func(a, b *modelJob) int {
		// Delayed before reserved, for their numbers are in that order.
		return cmp.Or(cmp.Compare(a.instant(), b.instant()), cmp.Compare(a.State, b.State), cmp.Compare(a.Seq, b.Seq))
	})
	if len(inTopic) == 0 {
		return nil, t.emptySince + 3_600_000
	}
	for _, j := range inTopic {
		if j.instant() != 0 {
			return j, j.instant()
		}
	}
	return nil, 0
}

// nextDue is the machine's NextDue.
func (m *model) nextDue() int64 {
	var first int64
	for _, t := range m.topics {
		if _, at := m.nextOf(t); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

func (m *model) advance(op *jobpb.Advance, r *jobpb.Result) {
	if op.Max == 0 {
		r.Code = jobpb.Code_INVALID
		return
	}
	isDue := func(t *modelTopic) bool {
		_, at := m.nextOf(t)
		return at != 0 && at <= m.clock
	}
	due := slices.SortedFunc(maps.Values(m.topics), func(a, b *modelTopic) int {
		_, x := m.nextOf(a)
		_, y := m.nextOf(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.number, b.number))
	})
	due = slices.DeleteFunc(due, func(t *modelTopic) bool { return !isDue(t) })
	due = due[:min(len(due), int(op.Max))]
	for left := int(op.Max); left > 0 && len(due) > 0; {
		share := max(1, left/len(due))
		var still []*modelTopic
		for _, t := range due {
			n := 0
			for n < share && left > 0 && m.topics[t.Name] == t && isDue(t) {
				m.advanceOne(t, r)
				n++
				left--
			}
			if n == share {
				still = append(still, t)
			}
		}
		due = still
	}
	for _, t := range m.topics {
		r.More = r.More || isDue(t)
	}
}

func (m *model) advanceOne(t *modelTopic, r *jobpb.Result) {
	if t.PausedUntilMs != 0 && t.PausedUntilMs <= m.clock {
		t.PausedUntilMs, t.PauseMs = 0, 0
		return
	}
	j, _ := m.nextOf(t)
	if j == nil {
		delete(m.topics, t.Name)
		return
	}
	r.Count++
	if j.State == jobpb.State_STATE_DELAYED {
		j.State = jobpb.State_STATE_READY
		return
	}
	t.Timeouts++
	j.Timeouts++
	j.Revision++
	j.ReservedUntilMs = 0
	j.Reason = "time to run exceeded"
	if j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts {
		j.Reason = fmt.Sprintf("time to run exceeded on attempt %d of %d", j.Attempts, j.MaxAttempts)
		m.die(t, j)
		return
	}
	j.State = jobpb.State_STATE_READY
	if wait := modelBackoff(j); wait > 0 {
		j.State, j.DelayMs, j.DueMs = jobpb.State_STATE_DELAYED, wait, m.clock+wait
	}
}

// badExtras knows what the random test makes.
func badExtras(e *jobpb.Extras) bool {
	b := e.GetBackoff()
	return b != nil && (len(b.DelaysMs) > 0) == (b.BaseMs > 0)
}

// modelBackoff is a job's wait after an attempt that failed, without jitter.
func modelBackoff(j *modelJob) int64 {
	b := j.Extras.GetBackoff()
	switch n := int(j.Attempts); {
	case b == nil:
		return 0
	case n <= len(b.DelaysMs):
		return b.DelaysMs[max(n, 1)-1]
	case len(b.DelaysMs) > 0:
		return b.DelaysMs[len(b.DelaysMs)-1]
	default:
		wait := float64(b.BaseMs) * math.Pow(float64(b.FactorPermille)/1000, float64(max(n, 1)-1))
		return int64(min(wait, float64(b.MaxMs)))
	}
}

// describe lists jobs and topics as a View would.
func (m *model) describe() (jobs []*jobpb.Job, topics []*jobpb.Topic) {
	for _, seq := range slices.Sorted(maps.Keys(m.jobs)) {
		jobs = append(jobs, &m.jobs[seq].Job)
	}
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		t := &m.topics[name].Topic
		t.Delayed, t.Ready, t.Reserved, t.Dead, t.OldestDueMs, t.Urgent = 0, 0, 0, 0, 0, 0
		for _, j := range m.jobs {
			if j.Topic != name {
				continue
			}
			switch j.State {
			case jobpb.State_STATE_DELAYED:
				t.Delayed++
			case jobpb.State_STATE_READY:
				t.Ready++
				if j.Priority < 1024 {
					t.Urgent++
				}
			case jobpb.State_STATE_RESERVED:
				t.Reserved++
				continue
			case jobpb.State_STATE_DEAD:
				t.Dead++
				continue
			}
			if t.OldestDueMs == 0 || j.DueMs < t.OldestDueMs {
				t.OldestDueMs = j.DueMs
			}
		}
		topics = append(topics, t)
	}
	return jobs, topics
}
