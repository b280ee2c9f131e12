package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func ScheduleCommand() *cobra.Command {
	return cli.Group("schedule", "put, get, list, delete, preview, run, pause, resume, runs: recurring jobs", "Shows and changes schedules, which start recurring jobs (docs/schedules.md).",
		schedulePutCommand(), scheduleGetCommand(), scheduleListCommand(), scheduleDeleteCommand(), schedulePreviewCommand(),
		scheduleRunCommand(), schedulePauseCommand(), scheduleResumeCommand(), scheduleRunsCommand())
}

// timeFlags say when a schedule runs.
type timeFlags struct {
	spec, zone string
	start, end cli.Instant
}

func (f *timeFlags) register(c *cli.Command) {
	c.Flags.StringVar(&f.spec, "spec", "", "cron `expression` of 5 fields, or 6 with seconds in front; @daily; @every 90s")
	c.Flags.StringVar(&f.zone, "zone", "", "`name` of the time zone, such as Europe/Berlin; default UTC")
	c.Flags.Var(&f.start, "start", "`timestamp` before which there is no run, such as 2030-01-31T12:00:00Z")
	c.Flags.Var(&f.end, "end", "`timestamp` after which there is no run")
}

func (f *timeFlags) fill(s *client.Schedule) {
	s.Spec, s.Zone, s.Start, s.End = f.spec, f.zone, f.start.Time, f.end.Time
}

func schedulePutCommand() *cobra.Command {
	c := cli.NewCommand("put", "make or replace a schedule", "NAME BODY", "Makes or replaces a schedule. BODY is the text of each job; - reads it from standard input.\n{{planned}}, {{planned_ms}}, {{name}} and {{run}} in it are filled in.",
		"tarry schedule put nightly --spec '30 2 * * *' --zone Europe/Berlin --topic report 'for {{planned}}'", 2, 2)
	var times timeFlags
	times.register(c)
	var job addFlags
	job.register(c)
	var s client.Schedule
	var jitter, missedAfter cli.Duration
	var revision uint64
	missedAfter.Positive = true
	c.Flags.Var(&jitter, "jitter", "`time` by which a job is put off at most, at random")
	c.Flags.StringVar(&s.Overlap, "overlap", "", "`what` to do while the last job is not done: allow or skip; default allow")
	c.Flags.StringVar(&s.Missed, "missed", "", "`what` to do with missed runs: skip, one or all; default skip")
	c.Flags.IntVar(&s.MissedMax, "missed-max", 0, "with --missed all: `number` of runs to make good at most; default 10")
	c.Flags.Var(&missedAfter, "missed-after", "`time` after which a run that was not started is missed; default 30s")
	registerRevision(c, &revision)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if times.spec == "" {
			return cli.Usagef("--spec is missing")
		}
		if err := job.fill(t, args[1]); err != nil {
			return err
		}
		times.fill(&s)
		s.Jitter.Duration, s.MissedAfter.Duration = jitter.Value, missedAfter.Value
		s.Job = client.ScheduledJob{
			Topic: job.Topic, TTR: client.Duration{Duration: job.TTR}, Priority: job.Priority, MaxAttempts: job.MaxAttempts,
			Backoff: job.Backoff, Headers: job.Headers, PushURL: job.PushURL, Body: job.Body,
		}
		put, err := t.Client.Schedules().Put(ctx, args[0], s, revision)
		if err != nil {
			return err
		}
		return printPut(t, put)
	})
}

func registerRevision(c *cli.Command, to *uint64) {
	c.Flags.Func("if-revision", "`number` that the schedule's revision must be", func(text string) (err error) {
		*to, err = cli.RevisionOf(text, 64)
		return err
	})
}

func printPut(t *cli.Terminal, p client.SchedulePut) error {
	if t.JSON {
		return t.PrintJSON(p)
	}
	what := "made"
	switch {
	case p.Existing:
		what = "as it was"
	case p.Replaced:
		what = "replaced"
	}
	return t.Out.Line("%s is %s, revision %d", p.Name, what, p.Revision)
}

func scheduleGetCommand() *cobra.Command {
	c := cli.NewCommand("get", "show everything known of a schedule", "NAME", "Shows everything known of a schedule.", "tarry schedule get nightly", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		s, err := t.Client.Schedules().Get(ctx, args[0])
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(s)
		}
		rows := [][]string{{"spec", s.Spec}, {"zone", s.Zone}, {"revision", cli.Count(s.Revision)}, {"next run", nextOf(t, s)}}
		for _, row := range [][]string{{"start", cli.Timestamp(s.Start)}, {"end", cli.Timestamp(s.End)}, {"trouble", cli.Dash(s.Trouble)}} {
			if row[1] != "-" {
				rows = append(rows, row)
			}
		}
		missed := s.Missed
		if s.Missed == "all" {
			missed += " up to " + strconv.Itoa(s.MissedMax)
		}
		n := s.Counts
		rows = append(rows,
			[]string{"jitter", job.DurationText(s.Jitter.Duration)}, []string{"overlap", s.Overlap},
			[]string{"missed", missed + ", after " + job.DurationText(s.MissedAfter.Duration)},
			[]string{"so far", fmt.Sprintf("%d started, %d skipped, %d missed, %d refused", n.Started, n.Skipped, n.Missed, n.Refused)},
			[]string{"made", t.When(s.CreatedAt)}, []string{"changed", t.When(s.ChangedAt)})
		return withBody(t, []string{"schedule", s.Name}, append(rows, templateRows(&s.Job)...), s.Job.Body)
	})
}

// templateRows shows the job of a schedule's runs: what it says of itself.
func templateRows(j *client.ScheduledJob) [][]string {
	rows := [][]string{{"topic", j.Topic}}
	if j.Priority != nil {
		rows = append(rows, []string{"priority", cli.Count(uint64(*j.Priority))})
	}
	if j.TTR.Duration != 0 {
		rows = append(rows, []string{"time to run", job.DurationText(j.TTR.Duration)})
	}
	if j.MaxAttempts != nil {
		rows = append(rows, []string{"max attempts", cli.Count(uint64(*j.MaxAttempts))})
	}
	if j.PushURL != "" {
		rows = append(rows, []string{"push url", cli.Plain([]byte(j.PushURL))})
	}
	return append(rows, extraRows(j.Backoff, j.Headers)...)
}

func nextOf(t *cli.Terminal, s client.ScheduleInfo) string {
	if s.Paused {
		return "paused"
	}
	return t.When(s.NextAt)
}

func scheduleListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the schedules with their next runs", "", "Lists the schedules with their next runs.", "tarry schedule list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		head := []string{"SCHEDULE", "SPEC", "ZONE", "NEXT RUN", "TOPIC", "STARTED"}
		return cli.InTables(t.Client.Schedules().List(ctx, client.PageOptions{}), func(page []client.ScheduleInfo) error {
			return cli.PrintAll(t, page, head, func(s client.ScheduleInfo) []string {
				return []string{s.Name, s.Spec, s.Zone, nextOf(t, s), s.Job.Topic, cli.Count(s.Counts.Started)}
			})
		})
	})
}

func schedulePreviewCommand() *cobra.Command {
	c := cli.NewCommand("preview", "show the next runs of a schedule, or of a --spec", "[NAME]", "Shows the next runs of a schedule; or, with --spec, of one that is not stored.",
		"tarry schedule preview --spec '30 2 * * *' --zone Europe/Berlin --count 3", 0, 1)
	var times timeFlags
	times.register(c)
	var after cli.Instant
	var n int
	c.Flags.Var(&after, "after", "with --spec: `timestamp` after which to begin; default now")
	c.Flags.IntVar(&n, "count", 10, "`number` of runs to show, 1 to 100")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if (times.spec == "") == (len(args) == 0) {
			return cli.Usagef("takes either a NAME or --spec")
		}
		if n < 1 {
			return cli.Usagef("--count is %d; it takes 1 to 100", n)
		}
		var runs []client.PlannedRun
		var err error
		if times.spec == "" {
			if err := c.Needs("--spec", "zone", "start", "end", "after"); err != nil {
				return err
			}
			runs, err = t.Client.Schedules().Preview(ctx, args[0], n)
			if cli.IsMissing(err) && strings.ContainsAny(args[0], " @") {
				err = &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("there is no schedule with the name %.40q; a cron expression goes behind --spec", args[0])}
			}
		} else {
			var s client.Schedule
			times.fill(&s)
			runs, err = t.Client.Schedules().PreviewSpec(ctx, s, after.Time, n)
		}
		if err != nil {
			return err
		}
		for _, run := range runs {
			if t.JSON {
				err = t.PrintJSON(run)
			} else {
				err = t.Out.Line("%s", run.Local)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func scheduleRunCommand() *cobra.Command {
	c := cli.NewCommand("run", "start a run now, out of turn", "NAME", "Starts a run now, out of turn, also of a paused schedule.", "tarry schedule run nightly --key repair-7", 1, 1)
	var key string
	c.Flags.Func("key", "`name` of the request, 1 to 40 bytes: sent again with the same one it is the same run", cli.Filled(&key))
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		added, err := t.Client.Schedules().Run(ctx, args[0], key)
		if err != nil {
			return err
		}
		return printAdded(t, added)
	})
}

func scheduleDeleteCommand() *cobra.Command {
	c := cli.NewCommand("delete", "delete a schedule; the jobs of its runs stay", "NAME", "Deletes a schedule. The jobs of its runs stay.", "tarry schedule delete nightly", 1, 1)
	var revision uint64
	registerRevision(c, &revision)
	return cli.Operate(c, false, "deleted", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Schedules().Delete(ctx, args[0], revision)
	})
}

func schedulePauseCommand() *cobra.Command {
	c := cli.NewCommand("pause", "start no runs until it is resumed", "NAME", "Pauses a schedule: it starts no runs until it is resumed.", "tarry schedule pause nightly", 1, 1)
	return cli.Operate(c, false, "paused", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Schedules().Pause(ctx, args[0])
	})
}

func scheduleResumeCommand() *cobra.Command {
	c := cli.NewCommand("resume", "go on with the next run to come", "NAME", "Resumes a paused schedule with its next run.", "tarry schedule resume nightly", 1, 1)
	return cli.Operate(c, false, "resumed", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Schedules().Resume(ctx, args[0])
	})
}

func scheduleRunsCommand() *cobra.Command {
	c := cli.NewCommand("runs", "show the outcomes of the last runs", "NAME", "Shows the outcomes of the last runs, the latest first.", "tarry schedule runs nightly", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		runs, err := t.Client.Schedules().Runs(ctx, args[0])
		if err != nil {
			return err
		}
		return cli.PrintAll(t, runs, []string{"PLANNED", "DECIDED", "OUTCOME", "JOB"}, func(r client.PastRun) []string {
			return []string{t.When(r.PlannedAt), t.When(r.At), outcomeWords(r), cli.Dash(r.ID)}
		})
	})
}

func outcomeWords(r client.PastRun) string {
	switch {
	case r.Count > 1:
		return fmt.Sprintf("%s (%d runs up to this)", r.Outcome, r.Count)
	case r.Code != "":
		return r.Outcome + " (" + r.Code + ")"
	case r.Now:
		return r.Outcome + " (out of turn)"
	}
	return r.Outcome
}
