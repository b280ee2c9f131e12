package fsm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// settingsVersion is the first byte of a record of settings.
const settingsVersion = 1

// setTopic replaces the settings of a topic. They are kept apart from the topic,
// which comes and goes with its jobs. Setting them to what they are changes
// nothing, so that a repeated request is one change.
func (x *tx) setTopic(op *jobpb.SetTopic, r *jobpb.Result) error {
	if err := x.limits().CheckTopic("topic", op.Topic); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	if err := x.limits().CheckSettings(op.Settings); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	old := x.m.settings[op.Topic]
	if op.IfRevision != nil && *op.IfRevision != old.GetRevision() {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the settings of topic %.40q have revision %d, not %d; 0 stands for none", op.Topic, old.GetRevision(), *op.IfRevision)
	}
	made := op.Settings
	if made != nil {
		made.Revision = 0
	}
	if made.SizeVT() == 0 {
		if old != nil {
			must(x.batch.Delete(x.nameKey(spaceSettings, op.Topic), nil))
			x.useSettings(op.Topic, nil)
		}
		return nil
	}
	if old == nil && len(x.m.settings) >= x.limits().MaxTopics {
		return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "%d topics have settings already, which is the limit", len(x.m.settings))
	}
	if made.Push != nil && old.GetPush() == nil && x.m.targets >= x.limits().MaxPushTargets {
		return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "%d topics have a target for push already, which is the limit", x.m.targets)
	}
	return x.changeSettings(strings.Clone(op.Topic), old, made, r)
}

// changeSettings puts made, which says something, in the place of old.
func (x *tx) changeSettings(name string, old, made *jobpb.TopicSettings, r *jobpb.Result) error {
	made.Revision = old.GetRevision()
	same, err := sameSettings(old, made)
	if err != nil {
		return err
	}
	if same {
		r.Details = &jobpb.Details{Settings: old}
		return nil
	}
	made.Revision++
	record, err := encodeSettings(made)
	if err != nil {
		return err
	}
	must(x.batch.Set(x.nameKey(spaceSettings, name), record, nil))
	// made is of the entry, which is not kept.
	kept, err := decodeSettings(record)
	x.useSettings(name, kept)
	r.Details = &jobpb.Details{Settings: kept}
	return err
}

// useDefaults gives a new job what its add leaves to the topic.
func (o *origin) useDefaults(op *jobpb.Add, s *jobpb.TopicSettings) {
	if op.TopicTtr && s.TtrMs != nil {
		o.ttrMS = *s.TtrMs
	}
	if op.TopicAttempts && s.MaxAttempts != nil {
		o.maxAttempts = *s.MaxAttempts
	}
}

// settingsOf is the settings of a topic that t, which may be nil, is named.
func (x *tx) settingsOf(name string, t *topic) *jobpb.TopicSettings {
	switch {
	case t != nil:
		return t.settings
	case len(x.m.settings) == 0:
		return nil
	}
	return x.m.settings[name]
}

// pending is the number of jobs that wait to be handed out; none without a topic.
func (t *topic) pending() uint64 {
	if t == nil {
		return 0
	}
	return t.counts[jobpb.State_STATE_DELAYED] + t.counts[jobpb.State_STATE_READY]
}

func (x *tx) refuseFull(topic string, s *jobpb.TopicSettings, pending uint64, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_TOPIC_FULL, "topic %.40q has %d delayed and ready jobs; its limit, max_pending, is %d", topic, pending, *s.MaxPending)
}

// useSettings puts settings, nil for none, in force.
func (x *tx) useSettings(name string, s *jobpb.TopicSettings) {
	x.settled = true
	if x.m.settings[name].GetPush() != nil {
		x.m.targets--
	}
	if s.GetPush() != nil {
		x.m.targets++
	}
	if s == nil {
		delete(x.m.settings, name)
	} else {
		x.m.settings[name] = s
	}
	if t := x.m.topics[name]; t != nil {
		t.settings = s
		x.limit(t)
	}
}

// sameSettings compares what their records would be.
func sameSettings(a, b *jobpb.TopicSettings) (bool, error) {
	x, err := encodeSettings(a)
	if err != nil {
		return false, err
	}
	y, err := encodeSettings(b)
	return string(x) == string(y), err
}

func encodeSettings(s *jobpb.TopicSettings) ([]byte, error) {
	b, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	return append([]byte{settingsVersion}, b...), nil
}

func decodeSettings(b []byte) (*jobpb.TopicSettings, error) {
	if err := checkVersion("settings record", b, settingsVersion); err != nil {
		return nil, err
	}
	s := new(jobpb.TopicSettings)
	if err := s.UnmarshalVT(b[1:]); err != nil {
		return nil, fmt.Errorf("settings record does not decode: %w", err)
	}
	if s.Revision == 0 {
		return nil, errors.New("settings record has revision 0")
	}
	return s, nil
}

// readSettings reads the settings of a topic; nil: none.
func readSettings(r pebble.Reader, name string) (s *jobpb.TopicSettings, err error) {
	err = readKey(r, appendNameKey(nil, spaceSettings, name), func(value []byte) error {
		s, err = decodeSettings(value)
		return err
	})
	return s, err
}

// readAllSettings reads the settings of all topics.
func readAllSettings(r pebble.Reader) (map[string]*jobpb.TopicSettings, error) {
	all := make(map[string]*jobpb.TopicSettings)
	err := scan(r, []byte{spaceSettings}, []byte{spaceSettings + 1}, func(key, value []byte) (err error) {
		name := string(key[1:])
		if all[name], err = decodeSettings(value); err != nil {
			return fmt.Errorf("settings of topic %q: %w", name, err)
		}
		return nil
	})
	return all, err
}
