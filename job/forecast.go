package job

import (
	"time"

	"tarry/job/jobpb"
)

// Limits of forecasts. They bound what a read costs, which is a few milliseconds.
const (
	// ForecastUnit is the unit of steps, and of their first instant.
	ForecastUnit      = time.Minute
	MaxForecastSteps  = 1500
	MaxForecastSpan   = 400 * 24 * time.Hour // from the first step to the end of the last
	MaxDueTopics      = 1000
	MaxDueTopicsRange = 31 * 24 * time.Hour
)

// CheckForecast checks a query for a forecast.
func CheckForecast(q *jobpb.ForecastQuery) error {
	unit, span := ForecastUnit.Milliseconds(), MaxForecastSpan.Milliseconds()
	switch {
	case q.FromMs < 0 || q.FromMs > MaxInstantMS || q.FromMs%unit != 0:
		return Invalid("start", "must be the start of a minute between 1970 and 9999")
	case q.StepMs < unit || q.StepMs > span || q.StepMs%unit != 0:
		return Invalid("step", "must be whole minutes, up to %d days", span/dayMS)
	case q.Steps < 1 || q.Steps > MaxForecastSteps:
		return Invalid("steps", "must be between 1 and %d", MaxForecastSteps)
	case int64(q.Steps)*q.StepMs > span:
		return Invalid("steps", "must not cover more than %d days together", span/dayMS)
	}
	return nil
}

// CheckDueTopics checks a query for the topics of which most jobs are due.
func CheckDueTopics(q *jobpb.DueTopicsQuery) error {
	unit, most := ForecastUnit.Milliseconds(), MaxDueTopicsRange.Milliseconds()
	switch length := q.UntilMs - q.FromMs; {
	case q.FromMs < 0 || q.FromMs > MaxInstantMS || q.FromMs%unit != 0:
		return Invalid("start", "must be the start of a minute between 1970 and 9999")
	case length < unit || length > most || length%unit != 0:
		return Invalid("step", "must be whole minutes, up to %d days", most/dayMS)
	case q.Max < 1 || q.Max > MaxDueTopics:
		return Invalid("max", "must be between 1 and %d", MaxDueTopics)
	}
	return nil
}

const dayMS = int64(24 * time.Hour / time.Millisecond)
