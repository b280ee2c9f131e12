package api

import (
	"context"
	"reflect"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// settingsRequest is a decoded wire.SettingsType.
type settingsRequest struct{ decoded reflect.Value }

// applySettings applies the request to to.
func (s *server) applySettings(q settingsRequest, to *jobpb.TopicSettings) error {
	for i, setting := range job.Settings {
		var err error
		switch m := q.decoded.Field(i).Addr().Interface().(type) {
		case *wire.PatchField[float64]:
			err = m.Apply(setting, to, numberOf(setting))
		case *wire.PatchField[int64]:
			err = m.Apply(setting, to, func(n int64) (int64, error) { return n, nil })
		case *wire.PatchField[string]:
			if setting.Type == job.SettingChoice {
				err = m.Apply(setting, to, setting.Choice)
			} else if m.Given {
				setting.SetText(to, m.V)
			}
		case *wire.PatchField[wire.List[string, wire.IndexLimit]]:
			if m.Given {
				setting.SetNames(to, m.V.V)
			}
		case *wire.PatchField[bool]:
			if m.Given {
				setting.SetSwitch(to, m.V)
			}
		case *wire.PatchField[wire.BackoffRequest]:
			if m.Given {
				to.Backoff, err = m.V.Proto()
			}
		case *wire.PatchField[wire.PushRequest]:
			err = s.applyPush(*m, to)
		}
		if err != nil {
			return err
		}
	}
	return job.CheckSettings(to)
}

// numberOf returns the function that converts seconds, or jobs per second, to the number
// of a setting.
func numberOf(s *job.Setting) func(float64) (int64, error) {
	if s.Type == job.SettingDuration {
		return s.Millis
	}
	return func(rate float64) (int64, error) {
		n, err := wire.Thousandths(rate)
		return int64(n), err
	}
}

// settings adds the fields of a topic's settings.
func (w *writer) settings(of *jobpb.TopicSettings) {
	w.number("revision", of.GetRevision())
	w.beginNamedObject("settings")
	for _, s := range job.Settings {
		if s.Shown(of) {
			w.setting(s, of)
		}
	}
	w.b = append(w.b, '}')
}

func (w *writer) setting(s *job.Setting, of *jobpb.TopicSettings) {
	switch s.Type {
	case job.SettingDuration, job.SettingRate:
		w.seconds(s.Name, s.Number(of))
	case job.SettingCount:
		w.number(s.Name, uint64(s.Number(of)))
	case job.SettingChoice:
		w.text(s.Name, s.Choices[s.Number(of)])
	case job.SettingSwitch:
		w.boolean(s.Name, true)
	case job.SettingText:
		w.text(s.Name, s.Text(of))
	case job.SettingNames:
		w.texts(s.Name, s.Names(of))
	case job.SettingBackoff:
		w.backoff(of.Backoff)
	case job.SettingPush:
		w.push(of.Push)
	}
}

func (x *call) answerSettings(topic string, s *jobpb.TopicSettings) error {
	x.json.success()
	x.json.text("topic", topic)
	x.json.settings(s)
	x.json.endObject()
	return nil
}

func (s *server) getSettings(x *call) error {
	t, err := find(x, x.pathTopic, s.reads.Topic)
	if err != nil {
		return err
	}
	return x.answerSettings(t.Name, t.Settings)
}

// putSettings handles PUT: it unsets settings that the request does not name.
func (s *server) putSettings(x *call) error {
	q := settingsRequest{reflect.New(wire.SettingsType).Elem()}
	topic, revision, err := x.readSettings(&q)
	if err != nil {
		return err
	}
	made := &jobpb.TopicSettings{}
	if err := s.applySettings(q, made); err != nil {
		return err
	}
	return s.setTopic(x, &jobpb.SetTopic{Topic: topic, Settings: made, IfRevision: revision})
}

// patchTries is how often a PATCH is retried after concurrent changes of the settings.
const patchTries = 16

// patchSettings handles PATCH: it keeps settings that the request does not name.
func (s *server) patchSettings(x *call) error {
	q := settingsRequest{reflect.New(wire.SettingsType).Elem()}
	topic, revision, err := x.readSettings(&q)
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	for range patchTries {
		op, err := s.patched(ctx, topic, q)
		if err != nil {
			return err
		}
		if revision != nil {
			op.IfRevision = revision
		}
		err = s.setTopic(x, op)
		if revision != nil || job.CodeOf(err) != job.CodeConditionFailed {
			return err
		}
	}
	return job.NotApplied("the settings of topic %.40q were changed by others %d times meanwhile", topic, patchTries)
}

// patched returns the operation that changes the current settings.
func (s *server) patched(ctx context.Context, topic string, q settingsRequest) (*jobpb.SetTopic, error) {
	t, err := s.reads.Topic(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	op := &jobpb.SetTopic{Topic: topic, Settings: t.Settings, IfRevision: new(t.Settings.GetRevision())}
	if op.Settings == nil {
		op.Settings = &jobpb.TopicSettings{}
	}
	return op, s.applySettings(q, op.Settings)
}

func (s *server) deleteSettings(x *call) error {
	topic, revision, err := x.readSettings(nil)
	if err != nil {
		return err
	}
	return s.setTopic(x, &jobpb.SetTopic{Topic: topic, IfRevision: revision})
}

// readSettings reads the parts that calls on settings share. A nil q is a call without a
// request body; a nil revision is any.
func (x *call) readSettings(q *settingsRequest) (topic string, revision *uint64, err error) {
	if topic, err = x.pathTopic(); err != nil {
		return "", nil, err
	}
	var given wire.Opt[int64]
	if err := wire.NumberIn(x.r.URL.Query(), "if_revision", &given); err != nil {
		return "", nil, err
	}
	if given.V < 0 {
		return "", nil, job.Invalid("if_revision", "is %d; it must be 0, for no settings, or more", given.V)
	}
	if given.Set {
		revision = new(uint64(given.V))
	}
	if q != nil {
		err = x.decode(maxSmallRequest, q.decoded.Addr().Interface())
	}
	return topic, revision, err
}

// setTopic applies the operation and responds with the settings.
func (s *server) setTopic(x *call, op *jobpb.SetTopic) error {
	if err := s.sealPush(op); err != nil {
		return err
	}
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: op}})
	if err != nil {
		return err
	}
	return x.answerSettings(op.Topic, r.GetDetails().GetSettings())
}

// topicSettings handles GET /v1/topic-settings.
func (s *server) topicSettings(x *call) error {
	page, full, err := findPage(x, s.reads.ConfiguredTopics)
	if err != nil {
		return err
	}
	next := ""
	if full {
		next = page[len(page)-1].Name
	}
	answerPage(x, "topics", page, func(t *jobpb.Topic) {
		x.json.text("topic", t.Name)
		x.json.settings(t.Settings)
	}, next)
	return nil
}
