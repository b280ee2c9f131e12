package api

import (
	"context"
	"errors"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// member is a member of a request that changes settings: missing leaves a setting
// as it is, null takes it away.
type member[T any] struct {
	given bool
	opt[T]
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *member[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	m.given = true
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	m.set = true
	return json.UnmarshalDecode(dec, &m.v)
}

// settingsRequest has a member for each setting. A setting has three places here:
// its member, apply, and the writer below.
type settingsRequest struct {
	TTR         member[float64] `json:"ttr"`
	MaxAttempts member[int64]   `json:"max_attempts"`
	Backoff     member[backoff] `json:"backoff"`
	MaxPending  member[int64]   `json:"max_pending"`
	Expire      member[float64] `json:"expire"`
	Expiry      member[string]  `json:"expiry"`
	Spread      member[float64] `json:"spread"`
	Retain      member[float64] `json:"retain"`
	limitsRequest
	reservationsRequest
	pushMember
}

// apply changes s as the request says.
func (q *settingsRequest) apply(s *jobpb.TopicSettings) (err error) {
	if err := q.applyDefaults(s); err != nil {
		return err
	}
	if q.MaxPending.given {
		if s.MaxPending, err = count("max_pending", q.MaxPending); err != nil {
			return err
		}
	}
	if err := q.applyExpiry(s); err != nil {
		return err
	}
	if q.Spread.given { // 0 is none, as null is
		if s.SpreadMs, err = job.Millis("spread", q.Spread.v, job.MaxSpread); err != nil {
			return err
		}
	}
	if q.Retain.given {
		if s.RetainMs, err = job.Millis("retain", q.Retain.v, job.MaxRetention); err != nil {
			return err
		}
	}
	if err := q.applyLimits(s); err != nil {
		return err
	}
	if err := q.applyReservations(s); err != nil {
		return err
	}
	return job.CheckSettings(s)
}

// applyDefaults changes what adds may leave to the topic.
func (q *settingsRequest) applyDefaults(s *jobpb.TopicSettings) (err error) {
	if q.TTR.given {
		s.TtrMs = nil
	}
	if q.TTR.set {
		ttr, err := job.TTRMillis("ttr", q.TTR.v)
		if err != nil {
			return err
		}
		s.TtrMs = &ttr
	}
	if q.MaxAttempts.given {
		s.MaxAttempts = nil
	}
	if q.MaxAttempts.set {
		n, err := uint32Of("max_attempts", q.MaxAttempts.v)
		if err != nil {
			return err
		}
		s.MaxAttempts = &n
	}
	if q.Backoff.given {
		s.Backoff, err = q.Backoff.v.proto()
	}
	return err
}

// expiries are what may become of a job that nobody took in time.
var expiries = map[string]jobpb.Expiry{"drop": jobpb.Expiry_EXPIRY_DROP, "dead": jobpb.Expiry_EXPIRY_DEAD}

// applyExpiry changes when jobs expire, 0 for never, and what becomes of them.
func (q *settingsRequest) applyExpiry(s *jobpb.TopicSettings) (err error) {
	if q.Expire.given {
		if s.ExpireMs, err = job.Millis("expire", q.Expire.v, job.MaxDelay); err != nil {
			return err
		}
	}
	if q.Expiry.given {
		what, ok := expiries[q.Expiry.or("drop")]
		if !ok {
			return job.Invalid("expiry", "is %.40q; it takes drop and dead", q.Expiry.v)
		}
		s.Expiry = what
	}
	if s.ExpireMs == 0 && q.Expiry.set {
		return job.Invalid("expiry", "is given without expire")
	}
	if s.ExpireMs == 0 {
		s.Expiry = jobpb.Expiry_EXPIRY_DROP
	}
	return nil
}

// count reads a number of jobs; nil: none is set.
func count(field string, m member[int64]) (*uint64, error) {
	if !m.set {
		return nil, nil
	}
	if m.v < 0 {
		return nil, job.Invalid(field, "is %d; it must be between 0 and %d", m.v, int64(math.MaxInt64))
	}
	return new(uint64(m.v)), nil
}

// settings adds the members of a topic's settings.
func (w *writer) settings(s *jobpb.TopicSettings) {
	w.number("revision", s.GetRevision())
	w.openObject("settings")
	if s != nil {
		w.setting(s)
	}
	w.b = append(w.b, '}')
}

// setting adds each setting that is set.
func (w *writer) setting(s *jobpb.TopicSettings) {
	if s.TtrMs != nil {
		w.seconds("ttr", *s.TtrMs)
	}
	if s.MaxAttempts != nil {
		w.number("max_attempts", uint64(*s.MaxAttempts))
	}
	w.backoff(s.Backoff)
	if s.MaxPending != nil {
		w.number("max_pending", *s.MaxPending)
	}
	w.limits(s)
	if s.ExpireMs != 0 {
		w.seconds("expire", s.ExpireMs)
		what := "drop"
		if s.Expiry == jobpb.Expiry_EXPIRY_DEAD {
			what = "dead"
		}
		w.text("expiry", what)
	}
	if s.SpreadMs != 0 {
		w.seconds("spread", s.SpreadMs)
	}
	if s.RetainMs != 0 {
		w.seconds("retain", s.RetainMs)
	}
	w.reservations(s)
	w.push(s.Push)
}

func (x *exchange) answerSettings(topic string, s *jobpb.TopicSettings) error {
	x.json.success()
	x.json.text("topic", topic)
	x.json.settings(s)
	x.json.shut()
	return nil
}

func (s *server) getSettings(x *exchange) error {
	t, err := find(x, x.pathTopic, s.Queue.Topic)
	if err != nil {
		return err
	}
	return x.answerSettings(t.Name, t.Settings)
}

// putSettings handles PUT: what is not named is not set.
func (s *server) putSettings(x *exchange) error {
	var q settingsRequest
	topic, revision, err := x.readSettings(&q)
	if err != nil {
		return err
	}
	made := &jobpb.TopicSettings{}
	if err := errors.Join(q.apply(made), s.applyPush(q.Push, made)); err != nil {
		return err
	}
	return s.setTopic(x, &jobpb.SetTopic{Topic: topic, Settings: made, IfRevision: revision})
}

// patchTries is how often a PATCH is tried again because others change the
// settings meanwhile.
const patchTries = 16

// patchSettings handles PATCH: what is not named stays.
func (s *server) patchSettings(x *exchange) error {
	var q settingsRequest
	topic, revision, err := x.readSettings(&q)
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	for range patchTries {
		op, err := s.patched(ctx, topic, &q)
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

// patched makes the operation that changes the settings from what they are now.
func (s *server) patched(ctx context.Context, topic string, q *settingsRequest) (*jobpb.SetTopic, error) {
	t, err := s.Queue.Topic(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	op := &jobpb.SetTopic{Topic: topic, Settings: t.Settings, IfRevision: new(t.Settings.GetRevision())}
	if op.Settings == nil {
		op.Settings = &jobpb.TopicSettings{}
	}
	return op, errors.Join(q.apply(op.Settings), s.applyPush(q.Push, op.Settings))
}

func (s *server) deleteSettings(x *exchange) error {
	topic, revision, err := x.readSettings(nil)
	if err != nil {
		return err
	}
	return s.setTopic(x, &jobpb.SetTopic{Topic: topic, IfRevision: revision})
}

// readSettings reads what the calls that change settings share. A nil q is a call
// without a request body; a nil revision is any.
func (x *exchange) readSettings(q *settingsRequest) (topic string, revision *uint64, err error) {
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
		err = x.decode(maxSmallRequest, q)
	}
	return topic, revision, err
}

// setTopic applies the operation and answers with the settings.
func (s *server) setTopic(x *exchange, op *jobpb.SetTopic) error {
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: op}})
	if err != nil {
		return err
	}
	return x.answerSettings(op.Topic, r.GetDetails().GetSettings())
}

// topicSettings handles GET /v1/topic-settings.
func (s *server) topicSettings(x *exchange) error {
	return s.pageOfTopics(x, s.Queue.ConfiguredTopics, func(t *jobpb.Topic) {
		x.json.text("topic", t.Name)
		x.json.settings(t.Settings)
	})
}
