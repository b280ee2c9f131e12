package api

import (
	"math"
	"net/url"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	defaultForecastStep  = 3600 // seconds
	defaultForecastSteps = 24
	defaultDueTopics     = 10
)

// topicForecast handles GET /v1/topics/{topic}/forecast.
func (s *server) topicForecast(x *call) (r wire.Forecast, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	return s.forecastOf(x, topic)
}

// forecast handles GET /v1/forecast.
func (s *server) forecast(x *call) (wire.Forecast, error) { return s.forecastOf(x, "") }

// forecastOf responds with the forecast of a topic, of all if topic is empty.
func (s *server) forecastOf(x *call, topic string) (r wire.Forecast, err error) {
	now := time.Now()
	q, err := x.forecastSteps(now, "steps", defaultForecastSteps, job.MaxForecastSteps)
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	f, err := s.reads.Forecast(ctx, &jobpb.ForecastQuery{Topic: topic, FromMs: q.start, StepMs: q.step, Steps: q.n, NowMs: now.UnixMilli()}, q.stale)
	if err == nil {
		err = x.claim(answerOverhead + maxCountBytes*int64(q.n))
	}
	if err != nil {
		return r, err
	}
	return wire.Forecast{Topic: topic, Start: wire.Time(q.start), Step: wire.SecondsOf(q.step), Jobs: f.Jobs, Before: f.Before, After: f.After, Overdue: f.Overdue}, nil
}

// maxCountBytes is how many bytes a number of jobs takes in a response, about.
const maxCountBytes = 8

// forecastTopics handles GET /v1/forecast/topics.
func (s *server) forecastTopics(x *call) (r wire.DueTopics, err error) {
	q, err := x.forecastSteps(time.Now(), "max", defaultDueTopics, job.MaxDueTopics)
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	due, err := s.reads.DueTopics(ctx, &jobpb.DueTopicsQuery{FromMs: q.start, UntilMs: q.start + q.step, Max: q.n}, q.stale)
	if err == nil {
		err = x.claim(answerOverhead * int64(1+len(due.Topics)))
	}
	if err != nil {
		return r, err
	}
	topics := each(due.Topics, func(t *jobpb.DueTopic) wire.DueTopic { return wire.DueTopic{Topic: t.Topic, Jobs: t.Jobs} })
	return wire.DueTopics{Start: wire.Time(q.start), Step: wire.SecondsOf(q.step), Jobs: due.Jobs, Topics: topics}, nil
}

// forecastSteps is what the query of a forecast names. start and step are in milliseconds.
type forecastSteps struct {
	start, step int64
	n           uint32 // of what the caller counts
	stale       bool
}

// forecastSteps reads the query. The parameter count is n, 1 to most.
func (x *call) forecastSteps(now time.Time, count string, standard, most int64) (q forecastSteps, err error) {
	query := x.r.URL.Query()
	if q.start, q.step, err = firstStep(query, now); err != nil {
		return q, err
	}
	n := wire.Opt[int64]{V: standard}
	if err := wire.NumberIn(query, count, &n); err != nil {
		return q, err
	}
	if q.n, err = wire.Within(count, n.V, most); err != nil {
		return q, err
	}
	q.stale, err = x.stale()
	return q, err
}

// forecastStepNames are the steps that have names.
var forecastStepNames = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// firstStep reads start and step, and returns them in milliseconds. A start that is given is
// rounded down to a minute. Else the first step is the present one, where steps are counted
// from 1970: hours and days begin as in UTC.
func firstStep(query url.Values, now time.Time) (start, step int64, err error) {
	length := wire.Opt[float64]{V: defaultForecastStep}
	if named, ok := forecastStepNames[query.Get("step")]; ok {
		length.V = named.Seconds()
	} else if err := wire.SecondsIn(query, "step", &length); err != nil {
		return 0, 0, job.Invalid("step", "is %.40q; it takes minute, hour, day or a number of seconds", query.Get("step"))
	}
	const unit = int64(job.ForecastUnit / time.Millisecond)
	most := job.MaxForecastSpan.Seconds()
	if length.V > most || math.Mod(length.V, job.ForecastUnit.Seconds()) != 0 || length.V <= 0 {
		return 0, 0, job.Invalid("step", "is %g s; it must be a multiple of 60 s, and at most %g s", length.V, most)
	}
	step = int64(length.V) * 1000
	if !query.Has("start") {
		ms := now.UnixMilli()
		return ms - ms%step, step, nil
	}
	ms, err := wire.TimestampIn(query, "start").Millis("start", now)
	return ms - ms%unit, step, err
}
