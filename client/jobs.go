package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// History has the events of a job. The first one is the add.
type History struct {
	ID     string  `json:"id"`
	Seq    uint64  `json:"seq"`
	Topic  string  `json:"topic"`
	State  State   `json:"state"`
	Events []Event `json:"events"`
	// Dropped is the number of events after the add that were dropped, because only the
	// latest are kept.
	Dropped uint64 `json:"dropped"`
}

// Event is an event of a job.
type Event struct {
	At       time.Time `json:"at"`
	Event    string    `json:"event"` // what, such as "reserved"
	State    State     `json:"state"` // of the job after the event
	Attempt  uint32    `json:"attempt,omitzero"`
	DueAt    time.Time `json:"due_at,omitzero"`
	Consumer string    `json:"consumer,omitzero"`
	Reason   string    `json:"reason,omitzero"`
}

// Add adds a job. If its ID is set, it may be called again with the same job after an
// unknown outcome: while the first job exists there will be only one.
func (c *Client) Add(ctx context.Context, a NewJob) (Added, error) {
	return ask[Added](ctx, c, request{method: http.MethodPost, path: "/v1/jobs", in: a.wire(), repeat: true})
}

// FinishThen finishes a reserved job and adds jobs, atomically. One of them may have the id
// of the finished job. It is not retried after an unknown outcome, because not_found would
// not tell whether the jobs were added.
func (c *Client) FinishThen(ctx context.Context, ref Ref, jobs []NewJob) ([]Added, error) {
	if ref.ID == "" {
		return nil, errNoID
	}
	in := struct {
		Token string    `json:"token,omitzero"`
		Then  []wireAdd `json:"then"`
	}{ref.Token, wires(jobs)}
	out, err := ask[results[Added]](ctx, c, request{method: http.MethodPost, path: jobPath(ref.ID, "finish"), in: in})
	if err != nil {
		return nil, err
	}
	return out.all(len(jobs))
}

func wires(jobs []NewJob) []wireAdd {
	made := make([]wireAdd, len(jobs))
	for i, a := range jobs {
		made[i] = a.wire()
	}
	return made
}

// wireAdd is a NewJob in its JSON form.
type wireAdd struct {
	Topic       string            `json:"topic"`
	ID          string            `json:"id"`
	Delay       *Duration         `json:"delay,omitzero"`
	DueAt       *time.Time        `json:"due_at,omitzero"`
	ExpiresAt   *time.Time        `json:"expires_at,omitzero"`
	TTR         *Duration         `json:"ttr,omitzero"`
	Priority    *uint32           `json:"priority,omitzero"`
	MaxAttempts *uint32           `json:"max_attempts,omitzero"`
	IfExists    IfExists          `json:"if_exists,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	Condition
	Body
}

func (a NewJob) wire() wireAdd {
	w := wireAdd{Topic: a.Topic, ID: a.ID, Priority: a.Priority, MaxAttempts: a.MaxAttempts, IfExists: a.IfExists, Backoff: a.Backoff, Headers: a.Headers, PushURL: a.PushURL, Condition: a.Condition, Body: a.Body}
	if w.ID == "" {
		w.ID = rand.Text()
	}
	w.Delay, w.TTR = seconds(a.Delay), seconds(a.TTR)
	if !a.DueAt.IsZero() {
		w.DueAt = &a.DueAt
	}
	if !a.ExpiresAt.IsZero() {
		w.ExpiresAt = &a.ExpiresAt
	}
	return w
}

// seconds returns nil for 0, which is omitted from a request.
func seconds(d time.Duration) *Duration {
	if d == 0 {
		return nil
	}
	return &Duration{d}
}

// errNoID is the error of a call on one job without its id. Only in batches a token is
// enough.
var errNoID = errorf(CodeInvalidArgument, "id is missing")

// Finish finishes a reserved job. It also succeeds if an earlier attempt of the same call,
// whose response was lost, has done so; and if the lease of the token has expired but no
// other consumer has had the job since, unless the topic has LateFinish "refuse". Without a
// token it finishes the job whoever has reserved it, so give the token.
func (c *Client) Finish(ctx context.Context, ref Ref) error {
	if ref.ID == "" {
		return errNoID
	}
	return c.end(ctx, http.MethodPost, jobPath(ref.ID, "finish"), tokenOnly(ref), &Changed{})
}

// Delete deletes a job in any state. With a token it fails once that reservation has ended.
func (c *Client) Delete(ctx context.Context, ref Ref) error {
	return c.DeleteIf(ctx, ref, Condition{})
}

// DeleteIf deletes a job if it meets the condition. With the IfState "delayed" and "ready" it
// cancels a job that has not started.
func (c *Client) DeleteIf(ctx context.Context, ref Ref, cond Condition) error {
	if ref.ID == "" {
		return errNoID
	}
	query := url.Values{}
	if ref.Token != "" {
		query.Set("token", ref.Token)
	}
	if cond.IfRevision != 0 {
		query.Set("if_revision", strconv.FormatUint(uint64(cond.IfRevision), 10))
	}
	var states []string
	for _, s := range cond.IfState {
		states = append(states, string(s))
	}
	if states != nil {
		query.Set("if_state", strings.Join(states, ","))
	}
	path := jobPath(ref.ID, "")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.end(ctx, http.MethodDelete, path, nil, &Changed{})
}

// Update changes a delayed, ready or dead job in place. After an unknown outcome it may be
// called again, unless it has a condition.
func (c *Client) Update(ctx context.Context, id string, u Update) (Changed, error) {
	if id == "" {
		return Changed{}, errNoID
	}
	return ask[Changed](ctx, c, request{method: http.MethodPatch, path: jobPath(id, ""), in: u.wire("")})
}

// wire is the update as the server reads it, with an id in a batch.
func (u *Update) wire(id string) any {
	in := struct {
		ID          string     `json:"id,omitzero"`
		Delay       *Duration  `json:"delay,omitzero"`
		DueAt       *time.Time `json:"due_at,omitzero"`
		ExpiresAt   any        `json:"expires_at,omitzero"`
		TTR         *Duration  `json:"ttr,omitzero"`
		Priority    *uint32    `json:"priority,omitzero"`
		MaxAttempts *uint32    `json:"max_attempts,omitzero"`
		Backoff     any        `json:"backoff,omitzero"`
		Headers     any        `json:"headers,omitzero"`
		PushURL     *string    `json:"push_url,omitzero"`
		*Body
		Condition
	}{ID: id, TTR: seconds(u.TTR), Priority: u.Priority, MaxAttempts: u.MaxAttempts, PushURL: u.PushURL, Body: u.Body, Condition: u.Condition}
	if u.Delay != nil {
		in.Delay = &Duration{*u.Delay}
	}
	if !u.DueAt.IsZero() {
		in.DueAt = &u.DueAt
	}
	switch {
	case u.NeverExpire:
		in.ExpiresAt = "never"
	case !u.ExpiresAt.IsZero():
		in.ExpiresAt = u.ExpiresAt
	}
	if u.Headers != nil {
		in.Headers = u.Headers
	}
	switch {
	case u.Backoff == nil:
	case u.Backoff.isZero():
		in.Backoff = []Duration{} // none from now on
	default:
		in.Backoff = u.Backoff
	}
	return in
}

// Release releases a reserved job.
func (c *Client) Release(ctx context.Context, ref Ref, r ReleaseOptions) (Changed, error) {
	delay := seconds(r.Delay)
	if r.AtOnce {
		delay = &Duration{}
	}
	return c.change(ctx, ref, "release", false, struct {
		Token    string    `json:"token,omitzero"`
		Delay    *Duration `json:"delay,omitzero"`
		Priority *uint32   `json:"priority,omitzero"`
		Reason   string    `json:"reason,omitzero"`
	}{ref.Token, delay, r.Priority, r.Reason})
}

// Touch makes a reservation expire ttr from now; 0 means the job's own TTR.
func (c *Client) Touch(ctx context.Context, ref Ref, ttr time.Duration) (Changed, error) {
	return c.change(ctx, ref, "touch", true, struct {
		Token string    `json:"token,omitzero"`
		TTR   *Duration `json:"ttr,omitzero"`
	}{ref.Token, seconds(ttr)})
}

// Bury makes a reserved job dead. It stays until it is kicked or deleted.
func (c *Client) Bury(ctx context.Context, ref Ref, b BuryOptions) (Changed, error) {
	return c.change(ctx, ref, "bury", false, struct {
		Token    string  `json:"token,omitzero"`
		Priority *uint32 `json:"priority,omitzero"`
		Reason   string  `json:"reason,omitzero"`
	}{ref.Token, b.Priority, b.Reason})
}

// Kick makes a dead or delayed job ready.
func (c *Client) Kick(ctx context.Context, id string) (Changed, error) {
	return c.change(ctx, Ref{ID: id}, "kick", false, nil)
}

func (c *Client) change(ctx context.Context, ref Ref, verb string, repeat bool, in any) (Changed, error) {
	if ref.ID == "" {
		return Changed{}, errNoID
	}
	return ask[Changed](ctx, c, request{method: http.MethodPost, path: jobPath(ref.ID, verb), in: in, repeat: repeat})
}

func tokenOnly(ref Ref) any {
	if ref.Token == "" {
		return nil
	}
	return struct {
		Token string `json:"token"`
	}{ref.Token}
}

// Get returns a job. It fails with CodeNotFound if there is none.
func (c *Client) Get(ctx context.Context, id string) (Job, error) {
	if id == "" {
		return Job{}, errNoID
	}
	return ask[Job](ctx, c, request{method: http.MethodGet, path: jobPath(id, ""), repeat: true, most: maxJobReply})
}

// History returns the events of a job, if its topic keeps histories.
func (c *Client) History(ctx context.Context, id string) (History, error) {
	if id == "" {
		return History{}, errNoID
	}
	return read[History](ctx, c, jobPath(id, "history"))
}

func jobPath(id, verb string) string {
	path := "/v1/jobs/" + segment(id)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// segment escapes a name as one segment of a path. It also escapes "." and "..", which a
// proxy could resolve.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// Explanation says why a job is not delivered yet, or was delivered late.
type Explanation struct {
	ID    string    `json:"id"`
	Seq   uint64    `json:"seq"`
	Topic string    `json:"topic"`
	State State     `json:"state"`
	DueAt time.Time `json:"due_at"`
	// Late is how long the job has waited since it was due, or until it was delivered.
	Late   Duration `json:"late"`
	Text   string   `json:"text"` // all of it in one line
	Causes []Cause  `json:"causes"`
}

// Cause is one reason why a job is or was not delivered.
type Cause struct {
	Cause string    `json:"cause"`           // such as "rate"; see docs/http-reference.md
	Late  Duration  `json:"late,omitzero"`   // its part of the lateness, if that is known
	Until time.Time `json:"until,omitzero"`  // when it ends at the latest, if that is known
	At    time.Time `json:"at,omitzero"`     // when it happened, if it is an event
	Count uint64    `json:"count,omitempty"` // of jobs
	// Consumer has reserved the job; Reason, 100 characters at most, is why it is dead; Then is what
	// becomes of a job that expires: "dead" or "dropped".
	Consumer string `json:"consumer,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Then     string `json:"then,omitempty"`
	Text     string `json:"text"`
}

// Explain returns why a job is not delivered yet, or was delivered late.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	if id == "" {
		return Explanation{}, errNoID
	}
	return read[Explanation](ctx, c, jobPath(id, "explain"))
}

// KickTo makes a dead or delayed job ready in another topic.
func (c *Client) KickTo(ctx context.Context, id, topic string) (Changed, error) {
	return c.change(ctx, Ref{ID: id}, "kick", false, struct {
		ToTopic string `json:"to_topic"`
	}{topic})
}

// Move moves a job to another topic. Its state stays.
func (c *Client) Move(ctx context.Context, ref Ref, to string) (Changed, error) {
	return c.change(ctx, ref, "move", true, struct {
		Token string `json:"token,omitzero"`
		To    string `json:"to"`
	}{ref.Token, to})
}
