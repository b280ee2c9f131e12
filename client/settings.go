package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Settings are the settings of a topic. A nil field is not set.
type Settings struct {
	// TTR, MaxAttempts and Backoff are for adds that do not say, in the place of
	// the server's defaults. TTR 0 is not set.
	TTR         Duration `json:"ttr,omitzero"`
	MaxAttempts *uint32  `json:"max_attempts,omitzero"`
	Backoff     *Backoff `json:"backoff,omitzero"`
	// MaxPending is how many jobs may be delayed or ready together; past it an
	// add fails with CodeTopicFull.
	MaxPending *uint64 `json:"max_pending,omitzero"`
	// MaxReserved is how many jobs may be reserved at once, cluster-wide; at
	// least 1.
	MaxReserved *uint64 `json:"max_reserved,omitzero"`
	// Rate is how many jobs a second are handed out, 0.001 to 1,000,000 with up to
	// three decimals: in any t seconds no more than Burst + Rate * t. Burst is 1 to
	// 1,000,000; nil is one second's.
	Rate  *float64 `json:"rate,omitzero"`
	Burst *uint64  `json:"burst,omitzero"`
	// Expire is how long after its due time a job may still be handed out; then Expiry,
	// "drop" (as "" means) or "dead", is what becomes of it. 0 is not set.
	Expire Duration `json:"expire,omitzero"`
	Expiry string   `json:"expiry,omitzero"`
	// Spread is the window, up to 7 days, over which jobs that are due at one time are
	// spread: each is due up to so much later than asked.
	Spread Duration `json:"spread,omitzero"`
	// Retain is how long finished and deleted jobs stay known, up to 365 days.
	Retain Duration `json:"retain,omitzero"`
	// RetainMax is how many of them stay known at most, 1 to 1,000,000; 0 is not set.
	RetainMax uint64 `json:"retain_max,omitzero"`
	// LateFinish is what becomes of a finish whose reservation has expired:
	// "accept" (as "" means) lets it count when the job was neither handed out,
	// updated nor postponed since, "refuse" fails it with CodeStaleToken.
	LateFinish string `json:"late_finish,omitzero"`
	// RequireToken refuses what ends or prolongs a reservation without its token,
	// with CodeTokenRequired.
	RequireToken bool `json:"require_token,omitzero"`
	// IndexHeaders are up to 4 headers by which the jobs are found over all topics
	// (List with no Topic). Nil and empty are none.
	IndexHeaders []string `json:"index_headers,omitempty"`
	// Push is where the leader posts the jobs to (docs/push.md).
	Push *Push `json:"push,omitzero"`
	// Description says for people what the topic is for, in a line of up to 200 bytes.
	Description string `json:"description,omitzero"`
}

// TopicSettings are the settings of a topic with their revision, which grows with
// each change. 0: there are none.
type TopicSettings struct {
	Topic    string   `json:"topic"`
	Revision uint64   `json:"revision"`
	Settings Settings `json:"settings"`
}

// AnyRevision lets a change of settings apply whatever their revision is.
const AnyRevision = ^uint64(0)

// Settings gives the settings of a topic.
func (c *Client) Settings(ctx context.Context, topic string) (TopicSettings, error) {
	return read[TopicSettings](ctx, c, settingsPath(topic, AnyRevision))
}

// SetSettings replaces the settings of a topic as a whole, if they have the
// revision (0: there are none; AnyRevision). Settings that say nothing are
// deleted. It changes the jobs to come and how those that are there are treated,
// as docs/limits.md says.
func (c *Client) SetSettings(ctx context.Context, topic string, s Settings, revision uint64) (TopicSettings, error) {
	// Once more is the same: without a condition nothing changes any more.
	repeat := revision == AnyRevision
	return ask[TopicSettings](ctx, c, request{method: http.MethodPut, path: settingsPath(topic, revision), in: s, repeat: repeat})
}

// ChangeSettings sets the fields of s that are not nil, removes the settings that unset
// names, such as "max_pending", and keeps the rest.
func (c *Client) ChangeSettings(ctx context.Context, topic string, s Settings, unset ...string) (TopicSettings, error) {
	in, err := merged(s, unset)
	if err != nil {
		return TopicSettings{}, err
	}
	return ask[TopicSettings](ctx, c, request{method: http.MethodPatch, path: settingsPath(topic, AnyRevision), in: in, repeat: true})
}

// AllSettings lists the topics that have settings by name, starting after the
// name given, up to max of them (at most 1000; 0 means 1000). next is where the
// next page starts, "" when there is none.
func (c *Client) AllSettings(ctx context.Context, after string, max int) (all []TopicSettings, next string, err error) {
	var out struct {
		Topics []TopicSettings `json:"topics"`
		Next   string          `json:"next"`
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: "/v1/topic-settings" + pageQuery(after, max), repeat: true}, &out)
	return out.Topics, out.Next, err
}

// merged are the members of s, and null for what is to go.
func merged(s Settings, unset []string) (map[string]jsontext.Value, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
	}
	in := make(map[string]jsontext.Value)
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
	}
	for _, name := range unset {
		in[name] = jsontext.Value("null")
	}
	return in, nil
}

func settingsPath(topic string, revision uint64) string {
	path := "/v1/topics/" + segment(topic) + "/settings"
	if revision != AnyRevision {
		path += "?if_revision=" + strconv.FormatUint(revision, 10)
	}
	return path
}

// pageQuery is the query of a call that lists page by page.
func pageQuery(after string, max int) string {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if max > 0 {
		query.Set("max", strconv.Itoa(max))
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}
