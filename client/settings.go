package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Settings are the settings of a topic. A nil field is not set.
type Settings struct {
	// TTR, MaxAttempts and Backoff are the defaults for adds, instead of the server's. A
	// TTR of 0 is not set.
	TTR         Duration `json:"ttr,omitzero"`
	MaxAttempts *uint32  `json:"max_attempts,omitzero"`
	Backoff     *Backoff `json:"backoff,omitzero"`
	// MaxPending limits the number of delayed and ready jobs together. Beyond it an add
	// fails with CodeTopicFull.
	MaxPending *uint64 `json:"max_pending,omitzero"`
	// MaxReserved limits the number of reserved jobs in the cluster; at least 1.
	MaxReserved *uint64 `json:"max_reserved,omitzero"`
	// Rate limits the deliveries in jobs per second, 0.001 to 1,000,000 with up to three
	// decimals: in any t seconds at most Burst + Rate * t. Burst is 1 to 1,000,000; nil means
	// the jobs of one second.
	Rate  *float64 `json:"rate,omitzero"`
	Burst *uint64  `json:"burst,omitzero"`
	// Expire is how long after its due time a job may still be delivered; 0 is not set. After
	// that Expiry applies: "drop" (the default) or "dead".
	Expire Duration `json:"expire,omitzero"`
	Expiry string   `json:"expiry,omitzero"`
	// Spread is the window, up to 7 days, over which jobs that are due at the same time are
	// spread: each becomes due up to this much later than requested.
	Spread Duration `json:"spread,omitzero"`
	// Retain is how long finished and deleted jobs are kept, up to 365 days.
	Retain Duration `json:"retain,omitzero"`
	// RetainMax limits the number of these jobs, 1 to 1,000,000; 0 is not set.
	RetainMax uint64 `json:"retain_max,omitzero"`
	// LateFinish applies to a finish after the lease has expired. With "accept" (the
	// default) it succeeds if the job was not delivered, updated or postponed since. With
	// "refuse" it fails with CodeStaleToken.
	LateFinish string `json:"late_finish,omitzero"`
	// RequireToken makes calls that end or extend a reservation without its token fail with
	// CodeTokenRequired.
	RequireToken bool `json:"require_token,omitzero"`
	// IndexHeaders are up to 4 headers by which jobs can be listed over all topics (Jobs
	// without a Topic). Nil and empty mean none.
	IndexHeaders []string `json:"index_headers,omitempty"`
	// Push is where the leader posts the jobs to (docs/push.md).
	Push *Push `json:"push,omitzero"`
	// Description describes the topic for people, in one line of up to 200 bytes.
	Description string `json:"description,omitzero"`
}

// wire returns the settings without what only the server sets.
func (s Settings) wire() Settings {
	if s.Push != nil {
		push := *s.Push
		push.HasSecret = false
		s.Push = &push
	}
	return s
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

// Settings returns the settings of a topic.
func (c Topics) Settings(ctx context.Context, topic string) (TopicSettings, error) {
	return read[TopicSettings](ctx, c.client, settingsPath(topic, AnyRevision))
}

// SetSettings replaces all settings of a topic, if they have the revision (0: there are
// none; AnyRevision). Empty settings delete them. docs/limits.md says which settings also
// affect existing jobs.
func (c Topics) SetSettings(ctx context.Context, topic string, s Settings, revision uint64) (TopicSettings, error) {
	// The call is idempotent if it has no condition.
	repeat := revision == AnyRevision
	return ask[TopicSettings](ctx, c.client, request{method: http.MethodPut, path: settingsPath(topic, revision), in: s.wire(), repeat: repeat})
}

// ChangeSettings sets the fields of s that are not nil, removes the settings that unset
// names, such as "max_pending", and keeps the rest.
func (c Topics) ChangeSettings(ctx context.Context, topic string, s Settings, unset ...string) (TopicSettings, error) {
	in, err := merged(s, unset)
	if err != nil {
		return TopicSettings{}, err
	}
	return ask[TopicSettings](ctx, c.client, request{method: http.MethodPatch, path: settingsPath(topic, AnyRevision), in: in, repeat: true})
}

// DeleteSettings removes all settings of a topic, if they have the revision (or AnyRevision).
func (c Topics) DeleteSettings(ctx context.Context, topic string, revision uint64) (TopicSettings, error) {
	repeat := revision == AnyRevision
	return ask[TopicSettings](ctx, c.client, request{method: http.MethodDelete, path: settingsPath(topic, revision), repeat: repeat})
}

// AllSettings lists the topics with settings by name.
func (c Topics) AllSettings(ctx context.Context, p PageOptions) iter.Seq2[TopicSettings, error] {
	return pages(p.After, func(after string) ([]TopicSettings, string, error) {
		q := reading("/v1/topic-settings" + pageQuery(after, p.Size))
		q.most = maxJobReply
		out, err := ask[settingsPage](ctx, c.client, q)
		return out.Topics, out.Next, err
	})
}

// merged returns the fields of s, with null for the settings to remove.
func merged(s Settings, unset []string) (map[string]jsontext.Value, error) {
	text, err := json.Marshal(s.wire())
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

// Push is an HTTP target to which the jobs of a topic are posted.
type Push struct {
	// URL is up to 2000 bytes, with http or https. The server returns *** for each value in
	// its query, and Topics.ChangeSettings accepts that form too.
	// May be empty only with JobURLs: then each job needs one.
	URL string `json:"url,omitzero"`
	// Secret signs the posts, 16 to 256 bytes. The server never returns it. If it is empty
	// and URL is on the same server, Topics.ChangeSettings keeps the present secret, unless JobURLs
	// is new.
	Secret      string   `json:"secret,omitzero"`
	Timeout     Duration `json:"timeout,omitzero"`     // of a post, 100 ms to 5 min; 0 means 10 s
	Concurrency uint32   `json:"concurrency,omitzero"` // concurrent posts, 1 to 100; 0 means 10
	// JobURLs permits jobs a URL of their own (NewJob.PushURL).
	JobURLs bool `json:"job_urls,omitzero"`
	// HasSecret is set by the server if there is a secret. Calls do not send it.
	HasSecret bool `json:"has_secret,omitzero"`
}
