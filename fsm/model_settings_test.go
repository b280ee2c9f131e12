package fsm

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

func (m *model) setTopic(op *jobpb.SetTopic, r *jobpb.Result) {
	old := m.settings[op.Topic]
	made := &jobpb.TopicSettings{}
	if op.Settings != nil {
		made = proto.Clone(op.Settings).(*jobpb.TopicSettings)
	}
	made.Revision = 0
	empty := proto.Equal(made, &jobpb.TopicSettings{})
	made.Revision = old.GetRevision()
	switch {
	case op.Topic == "" || badSettings(made):
		r.Code = jobpb.Code_INVALID
	case op.IfRevision != nil && *op.IfRevision != old.GetRevision():
		r.Code = jobpb.Code_CONDITION_FAILED
	case empty:
		m.reindex(op.Topic, old, nil)
		delete(m.settings, op.Topic)
		m.applySettings(op.Topic)
	case old == nil && len(m.settings) >= m.maxTopics:
		r.Code = jobpb.Code_TOO_MANY_TOPICS
	case made.Push != nil && old.GetPush() == nil && m.targets() >= m.maxTargets:
		r.Code = jobpb.Code_TOO_MANY_TOPICS
	case proto.Equal(old, made):
		r.Details = &jobpb.Details{Settings: old}
	default:
		made.Revision++
		m.reindex(op.Topic, old, made)
		m.settings[op.Topic] = made
		m.applySettings(op.Topic)
		r.Details = &jobpb.Details{Settings: made}
	}
}

// applySettings applies changed settings to the jobs of a topic.
func (m *model) applySettings(topic string) {
	if t := m.topics[topic]; t != nil {
		m.relimit(t)
	}
}

func (m *model) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) {
	t := m.topics[op.Topic]
	switch {
	case op.PauseMs < 0 || op.PauseMs > 4_294_967_295_000 || op.UntilMs < 0 || op.UntilMs > m.clock+4_294_967_295_000,
		op.PauseMs != 0 && op.UntilMs != 0, op.Endless && (op.PauseMs != 0 || op.UntilMs != 0):
		r.Code = jobpb.Code_INVALID
		return
	case t == nil && !op.Create:
		r.Code = jobpb.Code_NOT_FOUND
		return
	case t == nil && op.Topic == "":
		r.Code = jobpb.Code_INVALID
		return
	case t == nil && m.topicsAtLimit():
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	case t == nil:
		t = m.newTopic(op.Topic)
		t.emptySince = m.clock
	}
	t.Pauses++
	t.PausedUntilMs, t.PauseMs = 0, op.PauseMs
	if op.UntilMs > m.clock {
		t.PauseMs = op.UntilMs - m.clock
	}
	if t.PauseMs > 0 {
		t.PausedUntilMs = max(m.after(op.PauseMs), op.UntilMs)
	}
	if op.Endless {
		t.PausedUntilMs, t.PauseMs = math.MaxInt64, math.MaxInt64
	}
	r.DueMs = t.PausedUntilMs
}

// badSettings reports whether settings that the random test makes are invalid.
func badSettings(s *jobpb.TopicSettings) bool {
	return s.TtrMs != nil && *s.TtrMs < 1 || s.SpreadMs < 0 || s.SpreadMs > 7*24*3600*1000 || s.ExpireMs < 0 || s.Expiry > 1 ||
		badOptions(&jobpb.JobOptions{Backoff: s.Backoff}) || badLimits(s) || s.RetainMs < 0 || s.RetainMs > 31_536_000_000 || s.RetainMax > 2 || badPush(s.Push) || badIndex(s.IndexHeaders) || s.LateFinish > 1
}

func (m *model) useDefaults(a, job *jobpb.Add) {
	s := m.settings[a.Topic]
	if a.TopicTtr && s.GetTtrMs() != 0 {
		job.TtrMs = s.GetTtrMs()
	}
	if a.TopicAttempts && s != nil && s.MaxAttempts != nil {
		job.MaxAttempts = *s.MaxAttempts
	}
}

// share returns how much later than requested a job is due: the fraction of its seq times
// the golden ratio, of the window.
func (m *model) share(j *modelJob) int64 {
	fraction := new(big.Int).SetUint64(j.Seq * 11400714819323198485)
	product := fraction.Mul(fraction, big.NewInt(m.settings[j.Topic].GetSpreadMs()))
	return product.Rsh(product, 64).Int64()
}

// pending returns how many jobs of a topic wait.
func (m *model) pending(topic string) uint64 {
	return uint64(len(m.sorted(func(j *modelJob) bool {
		return j.Topic == topic && (j.State == jobpb.State_STATE_DELAYED || j.State == jobpb.State_STATE_READY)
	}, func(a, b *modelJob) int { return 0 })))
}

// full reports whether a topic is full once that many of its waiting jobs are gone.
func (m *model) full(topic string, going uint64) bool {
	s := m.settings[topic]
	return s != nil && s.MaxPending != nil && m.pending(topic)-going >= *s.MaxPending
}

// waitingIn returns 1 if the job waits in the topic, else 0.
func (j *modelJob) waitingIn(topic string) uint64 {
	if j.Topic == topic && (j.State == jobpb.State_STATE_DELAYED || j.State == jobpb.State_STATE_READY) {
		return 1
	}
	return 0
}

// settingsOp sets a few settings, or none.
func (s *simulation) settingsOp() *jobpb.Op {
	op := &jobpb.SetTopic{Topic: s.topic(), Settings: &jobpb.TopicSettings{Revision: s.rng.Uint64N(3)}}
	for range s.rng.IntN(3) {
		switch s.rng.IntN(11) {
		case 9:
			op.Settings.LateFinish = jobpb.LateFinish(s.pick(0, 1, 1))
		case 10:
			op.Settings.RequireToken = true
		case 8:
			op.Settings.Push = s.pushTarget()
		case 0:
			op.Settings.MaxPending = new(uint64(s.pick(0, 3, 10, 30, 30, 100)))
		case 1:
			op.Settings.TtrMs = new(s.pick(-1, 0, 1, 300, 300, 5000))
		case 2:
			op.Settings.MaxAttempts = new(uint32(s.pick(0, 1, 2)))
		case 6, 7:
			op.Settings.ExpireMs = s.pick(-1, 1, 40, 300, 300, 5000)
			op.Settings.Expiry = jobpb.Expiry(s.pick(0, 0, 1, 1, 1))
		case 4:
			op.Settings.SpreadMs = s.pick(-1, 1, 300, 300, 5000, 7*24*3600*1000+1)
		case 5:
			op.Settings.RetainMs = s.pick(-1, 0, 1, 700, 3000, 3000, 10_000, 31_536_000_000, 31_536_000_001)
			op.Settings.RetainMax = uint64(s.pick(0, 0, 1, 1, 2, 3))
		case 3:
			op.Settings.Backoff = &jobpb.Backoff{DelaysMs: []int64{40, 0}[:s.rng.IntN(3)]}
		}
	}
	if s.rng.IntN(4) == 0 {
		op.Settings.ExpireMs, op.Settings.Expiry = s.pick(300, 5000, 5000, 50_000), jobpb.Expiry_EXPIRY_DEAD
	}
	s.limitSettings(op.Settings)
	if s.rng.IntN(2) == 0 {
		op.Settings.IndexHeaders = s.indexHeaders()
	}
	switch s.rng.IntN(10) {
	case 0:
		op.Topic = ""
	case 1:
		op.Settings = nil
	case 2:
		op.IfRevision = new(s.rng.Uint64N(3))
	}
	return opSettings(op)
}

func opSettings(op *jobpb.SetTopic) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: op}}
}

// compareSettings compares the topics with settings with the model's.
func (s *simulation) compareSettings(v *view.View) {
	names := slices.Sorted(maps.Keys(s.model.settings))
	got, err := v.ConfiguredTopics("", 1000)
	require.NoError(s.t, err)
	require.Len(s.t, got, len(names))
	for i, name := range names {
		require.Equal(s.t, name, got[i].Name)
		require.Truef(s.t, proto.Equal(s.model.settings[name], got[i].Settings), "want %v\ngot  %v", s.model.settings[name], got[i].Settings)
	}
	after, err := v.ConfiguredTopics("c", 1)
	require.NoError(s.t, err)
	for _, t := range after {
		require.Greater(s.t, t.Name, "c")
	}
}

// checkSettings compares the settings in memory with the store's.
func checkSettings(m *Machine) error {
	stored, err := record.ReadAllSettings(m.store.db)
	if err != nil {
		return err
	}
	if len(stored) != len(m.settings) {
		return fmt.Errorf("%d topics have settings, the store has %d", len(m.settings), len(stored))
	}
	for name, s := range stored {
		if !proto.Equal(s, m.settings[name]) {
			return fmt.Errorf("topic %q has the settings %v, the store has %v", name, m.settings[name], s)
		}
	}
	targets := 0
	for _, s := range stored {
		if s.Push != nil {
			targets++
		}
	}
	if targets != m.targets {
		return fmt.Errorf("%d topics have a target, the store has %d", m.targets, targets)
	}
	for name, t := range m.topics {
		if t.settings != m.settings[name] {
			return fmt.Errorf("topic %q does not go by its settings", name)
		}
	}
	return nil
}
