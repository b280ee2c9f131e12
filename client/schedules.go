package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Schedule is a recurring job.
type Schedule struct {
	// Spec is a cron expression of five fields, or six with seconds in front, a
	// name such as "@daily", or "@every 90s".
	Spec string `json:"spec"`
	// Zone is the IANA name of the time zone; empty means UTC.
	Zone string `json:"zone,omitzero"`
	// Start and End bound the runs, and with @every Start is the first of them.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Jitter puts the job of each run off, by up to so much (24 h at most), at random.
	Jitter Duration `json:"jitter,omitzero"`
	// Overlap is "allow" (the default) or "skip": no run while the job of the last
	// one is neither finished nor deleted nor dead.
	Overlap string `json:"overlap,omitzero"`
	// Missed says what becomes of runs that nobody could start within MissedAfter
	// (up to 24 h; 0 means 30 s): "skip" (the default), "one" for the latest of
	// them, or "all" for the latest MissedMax (up to 1000; 0 means 10).
	Missed      string       `json:"missed,omitzero"`
	MissedMax   int          `json:"missed_max,omitzero"`
	MissedAfter Duration     `json:"missed_after,omitzero"`
	Job         ScheduledJob `json:"job"`
}

// ScheduledJob is the job that each run adds. In its body {{planned}} stands for the
// planned time in the schedule's zone, {{planned_ms}} for the same in milliseconds since
// 1970, {{name}} for the schedule's name and {{run}} for the number of the run. The body
// may have 64 KiB.
type ScheduledJob struct {
	Topic       string            `json:"topic"`
	TTR         Duration          `json:"ttr,omitzero"`      // 0: the topic's or the server's default
	Priority    *uint32           `json:"priority,omitzero"` // nil: 1024
	MaxAttempts *uint32           `json:"max_attempts,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body
}

// SchedulePut is what became of a PutSchedule.
type SchedulePut struct {
	Name     string `json:"schedule"`
	Revision uint64 `json:"revision"`
	Existing bool   `json:"existing"`          // the same was there already
	Replaced bool   `json:"replaced,omitzero"` // another was there
}

// ScheduleInfo is everything known of a schedule but its last runs.
type ScheduleInfo struct {
	Name     string `json:"schedule"`
	Revision uint64 `json:"revision"` // another with every change but a run
	Schedule
	Paused    bool      `json:"paused"`
	Trouble   string    `json:"trouble,omitzero"` // why the server paused it
	NextAt    time.Time `json:"next_at,omitzero"` // zero while it is paused, and behind its end
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	// Counts are the runs so far, by what became of them.
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

// PastRun is what became of a run.
type PastRun struct {
	PlannedAt time.Time `json:"planned_at"`
	At        time.Time `json:"at"`      // when it was decided
	Outcome   string    `json:"outcome"` // "started", "skipped", "missed" or "refused"
	Now       bool      `json:"now,omitzero"`
	Count     uint64    `json:"count,omitzero"` // of "missed": so many runs, up to this one
	ID        string    `json:"id,omitzero"`    // of the job
	Seq       uint64    `json:"seq,omitzero"`
	Code      string    `json:"code,omitzero"` // of "refused": why no job was made
}

// runs is the answer to a call that lists some.
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

// PutSchedule makes or replaces a schedule. ifRevision narrows it to a schedule of
// that revision; 0 is any, or none. Called again with the same schedule it changes
// nothing. A schedule that is paused stays so.
func (c *Client) PutSchedule(ctx context.Context, name string, s Schedule, ifRevision uint64) (SchedulePut, error) {
	in := struct {
		Schedule
		IfRevision uint64 `json:"if_revision,omitzero"`
	}{s, ifRevision}
	return ask[SchedulePut](ctx, c, request{method: http.MethodPut, path: schedulePath(name, ""), in: in, repeat: ifRevision == 0})
}

// Schedule gives everything known of a schedule but its last runs.
func (c *Client) Schedule(ctx context.Context, name string) (*ScheduleInfo, error) {
	return read[*ScheduleInfo](ctx, c, schedulePath(name, ""))
}

// Schedules lists schedules by name, starting after the name given, up to max of
// them (at most 1000; 0 means 1000). next is where the next page starts, "" when
// there is none.
func (c *Client) Schedules(ctx context.Context, after string, max int) (list []ScheduleInfo, next string, err error) {
	var out struct {
		Schedules []ScheduleInfo `json:"schedules"`
		Next      string         `json:"next"`
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: "/v1/schedules" + pageQuery(after, max), repeat: true}, &out)
	return out.Schedules, out.Next, err
}

// DeleteSchedule removes a schedule; the jobs of its runs stay. ifRevision is as with
// PutSchedule. It also succeeds when an earlier attempt of the same call, whose response
// was lost, has deleted it.
func (c *Client) DeleteSchedule(ctx context.Context, name string, ifRevision uint64) error {
	path := schedulePath(name, "")
	if ifRevision != 0 {
		path += "?" + url.Values{"if_revision": {strconv.FormatUint(ifRevision, 10)}}.Encode()
	}
	return c.end(ctx, http.MethodDelete, path, nil)
}

// PauseSchedule stops a schedule from starting runs until ResumeSchedule. The runs in
// between are not made up for.
func (c *Client) PauseSchedule(ctx context.Context, name string) error {
	return c.moveSchedule(ctx, name, "pause")
}

// ResumeSchedule resumes a schedule that PauseSchedule, or an error, paused.
func (c *Client) ResumeSchedule(ctx context.Context, name string) error {
	return c.moveSchedule(ctx, name, "resume")
}

func (c *Client) moveSchedule(ctx context.Context, name, verb string) error {
	_, err := ask[struct{}](ctx, c, request{method: http.MethodPost, path: schedulePath(name, verb), repeat: true})
	return err
}

// RunSchedule starts a run now, out of turn: also while the schedule is paused, and
// whatever its last run does. key, 1 to 40 bytes, names the request: one that is sent
// again with the same key is the same run, and Added says Existing. So it is sent again
// after an unknown outcome. Without a key it is not, and each call is a run.
func (c *Client) RunSchedule(ctx context.Context, name, key string) (Added, error) {
	in := struct {
		Key string `json:"key,omitzero"`
	}{key}
	return ask[Added](ctx, c, request{method: http.MethodPost, path: schedulePath(name, "run"), in: in, repeat: key != ""})
}

// ScheduleRuns returns the outcomes of the last runs, up to 20, the latest first.
func (c *Client) ScheduleRuns(ctx context.Context, name string) ([]PastRun, error) {
	out, err := read[runs[PastRun]](ctx, c, schedulePath(name, "runs"))
	return out.Runs, err
}

// PreviewSchedule tells the next count runs (1 to 100; 0 means 10) of a schedule.
func (c *Client) PreviewSchedule(ctx context.Context, name string, count int) ([]PlannedRun, error) {
	path := schedulePath(name, "preview")
	if count != 0 {
		path += "?count=" + strconv.Itoa(count)
	}
	out, err := read[runs[PlannedRun]](ctx, c, path)
	return out.Runs, err
}

// PreviewSpec tells the first count runs (1 to 100; 0 means 10) of a schedule that is not
// stored, after a time; zero means now. It uses Spec, Zone, Start and End of s.
func (c *Client) PreviewSpec(ctx context.Context, s Schedule, after time.Time, count int) ([]PlannedRun, error) {
	in := struct {
		Spec  string    `json:"spec"`
		Zone  string    `json:"zone,omitzero"`
		Start time.Time `json:"start,omitzero"`
		End   time.Time `json:"end,omitzero"`
		After time.Time `json:"after,omitzero"`
		Count int       `json:"count,omitzero"`
	}{s.Spec, s.Zone, s.Start, s.End, after, count}
	out, err := ask[runs[PlannedRun]](ctx, c, request{method: http.MethodPost, path: "/v1/schedules/preview", in: in, repeat: true})
	return out.Runs, err
}
