package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Schedule is a recurring job.
type Schedule struct {
	// Spec is a cron expression of five fields, or six with seconds first, a name such as
	// "@daily", or "@every 90s".
	Spec string `json:"spec"`
	// Zone is the IANA name of the time zone; empty means UTC.
	Zone string `json:"zone,omitzero"`
	// Start and End bound the runs, and with @every Start is the first of them.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Jitter delays the job of each run by a random time up to this (24 h at most).
	Jitter Duration `json:"jitter,omitzero"`
	// Overlap is "allow" (the default) or "skip": a run is skipped unless the job of the
	// last one is finished, deleted or dead.
	Overlap string `json:"overlap,omitzero"`
	// Missed is which runs to start that could not be started within MissedAfter (up to
	// 24 h; 0 means 30 s): "skip" (the default) for none, "one" for the latest of them, or
	// "all" for the latest MissedMax (up to 1000; 0 means 10).
	Missed      string       `json:"missed,omitzero"`
	MissedMax   int          `json:"missed_max,omitzero"`
	MissedAfter Duration     `json:"missed_after,omitzero"`
	Job         ScheduledJob `json:"job"`
}

// ScheduledJob is the job that each run adds. In its body {{planned}} is replaced by the
// planned time in the schedule's zone, {{planned_ms}} by the same in milliseconds since 1970,
// {{name}} by the schedule's name and {{run}} by the number of the run. The body may have
// 64 KiB.
type ScheduledJob struct {
	Topic       string            `json:"topic"`
	TTR         Duration          `json:"ttr,omitzero"`      // 0: the topic's or the server's default
	Priority    *uint32           `json:"priority,omitzero"` // nil: 1024
	MaxAttempts *uint32           `json:"max_attempts,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	Body
}

// SchedulePut is the result of Schedules.Put.
type SchedulePut struct {
	Name     string `json:"schedule"`
	Revision uint64 `json:"revision"`
	Existing bool   `json:"existing"`          // the same schedule existed
	Replaced bool   `json:"replaced,omitzero"` // another schedule was replaced
}

// ScheduleInfo is a schedule and its state, without its last runs.
type ScheduleInfo struct {
	Name     string `json:"schedule"`
	Revision uint64 `json:"revision"` // changes with the schedule, not with its runs
	Schedule
	Paused    bool      `json:"paused"`
	Trouble   string    `json:"trouble,omitzero"` // why the server paused it
	NextAt    time.Time `json:"next_at,omitzero"` // zero while it is paused, and after its end
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	// Counts are the numbers of runs by outcome.
	Counts struct {
		Started uint64 `json:"started"`
		Skipped uint64 `json:"skipped"`
		Missed  uint64 `json:"missed"`
		Refused uint64 `json:"refused"`
	} `json:"counts"`
}

// PlannedRun is a time at which a schedule runs.
type PlannedRun struct {
	At    time.Time `json:"planned_at"`
	Local string    `json:"local"` // the same in the schedule's zone, RFC 3339
}

// PastRun is a run and its outcome.
type PastRun struct {
	PlannedAt time.Time `json:"planned_at"`
	At        time.Time `json:"at"`      // the time of the outcome
	Outcome   string    `json:"outcome"` // "started", "skipped", "missed" or "refused"
	Now       bool      `json:"now,omitzero"`
	Count     uint64    `json:"count,omitzero"` // for "missed": the number of runs, up to this one
	ID        string    `json:"id,omitzero"`    // of the job
	Seq       uint64    `json:"seq,omitzero"`
	Code      string    `json:"code,omitzero"` // for "refused": why no job was added
}

// runs is the response of a call that lists runs.
type runs[T any] struct {
	Runs []T `json:"runs"`
}

func schedulePath(name, verb string) string {
	path := "/v1/schedules/" + segment(name)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// Put creates or replaces a schedule. With ifRevision it fails unless the schedule
// has that revision; 0 means no condition. With the same schedule it changes nothing. A
// paused schedule stays paused.
func (c Schedules) Put(ctx context.Context, name string, s Schedule, ifRevision uint64) (SchedulePut, error) {
	in := struct {
		Schedule
		IfRevision uint64 `json:"if_revision,omitzero"`
	}{s, ifRevision}
	return ask[SchedulePut](ctx, c.client, request{method: http.MethodPut, path: schedulePath(name, ""), in: in, repeat: ifRevision == 0})
}

// PutPaused is Put for a schedule that starts no runs until Resume.
func (c Schedules) PutPaused(ctx context.Context, name string, s Schedule, ifRevision uint64) (SchedulePut, error) {
	in := struct {
		Schedule
		Paused     bool   `json:"paused"`
		IfRevision uint64 `json:"if_revision,omitzero"`
	}{s, true, ifRevision}
	return ask[SchedulePut](ctx, c.client, request{method: http.MethodPut, path: schedulePath(name, ""), in: in, repeat: ifRevision == 0})
}

// Get returns a schedule, without its last runs.
func (c Schedules) Get(ctx context.Context, name string) (ScheduleInfo, error) {
	return read[ScheduleInfo](ctx, c.client, schedulePath(name, ""))
}

// List lists schedules by name.
func (c Schedules) List(ctx context.Context, p PageOptions) iter.Seq2[ScheduleInfo, error] {
	return pages(p.After, func(after string) ([]ScheduleInfo, string, error) {
		q := reading("/v1/schedules" + pageQuery(after, p.Size))
		q.most = maxJobReply
		out, err := ask[schedulePage](ctx, c.client, q)
		return out.Schedules, out.Next, err
	})
}

// Delete deletes a schedule; the jobs of its runs stay. ifRevision is as with
// Put. It also succeeds if an earlier attempt of the same call, whose response was
// lost, has deleted it.
func (c Schedules) Delete(ctx context.Context, name string, ifRevision uint64) error {
	path := schedulePath(name, "")
	if ifRevision != 0 {
		path += "?" + url.Values{"if_revision": {strconv.FormatUint(ifRevision, 10)}}.Encode()
	}
	return c.client.end(ctx, http.MethodDelete, path, nil, &scheduleChange{})
}

// Pause stops a schedule from starting runs until Resume. Runs in between
// are not started later.
func (c Schedules) Pause(ctx context.Context, name string) error {
	return c.client.moveSchedule(ctx, name, "pause")
}

// Resume resumes a schedule that Pause, or an error, paused.
func (c Schedules) Resume(ctx context.Context, name string) error {
	return c.client.moveSchedule(ctx, name, "resume")
}

func (c *Client) moveSchedule(ctx context.Context, name, verb string) error {
	_, err := ask[scheduleChange](ctx, c, request{method: http.MethodPost, path: schedulePath(name, verb), repeat: true})
	return err
}

// Run starts an additional run now, also while the schedule is paused or its last run
// is not finished. key, 1 to 40 bytes, identifies the request: a request with the same key is
// the same run, and then Existing is set. So the call is retried after an unknown outcome.
// Without a key it is not retried, and each call starts a run.
func (c Schedules) Run(ctx context.Context, name, key string) (Added, error) {
	in := struct {
		Key string `json:"key,omitzero"`
	}{key}
	return ask[Added](ctx, c.client, request{method: http.MethodPost, path: schedulePath(name, "run"), in: in, repeat: key != ""})
}

// Runs returns the outcomes of the last runs, up to 20, the latest first.
func (c Schedules) Runs(ctx context.Context, name string) ([]PastRun, error) {
	out, err := read[runs[PastRun]](ctx, c.client, schedulePath(name, "runs"))
	return out.Runs, err
}

// Preview returns the next count runs (1 to 100; 0 means 10) of a schedule.
func (c Schedules) Preview(ctx context.Context, name string, count int) ([]PlannedRun, error) {
	path := schedulePath(name, "preview")
	if count != 0 {
		path += "?count=" + strconv.Itoa(count)
	}
	out, err := read[runs[PlannedRun]](ctx, c.client, path)
	return out.Runs, err
}

// PreviewSpec returns the first count runs (1 to 100; 0 means 10), after a time (zero: now),
// of a schedule that is not stored. It uses Spec, Zone, Start and End of s.
func (c Schedules) PreviewSpec(ctx context.Context, s Schedule, after time.Time, count int) ([]PlannedRun, error) {
	in := struct {
		Spec  string    `json:"spec"`
		Zone  string    `json:"zone,omitzero"`
		Start time.Time `json:"start,omitzero"`
		End   time.Time `json:"end,omitzero"`
		After time.Time `json:"after,omitzero"`
		Count int       `json:"count,omitzero"`
	}{s.Spec, s.Zone, s.Start, s.End, after, count}
	out, err := ask[runs[PlannedRun]](ctx, c.client, request{method: http.MethodPost, path: "/v1/schedules/preview", in: in, repeat: true, reads: true})
	return out.Runs, err
}
