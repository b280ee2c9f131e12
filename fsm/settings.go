package fsm

import (
	"strings"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// setTopic replaces the settings of a topic. They have a record of their own, because the
// topic's is deleted when it has no jobs. Equal settings change nothing, so a request is
// safe to repeat.
func (x *tx) setTopic(op *jobpb.SetTopic, r *jobpb.Result) error {
	old := x.m.settings[op.Topic]
	if op.IfRevision != nil && *op.IfRevision != old.GetRevision() {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"the settings of topic %.40q have revision %d, not %d; 0 stands for none", op.Topic, old.GetRevision(), *op.IfRevision)
	}
	made := op.Settings
	if made != nil {
		made.Revision = 0
	}
	if made.SizeVT() == 0 {
		if old != nil {
			x.setConfig(x.nameKey(record.SpaceSettings, op.Topic), nil)
			x.useSettings(op.Topic, nil)
		}
		return nil
	}
	if old == nil && len(x.m.settings) >= x.limits().MaxTopics {
		return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "%d topics have settings already, which is the limit", len(x.m.settings))
	}
	if why := x.m.namespaceOf(op.Topic).overSettings(); old == nil && why != "" {
		return x.refuse(r, jobpb.Code_OVER_QUOTA, "%s", why)
	}
	if made.Push != nil && old.GetPush() == nil && x.m.targets >= x.limits().MaxPushTargets {
		return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "%d topics have a target for push already, which is the limit", x.m.targets)
	}
	return x.changeSettings(strings.Clone(op.Topic), old, made, r)
}

// changeSettings replaces old by made, which is not empty.
func (x *tx) changeSettings(name string, old, made *jobpb.TopicSettings, r *jobpb.Result) error {
	made.Revision = old.GetRevision()
	same, err := record.SameSettings(old, made)
	if err != nil {
		return err
	}
	if same {
		r.Details = &jobpb.Details{Settings: old}
		return nil
	}
	made.Revision++
	encoded, err := record.EncodeSettings(made)
	if err != nil {
		return err
	}
	x.setConfig(x.nameKey(record.SpaceSettings, name), encoded)
	// made aliases the entry, which is not kept.
	kept, err := record.DecodeSettings(encoded)
	x.useSettings(name, kept)
	r.Details = &jobpb.Details{Settings: kept}
	return err
}

// useDefaults sets what an add leaves to the topic's settings.
func useDefaults(spec *record.Spec, op *jobpb.Add, s *jobpb.TopicSettings) {
	if op.TopicTtr && s.TtrMs != nil {
		spec.TtrMS = *s.TtrMs
	}
	if op.TopicAttempts && s.MaxAttempts != nil {
		spec.MaxAttempts = *s.MaxAttempts
	}
}

// settingsOf returns the settings of the topic of that name; t is the topic, or nil.
func (x *tx) settingsOf(name string, t *topic) *jobpb.TopicSettings {
	switch {
	case t != nil:
		return t.settings
	case len(x.m.settings) == 0:
		return nil
	}
	return x.m.settings[name]
}

// pending returns the number of delayed and ready jobs. t may be nil.
func (t *topic) pending() uint64 {
	if t == nil {
		return 0
	}
	return t.Counts[record.ListDelayed] + t.Counts[record.ListReady]
}

// isFull reports whether a topic with that many pending jobs may have no more.
func isFull(s *jobpb.TopicSettings, pending uint64) bool {
	return s != nil && s.MaxPending != nil && pending >= *s.MaxPending
}

func (x *tx) refuseFull(topic string, s *jobpb.TopicSettings, pending uint64, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_TOPIC_FULL,
		"topic %.40q has %d delayed and ready jobs; its limit, max_pending, is %d", topic, pending, *s.MaxPending)
}

// useSettings puts settings into force; nil: none.
func (x *tx) useSettings(name string, s *jobpb.TopicSettings) {
	x.settingsChanged = true
	if x.m.settings[name].GetPush() != nil {
		x.m.targets--
	}
	if s.GetPush() != nil {
		x.m.targets++
	}
	t := x.m.topics[name]
	x.indexSettings(t, x.m.settings[name], s)
	x.m.countSettings(name, x.m.settings[name], s)
	if s == nil {
		delete(x.m.settings, name)
	} else {
		x.m.settings[name] = s
	}
	if t != nil {
		t.settings = s
		x.updateLimits(t)
	}
}

// pauseTopic pauses a topic, so that Reserve skips it until an Advance ends the pause, or
// ends its pause.
func (x *tx) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) error {
	if err := x.limits().CheckPauseEnd(op.UntilMs, x.clock()); err != nil {
		return x.refuseInvalid(err, r)
	}
	t := x.m.topics[op.Topic]
	if t == nil && !op.Create {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "topic %.40q does not exist; a topic begins with its first job", op.Topic)
	}
	if t == nil {
		if x.topicsAtLimit() {
			return x.refuseTopic(op.Topic, r)
		}
		if !x.fits(x.m.namespaceOf(op.Topic), growth{topics: 1}, r) {
			return nil
		}
		t = x.newTopic(op.Topic)
		x.emptied(t)
	}
	t.Pauses++
	t.resume()
	switch pause := max(op.PauseMs, op.UntilMs-x.clock()); {
	case op.Endless:
		t.PausedUntil, t.PauseMS = job.NeverMS, job.NeverMS
	case pause > 0:
		t.PausedUntil, t.PauseMS = max(x.after(op.PauseMs), op.UntilMs), pause
	}
	r.DueMs = t.PausedUntil
	x.touch(t)
	return nil
}

// resume ends the pause, if any.
func (t *topic) resume() { t.PausedUntil, t.PauseMS = 0, 0 }
