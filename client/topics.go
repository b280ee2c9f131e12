package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Topic has the counts of a topic: jobs by state now, and totals.
type Topic struct {
	Name        string    `json:"topic"`
	Delayed     uint64    `json:"delayed"`
	Ready       uint64    `json:"ready"`
	Reserved    uint64    `json:"reserved"`
	Dead        uint64    `json:"dead"`
	Retained    uint64    `json:"retained"` // finished and deleted, and kept by the topic's retention
	OldestDueAt time.Time `json:"oldest_due_at,omitzero"`
	// Paused is set while no job is delivered: until PausedUntil, or if that is zero until
	// the topic is resumed.
	Paused      bool      `json:"paused"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// ThrottledUntil is when the topic's rate allows another job, if none was
	// allowed when the topic last changed; it may have passed.
	ThrottledUntil time.Time `json:"throttled_until,omitzero"`
	Added          uint64    `json:"added"`
	Finished       uint64    `json:"finished"`
	Deleted        uint64    `json:"deleted"`
	Timeouts       uint64    `json:"timeouts"`
	Died           uint64    `json:"died"`
	Expired        uint64    `json:"expired,omitzero"` // dropped or dead because they were not reserved in time
	// SettingsRevision is not 0 if the topic has settings.
	SettingsRevision uint64 `json:"settings_revision,omitzero"`
}

// Stats has the sums over all topics.
type Stats struct {
	Topics   uint64 `json:"topics"` // topics with jobs now or within the last hour
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"` // finished and deleted, and kept by their topics' retention
}

// List lists topics by name.
func (c Topics) List(ctx context.Context, p PageOptions) iter.Seq2[Topic, error] {
	return pages(p.After, func(after string) ([]Topic, string, error) {
		out, err := read[topicPage](ctx, c.client, "/v1/topics"+pageQuery(after, p.Size))
		return out.Topics, out.Next, err
	})
}

// Stats returns the number of topics, and of all jobs by state.
func (c Topics) Stats(ctx context.Context) (Stats, error) {
	out, err := read[statsReply](ctx, c.client, "/v1/stats")
	if err == nil {
		out.Stats.Topics = *out.Topics
	}
	return out.Stats, err
}

// Get returns the counts of one topic; all zero: it has no jobs.
func (c Topics) Get(ctx context.Context, name string) (Topic, error) {
	return read[Topic](ctx, c.client, "/v1/topics/"+segment(name))
}

// Pause is the state of a topic after a pause or resume. While it is paused its ready jobs
// are not delivered: until Until, or if that is zero until it is resumed.
type Pause struct {
	Topic  string    `json:"topic"`
	Paused bool      `json:"paused"`
	Until  time.Time `json:"paused_until,omitzero"`
}

// Pause pauses a topic for d; 0 means until it is resumed. It replaces a pause that has not
// ended. The topic need not have jobs. A call after an unknown outcome begins a new pause.
func (c Topics) Pause(ctx context.Context, topic string, d time.Duration) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "pause", struct {
		For *Duration `json:"for,omitzero"`
	}{seconds(d)})
}

// PauseUntil is Pause with the time at which it ends.
func (c Topics) PauseUntil(ctx context.Context, topic string, until time.Time) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "pause", struct {
		Until time.Time `json:"until"`
	}{until})
}

// Resume ends a topic's pause, if there is one. It fails with CodeNotFound if the topic does
// not exist.
func (c Topics) Resume(ctx context.Context, topic string) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "resume", nil)
}

func (c *Client) pauseOf(ctx context.Context, topic, verb string, in any) (Pause, error) {
	return ask[Pause](ctx, c, request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/" + verb, in: in, repeat: true})
}

// Rates counts what happened to the jobs of a topic, or of all topics, in each step of the
// last 15 minutes, oldest first. The last number of each list is of the step under way. The
// lists are empty if the node that replied has recorded nothing.
type Rates struct {
	Topic     string    `json:"topic,omitzero"`
	Start     time.Time `json:"start"` // of the first step
	Step      Duration  `json:"step"`
	Added     []uint64  `json:"added"`
	Delivered []uint64  `json:"delivered"`
	Finished  []uint64  `json:"finished"`
	Deleted   []uint64  `json:"deleted"`
	Timeouts  []uint64  `json:"timeouts"`
	Died      []uint64  `json:"died"`
	Expired   []uint64  `json:"expired"`
}

// Rates returns the rates of one topic; empty: of all topics together.
func (c Topics) Rates(ctx context.Context, topic string) (Rates, error) {
	if topic == "" {
		return read[Rates](ctx, c.client, "/v1/rates")
	}
	return read[Rates](ctx, c.client, "/v1/topics/"+segment(topic)+"/rates")
}

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
// to limit of them (at most 1000; 0 means 10). The step is up to 31 days.
func (c Topics) ForecastTopics(ctx context.Context, s ForecastSteps, limit int) (DueTopics, error) {
	query := s.query()
	if limit != 0 {
		query.Set("max", strconv.Itoa(limit))
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
