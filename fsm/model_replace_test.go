package fsm

import (
	"cmp"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

func init() {
	modelOps["put_state_chunk"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.putStateChunk(op.GetPutStateChunk(), r) },
		some: func(s *simulation) *jobpb.Op {
			at := int(s.pick(0, 1, int64(len(s.model.upload.data))))
			return opChunk(uint64(s.pick(0, 1, 2, 2)), at, make([]byte, s.rng.IntN(3)))
		},
	}
	modelOps["drop_state_chunks"] = modelOp{
		apply: func(m *model, op *jobpb.Op, _ *jobpb.Result) {
			if op.GetDropStateChunks().Upload == m.upload.id {
				m.upload = modelUpload{}
			}
		},
		some: func(s *simulation) *jobpb.Op { return opDropChunks(uint64(s.pick(0, 1, 2))) },
	}
	modelOps["replace_state"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.replaceState(op.GetReplaceState(), r) },
		some: func(s *simulation) *jobpb.Op { // refused; simulation.replaceState makes those that are not
			return &jobpb.Op{Kind: &jobpb.Op_ReplaceState{ReplaceState: &jobpb.ReplaceState{Upload: uint64(s.pick(0, 1, 2)), Size: 1, ClusterVersion: 1, Replacements: 1}}}
		},
	}
}

// modelUpload is the archive of which parts were sent.
type modelUpload struct {
	id   uint64
	data []byte
}

// modelStaged is the state that an archive has.
type modelStaged struct {
	archive modelUpload
	state   *model
}

// modelBackup is the model at one point of the log, and the archive of a machine there.
type modelBackup struct {
	state   *model
	data    []byte
	applied Applied
}

func (m *model) putStateChunk(op *jobpb.PutStateChunk, r *jobpb.Result) {
	switch {
	case op.Upload == 0 || len(op.Data) == 0:
		r.Code = jobpb.Code_INVALID
	case op.Offset == 0:
		m.upload = modelUpload{op.Upload, slices.Clone(op.Data)}
	case op.Upload != m.upload.id || op.Offset != uint64(len(m.upload.data)):
		r.Code = jobpb.Code_CONDITION_FAILED
	default:
		m.upload.data = append(slices.Clone(m.upload.data), op.Data...)
	}
}

func (m *model) replaceState(op *jobpb.ReplaceState, r *jobpb.Result) {
	has := m.upload
	switch {
	case !m.alone:
		r.Code = jobpb.Code_INVALID
	case op.Upload != has.id || op.Size != uint64(len(has.data)) || op.Checksum != crc32.Checksum(has.data, record.UploadTable),
		op.ClusterVersion != max(m.version, 1), op.Replacements <= m.replaced, op.ClockMs > m.clock:
		r.Code = jobpb.Code_CONDITION_FAILED
	default:
		next := m.staged.state.copy()
		if m.group > 0 { // what the config group decided is not the backup's to change
			next.at(func() { next.takeSettings(m.settings) })
			next.walk.justNow = false
		}
		next.clock, next.reset, next.nextSeq = m.clock, modelReset{epoch: m.reset.epoch}, max(m.nextSeq, next.nextSeq)
		next.cluster, next.forgotten, next.removed, next.admission = m.cluster, m.forgotten, m.removed, m.admission
		next.modelEffects, next.ahead = m.modelEffects, nil
		next.replaced, next.staged = op.Replacements, m.staged
		*m = *next
	}
}

// takeSettings puts all settings of another state into force.
func (m *model) takeSettings(all map[string]*jobpb.TopicSettings) {
	names := slices.Concat(slices.Collect(maps.Keys(m.settings)), slices.Collect(maps.Keys(all)))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		m.reindex(name, m.settings[name], all[name])
		delete(m.settings, name)
		if s := all[name]; s != nil {
			m.settings[name] = s
		}
		m.applySettings(name)
	}
}

// copy is clone, also of what no operation on jobs changes.
func (m *model) copy() *model {
	c := m.clone()
	c.settings = maps.Clone(m.settings)
	c.walk.names = maps.Clone(m.walk.names)
	c.schedules = map[string]*jobpb.ScheduleInfo{}
	for name, s := range m.schedules {
		c.schedules[name] = proto.CloneOf(s)
	}
	c.admission = proto.CloneOf(m.admission)
	return c
}

// restore makes a state ready to replace that of a cluster: no job is reserved, and the tokens of
// all reservations are below generation.
func (m *model) restore(now int64, fromNow bool, generation uint32) {
	m.ahead, m.upload = nil, modelUpload{}
	m.reset.justNow, m.walk.justNow = false, false
	if m.clock > now {
		m.endReset()
		m.resetClock(&jobpb.ResetClock{Epoch: m.reset.epoch, ToMs: now}, &jobpb.Result{})
		m.reset.justNow = false
	}
	shift := int64(0)
	if fromNow {
		shift = now - m.clock
	}
	m.endReset()
	m.nextSeq += 1 << 40
	m.clock += shift
	for _, t := range m.topics {
		if t.limit != nil {
			t.limit.changed = m.clock
		}
		t.emptySince += shift
		if t.PausedUntilMs != 0 && t.PauseMs != 1<<63-1 {
			t.PausedUntilMs += shift
		}
	}
	m.at(func() {
		for _, j := range m.sorted(func(*modelJob) bool { return true }, func(a, b *modelJob) int { return cmp.Compare(a.Seq, b.Seq) }) {
			m.restoreJob(j, shift, generation)
		}
	})
}

// at is for a change that is not an operation: it happens at the clock.
func (m *model) at(change func()) {
	before, revisions := m.look(), m.revisions()
	change()
	m.notice(before)
	m.dateChanges(revisions)
}

// endReset changes all jobs that a reset of the clock has not changed yet.
func (m *model) endReset() { m.at(func() { m.setBack(len(m.jobs)) }) }

func (m *model) restoreJob(j *modelJob, shift int64, generation uint32) {
	timedOut := j.State == jobpb.State_STATE_RESERVED
	if timedOut {
		m.timeOut(m.topics[j.Topic], j)
	}
	if !j.ended() {
		j.generation, j.late = generation, false
	}
	named := j.State == jobpb.State_STATE_DELAYED && j.first.DueMs != 0 && j.DueMs == j.History[0].DueMs
	switch {
	case shift == 0 || timedOut || named || j.State == jobpb.State_STATE_DEAD:
		if j.ended() {
			return
		}
	case j.ended():
		j.RetainedUntilMs = (j.RetainedUntilMs + shift + 999) / 1000 * 1000
	default:
		j.DueMs += shift
		if j.State == jobpb.State_STATE_READY {
			m.makeReady(j)
		}
	}
	j.Revision++
}

// backUp keeps the present state, as a machine has it.
func (s *simulation) backUp(leader *replica) {
	s.applyLog(leader, 1000)
	data, applied := archive(leader.rig)
	s.backup = &modelBackup{s.model.copy(), data, applied}
}

// replaceState lets the last backup replace the state, as a leader does: the archive comes in parts,
// and the queue goes on meanwhile. If the clock, the version or the upload changes, it is refused.
func (s *simulation) replaceState(leader *replica) {
	if s.backup == nil {
		return
	}
	s.applyLog(leader, 1000)
	rec, err := receive(leader.rig, s.backup.data)
	require.NoError(s.t, err)
	st, err := leader.m.Stage(rec, s.backup.applied)
	require.NoError(s.t, err)
	o := Restoration{NowMS: max(s.model.clock+s.pick(-resetDay, -1000, -1, 0, 0, 5), 1), FromNow: s.rng.IntN(2) == 0}
	_, err = st.Restore(leader.m, o)
	require.NoError(s.t, err)
	staged := s.backup.state.copy()
	staged.version = s.model.version
	staged.restore(o.NowMS, o.FromNow, (max(s.model.replaced, staged.replaced)+1)<<20)

	ops := replacement(s.t, st, 1+s.rng.Uint64N(2), 1<<30)
	whole := ops[0].GetPutStateChunk()
	s.model.staged = &modelStaged{modelUpload{whole.Upload, whole.Data}, staged}
	parts := 1 + s.rng.IntN(3)
	for i := range parts {
		from, to := i*len(whole.Data)/parts, (i+1)*len(whole.Data)/parts
		s.one(opChunk(whole.Upload, from, whole.Data[from:to]))
		if s.rng.IntN(3) == 0 {
			s.grow()
		}
	}
	s.one(ops[1])
}

// one appends an entry with one operation to the log.
func (s *simulation) one(op *jobpb.Op) {
	s.entry(s.now, s.model.reset.epoch, slices.Values([]*jobpb.Op{op}))
}
