package archive

import (
	"context"
	"time"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// everything is what an export of everything knows beside the jobs.
type everything struct {
	// expire has how long after its due time a job of a topic expires. Nodes show the earlier
	// of that and the job's own expiry, and only the latter is the job's.
	expire map[string]time.Duration
}

// everything writes the whole cluster: first what the jobs need.
func (e *exporter) everything(ctx context.Context) error {
	settings, err := e.settings(ctx)
	if err != nil {
		return err
	}
	e.all.expire = make(map[string]time.Duration)
	for name, s := range settings {
		e.all.expire[name] = s.Expire.Duration
	}
	if e.done.Size == 0 {
		if err := e.beforeJobs(ctx, settings); err != nil {
			return err
		}
	}
	if err := e.topics(ctx, ""); err != nil {
		return err
	}
	e.done.Counts.Jobs = e.done.Jobs
	if err := e.line(exportEnd{kindEnd, e.done.Counts}); err != nil {
		return err
	}
	if err := e.buffer.Flush(); err != nil || e.file == "" {
		return err
	}
	return e.out.Sync()
}

// settings returns the settings of all topics that have some.
func (e *exporter) settings(ctx context.Context) (map[string]client.Settings, error) {
	all := make(map[string]client.Settings)
	for s, err := range e.t.Client.Topics().AllSettings(ctx, client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		all[s.Topic] = s.Settings
	}
	return all, nil
}

// beforeJobs writes the first line and those of all but the jobs. Namespaces come first: topics
// and schedules belong to them.
func (e *exporter) beforeJobs(ctx context.Context, settings map[string]client.Settings) error {
	head := exportHead{Version: exportVersion, At: e.t.Now().UTC().Truncate(time.Millisecond), Release: cli.Version}
	members, err := e.t.Client.Cluster().Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		head.ClusterVersion = max(head.ClusterVersion, m.ClusterVersion)
	}
	if err := e.line(head); err != nil {
		return err
	}
	for n, err := range e.t.Client.Namespaces().List(ctx) {
		if err != nil {
			return err
		}
		if err := e.line(namespaceLine{kindNamespace, n.Name, n.NamespaceSpec}); err != nil {
			return err
		}
		e.done.Counts.Namespaces++
	}
	if err := e.topicLines(ctx, settings); err != nil {
		return err
	}
	if err := e.scheduleLines(ctx); err != nil {
		return err
	}
	return e.save()
}

// topicLines writes the topics that have settings or are paused, by name.
func (e *exporter) topicLines(ctx context.Context, settings map[string]client.Settings) error {
	lines := make(map[string]topicLine)
	for name, s := range settings {
		lines[name] = topicLine{Type: kindTopic, Topic: name, Settings: &s}
	}
	for t, err := range e.t.Client.Topics().List(ctx, client.PageOptions{}) {
		if err != nil {
			return err
		}
		if l := lines[t.Name]; t.Paused {
			l.Type, l.Topic, l.Paused, l.PausedUntil = kindTopic, t.Name, true, t.PausedUntil
			lines[t.Name] = l
		}
	}
	for _, name := range sortedNames(lines) {
		if err := e.line(lines[name]); err != nil {
			return err
		}
	}
	e.done.Counts.Topics = len(lines)
	return nil
}

func (e *exporter) scheduleLines(ctx context.Context) error {
	for s, err := range e.t.Client.Schedules().List(ctx, client.PageOptions{}) {
		if err != nil {
			return err
		}
		if err := e.line(scheduleLine{kindSchedule, s.Name, s.Schedule, s.Paused}); err != nil {
			return err
		}
		e.done.Counts.Schedules++
	}
	return nil
}

// jobLine is a job as it is. A reserved one is ready, and its attempt counts unless it was the
// last: then the job has that one again, because nobody knows how it ends.
func (a *everything) jobLine(j *client.Job) exportedJob {
	l := client.ImportedJob{
		ID: j.ID, Topic: j.Topic, State: j.State, DueAt: j.DueAt, Delay: j.Delay, CreatedAt: j.CreatedAt, DiedAt: j.DiedAt, ExpiresAt: j.ExpiresAt,
		TTR: j.TTR, Priority: j.Priority, Attempts: j.Attempts, MaxAttempts: j.MaxAttempts,
		Reserves: j.Reserves, Timeouts: j.Timeouts, Releases: j.Releases, Buries: j.Buries, Kicks: j.Kicks,
		Reason: j.Reason, LastError: j.LastError, Backoff: j.Backoff, Headers: j.Headers, PushURL: j.PushURL, Body: j.Body,
	}
	if j.State == "reserved" {
		l.State = "ready"
		if l.MaxAttempts > 0 && l.Attempts >= l.MaxAttempts {
			l.Attempts = l.MaxAttempts - 1
		}
	}
	if after := a.expire[j.Topic]; after > 0 && l.ExpiresAt.Equal(j.DueAt.Add(after)) {
		l.ExpiresAt = time.Time{}
	}
	return exportedJob{kindJob, l}
}

// reportAll prints what was exported.
func (e *exporter) reportAll() error {
	if e.t.JSON {
		return e.t.PrintJSON(struct {
			Exported exportCounts `json:"exported"`
		}{e.done.Counts})
	}
	return e.t.Out.Line("%s written to %s", e.done.Counts, e.file)
}
