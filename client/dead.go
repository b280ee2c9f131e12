package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// DeadReasons are the dead jobs of a topic, or of all topics, grouped by reason: by their
// reason, or else their last error, cut to 200 bytes.
type DeadReasons struct {
	Topic   string       `json:"topic,omitzero"`
	Jobs    uint64       `json:"jobs"`             // all dead jobs
	Reasons uint64       `json:"reasons,omitzero"` // how many reasons they have; only of all topics
	Groups  []DeadReason `json:"groups"`           // the largest first
	More    bool         `json:"more,omitzero"`    // there are more groups
	// Incomplete is set if a group that is missing may have more jobs than the last one
	// listed, but less than twice as many.
	Incomplete bool `json:"incomplete,omitzero"`
}

// DeadTopics are the dead jobs with one reason, grouped by topic.
type DeadTopics struct {
	Reason     string      `json:"reason"`
	Jobs       uint64      `json:"jobs"`          // all of them
	Topics     uint64      `json:"topics"`        // how many topics they are in
	Groups     []DeadTopic `json:"groups"`        // the largest first
	More       bool        `json:"more,omitzero"` // there are more topics
	Incomplete bool        `json:"incomplete,omitzero"`
}

// DeadReason is the dead jobs with one reason, of one topic or of all.
type DeadReason struct {
	Reason string `json:"reason"` // empty: none was given
	Jobs   uint64 `json:"jobs"`
	Topics uint64 `json:"topics,omitzero"` // how many topics they are in; only of all topics
	// Example is the id of one of the jobs: of a topic the one that died first, at
	// FirstDiedAt.
	Example     string    `json:"example"`
	FirstDiedAt time.Time `json:"first_died_at,omitzero"`
}

// DeadTopic is the dead jobs of a topic with one reason.
type DeadTopic struct {
	Topic       string    `json:"topic"`
	Jobs        uint64    `json:"jobs"`
	Example     string    `json:"example"` // the id of the job that died first
	FirstDiedAt time.Time `json:"first_died_at"`
}

// Dead returns the reasons that most dead jobs of a topic have, up to max of them (at most
// 1000; 0 means 100). An empty topic means all topics together.
func (c Topics) Dead(ctx context.Context, topic string, max int) (DeadReasons, error) {
	path := "/v1/dead"
	if topic != "" {
		path = "/v1/topics/" + segment(topic) + "/dead"
	}
	query := url.Values{}
	if max != 0 {
		query.Set("max", strconv.Itoa(max))
	}
	return read[DeadReasons](ctx, c.client, withQuery(path, query))
}

// DeadTopics returns the topics that most dead jobs with a reason are in, up to max of them
// (at most 1000; 0 means 100). The reason is that of a group of Dead; it may be empty.
func (c Topics) DeadTopics(ctx context.Context, reason string, max int) (DeadTopics, error) {
	query := url.Values{"exact_reason": {reason}}
	if max != 0 {
		query.Set("max", strconv.Itoa(max))
	}
	return read[DeadTopics](ctx, c.client, withQuery("/v1/dead/topics", query))
}

// KickDead makes the dead jobs of all topics ready that have a reason, which is that of a
// group of Dead. Of k it takes all but the filter. For those of one topic use Kick with
// a filter that has ExactReason.
func (c Topics) KickDead(ctx context.Context, reason string, k KickOptions) (Swept, error) {
	return c.client.sweepDead(ctx, "kick", struct {
		wireDead
		Rate    float64 `json:"rate,omitzero"`
		ToTopic string  `json:"to_topic,omitzero"`
	}{wireDead{reason, k.Max, k.Max == 0}, k.Rate, k.ToTopic})
}

// PurgeDead deletes up to max dead jobs of all topics that have a reason; 0 means all.
func (c Topics) PurgeDead(ctx context.Context, reason string, max int) (Swept, error) {
	return c.client.sweepDead(ctx, "purge", wireDead{reason, max, max == 0})
}

// wireDead selects dead jobs in JSON.
type wireDead struct {
	Reason string `json:"exact_reason"`
	Max    int    `json:"max,omitzero"`
	All    bool   `json:"all,omitzero"`
}

func (c *Client) sweepDead(ctx context.Context, verb string, in any) (Swept, error) {
	var out sweepReply
	_, err := c.call(ctx, request{method: http.MethodPost, path: "/v1/dead/" + verb, in: in, work: sweepTime}, &out)
	return Swept{out.count(), out.More}, err
}
