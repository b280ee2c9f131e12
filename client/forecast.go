package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// ForecastSteps are the steps of time of a forecast. Zero fields mean the server's defaults.
type ForecastSteps struct {
	// Start is when the first step begins, rounded down to a minute; zero: with the present
	// hour or day of UTC, or in general the present step.
	Start time.Time
	Step  time.Duration // whole minutes; 0 means 1 h
	Steps int           // 1 to 1500, covering up to 400 days; 0 means 24
}

// Forecast counts the delayed jobs of a topic, or of all topics, that are due in each step.
// Before, Jobs and After together are all of them.
type Forecast struct {
	Topic   string    `json:"topic,omitzero"`
	Start   time.Time `json:"start"` // of the first step
	Step    Duration  `json:"step"`
	Jobs    []uint64  `json:"jobs"`    // one number for each step
	Before  uint64    `json:"before"`  // due before the first step
	After   uint64    `json:"after"`   // due after the last step
	Overdue uint64    `json:"overdue"` // due before the present minute
}

// Forecast returns the forecast of one topic; empty: of all topics together.
func (c Topics) Forecast(ctx context.Context, topic string, s ForecastSteps) (Forecast, error) {
	query := s.query()
	if s.Steps != 0 {
		query.Set("steps", strconv.Itoa(s.Steps))
	}
	path := "/v1/forecast"
	if topic != "" {
		path = "/v1/topics/" + segment(topic) + "/forecast"
	}
	return read[Forecast](ctx, c.client, withQuery(path, query))
}

// DueTopics are the topics of which most delayed jobs are due in one step of time.
type DueTopics struct {
	Start  time.Time  `json:"start"`
	Step   Duration   `json:"step"`
	Jobs   uint64     `json:"jobs"` // of all topics, also of those that are not listed
	Topics []DueTopic `json:"topics"`
}

// DueTopic is a topic with how many of its jobs are due.
type DueTopic struct {
	Topic string `json:"topic"`
	Jobs  uint64 `json:"jobs"`
}

// ForecastTopics returns the topics of which most jobs are due in the first of the steps, up
// to max of them (at most 1000; 0 means 10). The step is up to 31 days.
func (c Topics) ForecastTopics(ctx context.Context, s ForecastSteps, max int) (DueTopics, error) {
	query := s.query()
	if max != 0 {
		query.Set("max", strconv.Itoa(max))
	}
	return read[DueTopics](ctx, c.client, withQuery("/v1/forecast/topics", query))
}

func (s ForecastSteps) query() url.Values {
	query := url.Values{}
	if !s.Start.IsZero() {
		query.Set("start", s.Start.Format(time.RFC3339Nano))
	}
	if s.Step != 0 {
		query.Set("step", strconv.FormatFloat(s.Step.Seconds(), 'f', -1, 64))
	}
	return query
}
