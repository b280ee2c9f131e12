package api

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// patchField is a field of a request that changes settings: a missing field keeps the
// setting, null removes it.
type patchField[T any] struct {
	given bool
	opt[T]
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *patchField[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	m.given = true
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	m.set = true
	return json.UnmarshalDecode(dec, &m.v)
}

// settingsType is the request that changes settings: a struct with a field for each row
// of the table, so that the decoder treats it like any other request.
var settingsType = func() reflect.Type {
	types := map[job.SettingType]reflect.Type{
		job.SettingDuration: reflect.TypeFor[patchField[float64]](),
		job.SettingCount:    reflect.TypeFor[patchField[int64]](),
		job.SettingRate:     reflect.TypeFor[patchField[float64]](),
		job.SettingChoice:   reflect.TypeFor[patchField[string]](),
		job.SettingSwitch:   reflect.TypeFor[patchField[bool]](),
		job.SettingText:     reflect.TypeFor[patchField[string]](),
		job.SettingNames:    reflect.TypeFor[patchField[list[string, indexLimit]]](),
		job.SettingBackoff:  reflect.TypeFor[patchField[backoff]](),
		job.SettingPush:     reflect.TypeFor[patchField[pushRequest]](),
	}
	var fields []reflect.StructField
	for i, s := range job.Settings {
		tag := reflect.StructTag(fmt.Sprintf(`json:"%s"`, s.Name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Setting%d", i), Type: types[s.Type], Tag: tag})
	}
	return reflect.StructOf(fields)
}()

// settingsRequest is a decoded settingsType.
type settingsRequest struct{ decoded reflect.Value }

// applySettings applies the request to to.
func (s *server) applySettings(q settingsRequest, to *jobpb.TopicSettings) error {
	for i, setting := range job.Settings {
		var err error
		switch m := q.decoded.Field(i).Addr().Interface().(type) {
		case *patchField[float64]:
			err = m.apply(setting, to, numberOf(setting))
		case *patchField[int64]:
			err = m.apply(setting, to, func(n int64) (int64, error) { return n, nil })
		case *patchField[string]:
			if setting.Type == job.SettingChoice {
				err = m.apply(setting, to, setting.Choice)
			} else if m.given {
				setting.SetText(to, m.v)
			}
		case *patchField[list[string, indexLimit]]:
			if m.given {
				setting.SetNames(to, m.v.v)
			}
		case *patchField[bool]:
			if m.given {
				setting.SetSwitch(to, m.v)
			}
		case *patchField[backoff]:
			if m.given {
				to.Backoff, err = m.v.proto()
			}
		case *patchField[pushRequest]:
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
		n, err := thousandths(rate)
		return int64(n), err
	}
}

// apply changes one setting as its field says.
func (m *patchField[T]) apply(s *job.Setting, to *jobpb.TopicSettings, number func(T) (int64, error)) error {
	if m.given {
		s.Clear(to)
	}
	if m.set {
		n, err := number(m.v)
		if err == nil {
			err = s.SetNumber(to, n)
		}
		return err
	}
	return nil
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
	q := settingsRequest{reflect.New(settingsType).Elem()}
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
	q := settingsRequest{reflect.New(settingsType).Elem()}
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
	var given opt[int64]
	if err := numberIn(x.r.URL.Query(), "if_revision", &given); err != nil {
		return "", nil, err
	}
	if given.v < 0 {
		return "", nil, job.Invalid("if_revision", "is %d; it must be 0, for no settings, or more", given.v)
	}
	if given.set {
		revision = new(uint64(given.v))
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
	return s.pageOfTopics(x, s.reads.ConfiguredTopics, func(t *jobpb.Topic) {
		x.json.text("topic", t.Name)
		x.json.settings(t.Settings)
	})
}

// thousandths converts a rate of a topic or a kick, in jobs per second, exactly.
func thousandths(rate float64) (uint64, error) {
	// The negated form also refuses NaN.
	if !(rate >= 0.001 && rate <= job.MaxRateMilli/1000) {
		return 0, job.Invalid("rate", "is %g jobs a second; it must be between 0.001 and %d", rate, job.MaxRateMilli/1000)
	}
	milli := math.Round(rate * 1000)
	if milli/1000 != rate {
		return 0, job.Invalid("rate", "is %g jobs a second; it can have at most three decimals", rate)
	}
	return uint64(milli), nil
}
