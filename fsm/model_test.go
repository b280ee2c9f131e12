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

// model is a naive state machine: a map of jobs, all of which it examines for every
// question. It shares no code with the machine.
type model struct {
	clock              int64
	nextSeq            uint64
	shards, group      uint32 // 0: the cluster has one shard
	jobs               map[uint64]*modelJob
	topics             map[string]*modelTopic
	lastTopic, version uint32
	maxTopics          int
	named              map[string]bool // topics that do not go at the limit
	maxTargets         int
	maxRetained        int
	cluster            string
	forgotten          map[string]bool
	settings           map[string]*jobpb.TopicSettings
	schedules          map[string]*jobpb.ScheduleInfo
	removed            map[string]bool // nodes
	admission          *jobpb.Admission
	reset              modelReset
	walk               modelWalk
	planned            bool // the add under way is a scheduled run's
	upload             modelUpload
	staged             *modelStaged // the state that is on its way to replace this one
	replaced           uint32       // how often the state was replaced
	alone              bool         // the operation under way is the only one of its entry
	modelEffects
}

type modelJob struct {
	jobpb.Job            // as readers see it; Id is never empty
	ownID      bool      // the producer's
	first      jobpb.Add // as requested
	generation uint32
	deadRank   uint64
	expiresOwn int64 // its own expiry; 0: none
	expiring   bool  // it is dropped because it has expired
	late       bool  // nothing but time changed it since its reservation expired
}

type modelTopic struct {
	jobpb.Topic
	number     uint32
	emptySince int64
	deaths     uint64
	limit      *modelLimit  // nil: no rate
	covered    *jobpb.Place // ready jobs up to it expire by themselves
}

func newModel(maxTopics int) *model {
	return &model{
		nextSeq: 1, jobs: map[uint64]*modelJob{}, topics: map[string]*modelTopic{},
		maxTopics: maxTopics, maxTargets: 2, maxRetained: 2, forgotten: map[string]bool{}, removed: map[string]bool{}, settings: map[string]*jobpb.TopicSettings{},
		schedules: map[string]*jobpb.ScheduleInfo{}, admission: &jobpb.Admission{},
		modelEffects: modelEffects{effects: map[uint64][]*jobpb.Result{}},
	}
}

// modelOp is an operation with a file of its own: what it does to the model, and one of it
// at random.
type modelOp struct {
	apply func(m *model, op *jobpb.Op, r *jobpb.Result)
	some  func(s *simulation) *jobpb.Op
}

// modelOps are those operations, by the name of their field in jobpb.Op.
var modelOps = map[string]modelOp{}

func kindName(op *jobpb.Op) string {
	m := op.ProtoReflect()
	return string(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")).Name())
}

// apply applies one operation; the result has no message.
func (m *model) apply(op *jobpb.Op) *jobpb.Result {
	r := &jobpb.Result{}
	if k, ok := op.Kind.(*jobpb.Op_ReplaceState); ok { // what is in the state that comes has its own dates
		m.replaceState(k.ReplaceState, r)
		return r
	}
	if m.isElsewhere(op) {
		r.Code = jobpb.Code_NOT_APPLIED
		return r
	}
	before, revisions := m.look(), m.revisions()
	defer func() { m.notice(before); m.dateChanges(revisions) }()
	if own, found := modelOps[kindName(op)]; found {
		own.apply(m, op, r)
		return r
	}
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
		if k.KickTopic.Sweep != nil {
			m.kickSweep(k.KickTopic, r)
		} else {
			m.kickTopic(k.KickTopic, r)
		}
	case *jobpb.Op_Purge:
		m.purge(k.Purge, r)
	case *jobpb.Op_MoveJobs:
		m.moveJobs(k.MoveJobs, r)
	case *jobpb.Op_SetCluster:
		m.setCluster(k.SetCluster, r)
	case *jobpb.Op_ResetClock:
		m.resetClock(k.ResetClock, r)
	case *jobpb.Op_ForgetMember:
		m.forgetMember(k.ForgetMember, r)
	case *jobpb.Op_RaiseVersion:
		m.raiseVersion(k.RaiseVersion.To, r)
	case *jobpb.Op_Migrate:
		if k.Migrate.Max == 0 {
			r.Code = jobpb.Code_INVALID
		}
	case *jobpb.Op_Mark:
	case *jobpb.Op_SetTopic:
		m.setTopic(k.SetTopic, r)
	case *jobpb.Op_AtomicAdd:
		m.atomicAdd(k.AtomicAdd, r)
	case *jobpb.Op_Update:
		m.update(k.Update, r)
	default:
		if !m.applySchedule(op, r) {
			m.change(op, r)
		}
	}
	return r
}

func (m *model) find(ref *jobpb.Ref) *modelJob {
	for _, j := range m.jobs {
		if !j.ended() && (ref.Id == "" || ref.Id == j.Id) && (ref.Seq == 0 || ref.Seq == j.Seq) {
			return j
		}
	}
	return nil
}

const maxDelay = int64(1_000_000_000_000)

// badAdd reports whether an add is invalid at any clock and in any state.
func badAdd(a *jobpb.Add) bool {
	return badOptions(a.Options) || badFilter(a.Condition.GetFilter()) || a.TtrMs < 1 || a.TtrMs > 10*365*24*3600*1000 || a.Topic == "" || len(a.Topic) > 200 ||
		strings.HasPrefix(a.Id, "$") || a.DueMs < 0 || (a.DueMs == 0 && (a.DelayMs < 0 || a.DelayMs > maxDelay))
}

func (m *model) add(a *jobpb.Add, r *jobpb.Result) {
	if badAdd(a) || a.DueMs > m.clock+maxDelay {
		r.Code = jobpb.Code_INVALID
		return
	}
	if a.Id != "" {
		if old := m.taken(a.Id); old != nil && !m.addTakenID(a, old, r) {
			return
		}
	}
	if m.early(a.DueMs, a.DelayMs, a.Options.GetExpiresMs()) {
		r.Code = jobpb.Code_INVALID
		return
	}
	if !m.mayPush(a.Topic, a.Options.GetPushUrl()) {
		r.Code = jobpb.Code_INVALID
		return
	}
	if m.full(a.Topic, 0) {
		r.Code = jobpb.Code_TOPIC_FULL
		return
	}
	t := m.topics[a.Topic]
	if t == nil {
		if m.topicsAtLimit() {
			r.Code = jobpb.Code_TOO_MANY_TOPICS
			return
		}
		t = m.newTopic(a.Topic)
	}
	t.Added++
	j := &modelJob{ownID: a.Id != "", first: jobpb.Add{
		Id: a.Id, Topic: a.Topic, Body: a.Body, BodyKind: a.BodyKind, Priority: a.Priority,
		DelayMs: a.DelayMs, DueMs: a.DueMs, TtrMs: a.TtrMs, MaxAttempts: a.MaxAttempts, Options: a.Options,
	}}
	m.useDefaults(a, &j.first)
	j.Options, j.expiresOwn = a.Options, a.Options.GetExpiresMs()
	j.Seq, j.Id, j.Topic, j.Body, j.BodyKind = m.takeNumber(), a.Id, a.Topic, a.Body, a.BodyKind
	if a.Id == "" {
		j.Id = "$0-" + strconv.FormatUint(j.Seq, 10)
	}
	j.Priority, j.TtrMs, j.MaxAttempts, j.CreatedMs = a.Priority, j.first.TtrMs, j.first.MaxAttempts, m.clock
	m.setDue(j, a.DueMs, a.DelayMs)
	j.Revision = 1
	j.History = []*jobpb.Event{{Kind: jobpb.Event_ADDED, AtMs: m.clock, State: j.State, DueMs: j.DueMs}}
	m.jobs[j.Seq] = j
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = j.Seq, j.Id, j.State, j.DueMs, j.Revision
}

func (m *model) newTopic(name string) *modelTopic {
	m.lastTopic++
	t := &modelTopic{number: m.lastTopic}
	t.Name = name
	m.topics[name] = t
	m.relimit(t)
	return t
}

func (m *model) addExisting(a *jobpb.Add, old *modelJob, r *jobpb.Result) {
	f := &old.first
	same := a.Topic == f.Topic && string(a.Body) == string(f.Body) && a.BodyKind == f.BodyKind &&
		a.Priority == f.Priority && (a.TopicTtr || a.TtrMs == f.TtrMs) && (a.TopicAttempts || a.MaxAttempts == f.MaxAttempts) &&
		proto.Equal(a.Options, f.Options) && a.DueMs == f.DueMs && (a.DueMs != 0 || a.DelayMs == f.DelayMs)
	if !same && a.IfExists != jobpb.IfExists_IF_EXISTS_KEEP {
		r.Code = jobpb.Code_ID_CONFLICT
		return
	}
	r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = old.Seq, old.Id, old.State, old.DueMs, old.Revision, true
}

// sorted returns the jobs that match, in order.
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
	if len(op.Topics) == 0 || op.Max == 0 || op.Max > 1000 || op.TtrMs < 0 || op.MaxBytes < 0 || len(op.Consumer) > 64 || op.HoldMs < 0 || op.HoldMs > 1000 {
		r.Code = jobpb.Code_INVALID
		return
	}
	ready := m.sorted(func(j *modelJob) bool {
		return j.State == jobpb.State_STATE_READY && slices.Contains(op.Topics, j.Topic) && m.topics[j.Topic].PausedUntilMs == 0
	}, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq))
	})
	bytes := 0
	for _, j := range ready {
		if len(r.Jobs) == int(op.Max) {
			break
		}
		if !m.mayHandOut(j.Topic) {
			continue
		}
		if m.expired(j) {
			m.expire(j)
			continue
		}
		bytes += len(j.Body)
		if len(r.Jobs) > 0 && op.MaxBytes > 0 && bytes > int(op.MaxBytes) {
			break
		}
		r.Jobs = append(r.Jobs, m.handOut(j, cmp.Or(op.TtrMs, j.TtrMs), op.HoldMs, op.Consumer))
	}
}

func (m *model) handOut(j *modelJob, ttr, hold int64, consumer string) *jobpb.Reserved {
	m.gain(j.Topic, -1_000_000)
	j.DueMs = min(j.DueMs, m.clock)
	j.State, j.DiedMs, j.late = jobpb.State_STATE_RESERVED, 0, false
	j.Revision++
	j.Attempts++
	j.Reserves++
	j.generation = max(j.generation, m.replaced<<20) + 1 // no token of a state that was replaced
	j.ReservedUntilMs, j.ReservedBy = m.after(ttr+hold), consumer
	m.note(j, jobpb.Event_RESERVED, j.Attempts, consumer)
	return &jobpb.Reserved{
		Id: j.Id, Seq: j.Seq, Topic: j.Topic, Body: j.Body, BodyKind: j.BodyKind,
		Generation: j.generation, Attempts: j.Attempts, Priority: j.Priority,
		DueMs: j.DueMs, ReservedUntilMs: j.ReservedUntilMs, TtrMs: ttr, Options: j.Options,
	}
}

// change applies the operations on one job.
func (m *model) change(op *jobpb.Op, r *jobpb.Result) {
	var ref *jobpb.Ref
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		ref = k.Finish.Ref
	case *jobpb.Op_Delete:
		ref = k.Delete.Ref
		if badFilter(k.Delete.Condition.GetFilter()) {
			r.Code = jobpb.Code_INVALID
			return
		}
	case *jobpb.Op_ReserveJob:
		ref = k.ReserveJob.Ref
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
		ref = k.Kick.Ref
		if badFilter(k.Kick.Condition.GetFilter()) {
			r.Code = jobpb.Code_INVALID
			return
		}
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
	if r.Code = m.checkRef(op, ref, j); r.Code == jobpb.Code_OK {
		r.Seq, r.Id, r.DueMs = j.Seq, j.Id, j.DueMs
		m.changeFound(op, j, r)
	}
}

func (m *model) changeFound(op *jobpb.Op, j *modelJob, r *jobpb.Result) {
	t := m.topics[j.Topic]
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		t.Finished++
		m.end(j, jobpb.State_STATE_FINISHED)
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
		m.end(j, jobpb.State_STATE_DELETED)
		return
	case *jobpb.Op_ReserveJob:
		if j.State != jobpb.State_STATE_RESERVED && !m.mayHandOut(j.Topic) {
			r.Code = jobpb.Code_TOPIC_LIMITED
			return
		}
		if m.expired(j) {
			m.expire(j)
			if m.jobs[j.Seq] == nil || j.ended() {
				r.Code = jobpb.Code_NOT_FOUND
				return
			}
		}
		switch j.State {
		case jobpb.State_STATE_RESERVED:
			r.Code = jobpb.Code_ALREADY_RESERVED
			return
		case jobpb.State_STATE_DELAYED:
			j.DueMs = min(j.DueMs, m.clock)
		case jobpb.State_STATE_DEAD:
			j.Attempts = 0
			m.restartExpiry(j, j.Topic)
		}
		r.Jobs = append(r.Jobs, m.handOut(j, cmp.Or(k.ReserveJob.TtrMs, j.TtrMs), 0, k.ReserveJob.Consumer))
		r.ReservedUntilMs = j.ReservedUntilMs
	case *jobpb.Op_Release:
		m.giveBack(k.Release, t, j)
	case *jobpb.Op_Touch:
		j.Revision++
		j.ReservedUntilMs = m.after(cmp.Or(k.Touch.TtrMs, j.TtrMs))
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
		m.note(j, jobpb.Event_BURIED, j.Attempts, k.Bury.Reason)
	case *jobpb.Op_Kick:
		to := k.Kick.ToTopic
		switch {
		case !meets(k.Kick.Condition, j):
			r.Code = jobpb.Code_CONDITION_FAILED
			return
		case j.State != jobpb.State_STATE_DEAD && j.State != jobpb.State_STATE_DELAYED:
			r.Code = jobpb.Code_NOT_KICKABLE
			return
		case to != "" && to != j.Topic && !m.mayPush(to, j.Options.GetPushUrl()):
			r.Code = jobpb.Code_INVALID
			return
		case to != "" && m.topics[to] == nil && m.topicsAtLimit():
			r.Code = jobpb.Code_TOO_MANY_TOPICS
			return
		case j.State == jobpb.State_STATE_DEAD:
			m.revive(j, cmp.Or(to, j.Topic))
		default:
			m.kickDelayed(j)
		}
		from := j.Topic
		m.moveTo(j, to)
		m.noteKick(j, from)
	}
	r.State, r.DueMs, r.Revision = j.State, j.DueMs, j.Revision
}

func (m *model) die(t *modelTopic, j *modelJob) {
	j.State = jobpb.State_STATE_DEAD
	j.ReservedUntilMs = 0
	j.DiedMs = m.clock
	t.Died++
	j.deadRank = t.deaths
	t.deaths++
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

// Why a job needs an Advance, in the order in which those of one instant are processed.
const (
	fallsDue = iota
	timesOut
	isForgotten
	expires
	expiresByItself
)

// instant returns when a job needs an Advance, and why; 0: never.
func (m *model) instant(j *modelJob) (at int64, why int) {
	switch j.State {
	case jobpb.State_STATE_DELAYED:
		if own := j.expiresOwn; own != 0 && own < j.DueMs {
			return own, expiresByItself
		}
		return j.DueMs, fallsDue
	case jobpb.State_STATE_RESERVED:
		return j.ReservedUntilMs, timesOut
	case jobpb.State_STATE_READY:
		after := m.settings[j.Topic].GetExpireMs()
		if after > 0 && m.covers(j) && (j.expiresOwn == 0 || j.DueMs+after <= j.expiresOwn) {
			return j.DueMs + after, expires
		}
		return j.expiresOwn, expiresByItself
	}
	return j.RetainedUntilMs, isForgotten
}

// nextOf returns the job of a topic that needs an Advance first, and when. An instant
// without a job is for the topic itself: it is dropped, or its pause ends.
func (m *model) nextOf(t *modelTopic) (*modelJob, int64) {
	j, at := m.nextJob(t)
	if t.PausedUntilMs == math.MaxInt64 && j == nil {
		return nil, 0
	}
	if t.PausedUntilMs != 0 {
		if j == nil || t.PausedUntilMs < at {
			return nil, t.PausedUntilMs
		}
		return j, at
	}
	if token := m.nextToken(t); token != 0 && (at == 0 || token < at) {
		return nil, token
	}
	return j, at
}

func (m *model) nextJob(t *modelTopic) (*modelJob, int64) {
	inTopic := m.sorted(func(j *modelJob) bool { return j.Topic == t.Name }, func(a, b *modelJob) int {
		atA, whyA := m.instant(a)
		atB, whyB := m.instant(b)
		return cmp.Or(cmp.Compare(atA, atB), cmp.Compare(whyA, whyB), cmp.Compare(a.Seq, b.Seq))
	})
	if len(inTopic) == 0 {
		if l := t.limit; l != nil {
			return nil, max(t.emptySince+3_600_000, l.when(l.burst*1_000_000))
		}
		return nil, t.emptySince + 3_600_000
	}
	for _, j := range inTopic {
		if at, _ := m.instant(j); at != 0 {
			return j, at
		}
	}
	return nil, 0
}

// nextDue is Machine.NextDue.
func (m *model) nextDue() int64 {
	var first int64
	if m.reset.ahead != 0 || m.walk.limit != 0 {
		return 1
	}
	for _, t := range m.topics {
		if at := m.nextInstant(t); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// nextInstant returns when a topic needs an Advance; 0: never.
func (m *model) nextInstant(t *modelTopic) int64 {
	if len(m.uncovered(t)) > 0 {
		return 1
	}
	_, at := m.nextOf(t)
	return at
}

func (m *model) advance(op *jobpb.Advance, r *jobpb.Result) {
	if op.Max < 1 || op.Max > 10_000 {
		r.Code = jobpb.Code_INVALID
		return
	}
	before := m.look()
	m.setBack(int(op.Max))
	m.notice(before) // a topic whose job was set back is not due for its next token
	m.walkOn(max(1, int(op.Max)/4))
	isDue := func(t *modelTopic) bool {
		at := m.nextInstant(t)
		return at != 0 && at <= m.clock
	}
	due := slices.SortedFunc(maps.Values(m.topics), func(a, b *modelTopic) int {
		return cmp.Or(cmp.Compare(m.nextInstant(a), m.nextInstant(b)), cmp.Compare(a.number, b.number))
	})
	due = slices.DeleteFunc(due, func(t *modelTopic) bool { return !isDue(t) })
	due = due[:min(len(due), int(op.Max))]
	for _, t := range due {
		if t.limit != nil {
			t.limit.changed = m.clock
		}
	}
	for left := int(op.Max); left > 0 && len(due) > 0; {
		share := max(1, left/len(due))
		var still []*modelTopic
		for _, t := range due {
			n := 0
			for n < share && left > 0 && m.topics[t.Name] == t && isDue(t) {
				if _, at := m.nextOf(t); at == 0 || at > m.clock {
					listed := m.cover(t, min(share-n, left))
					n, left = n+listed, left-listed
					break
				}
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
	r.More = m.reset.ahead != 0 || m.walk.limit != 0
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
	if j.ended() {
		m.remove(j)
		return
	}
	r.Count++
	switch _, why := m.instant(j); why {
	case fallsDue:
		m.makeReady(j)
		return
	case expires, expiresByItself:
		m.expire(j)
		return
	}
	m.timeOut(t, j)
}

// timeOut ends the reservation of a job that was not finished in time.
func (m *model) timeOut(t *modelTopic, j *modelJob) {
	t.Timeouts++
	j.Timeouts++
	j.Revision++
	j.ReservedUntilMs, j.late = 0, true
	j.Reason = "time to run exceeded"
	if j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts {
		j.Reason = fmt.Sprintf("time to run exceeded on attempt %d of %d", j.Attempts, j.MaxAttempts)
		m.die(t, j)
		m.note(j, jobpb.Event_TIMED_OUT, j.Attempts, "")
		return
	}
	if wait := m.backoff(j, false); wait > 0 {
		j.State, j.DelayMs, j.DueMs = jobpb.State_STATE_DELAYED, wait, m.clock+wait
	} else {
		m.makeReady(j)
	}
	m.note(j, jobpb.Event_TIMED_OUT, j.Attempts, "")
}

// badOptions reports whether options that the random test makes are invalid.
func badOptions(e *jobpb.JobOptions) bool {
	b := e.GetBackoff()
	return b != nil && (len(b.DelaysMs) > 0) == (b.BaseMs > 0) || e.GetExpiresMs() < 0 || len(e.GetPushUrl()) > 2000
}

// describe returns jobs and topics as a View does.
func (m *model) describe() (jobs []*jobpb.Job, topics []*jobpb.Topic) {
	for _, seq := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[seq]
		j.ExpiresMs = 0
		if j.State != jobpb.State_STATE_RESERVED {
			j.ReservedBy = ""
		}
		if j.State == jobpb.State_STATE_DELAYED || j.State == jobpb.State_STATE_READY {
			j.ExpiresMs = m.expiry(j)
		}
		jobs = append(jobs, &j.Job)
	}
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		t := &m.topics[name].Topic
		t.Delayed, t.Ready, t.Reserved, t.Dead, t.OldestDueMs, t.Urgent, t.Retained = 0, 0, 0, 0, 0, 0, 0
		t.Settings = m.settings[name]
		t.ThrottledUntilMs = m.throttledUntil(m.topics[name])
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
			default:
				t.Retained++
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
