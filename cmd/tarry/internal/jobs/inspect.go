package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
	"tarry/job/jobpb"
)

// getAtOnce is how many jobs a get has in memory.
const getAtOnce = 100

func GetCommand() *cobra.Command {
	c := cli.NewCommand("get", "show everything known of jobs", "ID...", "Shows everything known of a job, or of several in the order of their ids. Those that do not exist\nare named on standard error.", "tarry get mail-7 mail-8", 1, math.MaxInt)
	raw := c.RawFlag("print the bodies alone, byte for byte; with several IDs a newline follows each")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) == 1 {
			j, err := t.Client.Get(ctx, args[0])
			if err != nil {
				return err
			}
			return printJobRaw(t, &j, *raw)
		}
		failed := cli.ExitOK
		for ids := range slices.Chunk(args, getAtOnce) {
			results, err := t.Client.GetBatch(ctx, ids, true)
			if err != nil {
				return err
			}
			for _, r := range results {
				if r.Err != nil {
					t.Notes.Line("%s: %s", c.Path(), cli.Explain(r.Err))
					failed = cmp.Or(failed, cli.ExitCode(r.Err))
				} else if err := printOneOf(t, &r.Job, *raw); err != nil {
					return err
				}
			}
		}
		if failed != cli.ExitOK {
			return cli.Exit(failed)
		}
		return nil
	})
}

// printOneOf prints one of several jobs, with the end of a line behind it.
func printOneOf(t *cli.Terminal, j *client.Job, raw bool) error {
	err := printJobRaw(t, j, raw)
	if err == nil && (raw || !t.JSON) {
		err = t.Out.Line("")
	}
	return err
}

// printJobRaw prints a job, or its body alone.
func printJobRaw(t *cli.Terminal, j *client.Job, raw bool) error {
	switch {
	case raw:
		return t.Out.Raw(j.Bytes())
	case t.JSON:
		return t.PrintJSON(j)
	}
	return printJob(t, j)
}

func printJob(t *cli.Terminal, j *client.Job) error {
	rows := append(jobRows(t, j), extraRows(j.Backoff, j.Headers)...)
	return withBody(t, []string{"id", j.ID}, rows, j.Body)
}

// withBody prints a table with a body at its end: in a row of its own, or the lines below.
func withBody(t *cli.Terminal, head []string, rows [][]string, body client.Body) error {
	if text := body.Bytes(); cli.HasLines(text) {
		return errors.Join(t.Table(head, append(rows, []string{"body", "below"})), t.Out.Text(text))
	}
	return t.Table(head, append(rows, []string{"body", cli.Whole(body.Bytes())}))
}

// inOtherRows are the members of a job that jobRows gives no row of their own.
var inOtherRows = []string{
	"id", "seq", "priority", "delay", "ttr", "attempts", "max_attempts", "expires_at",
	"reserves", "timeouts", "releases", "buries", "kicks", "backoff", "headers",
}

// jobRows shows what a job has, in the order of client.Job, a member in a row; what all
// jobs have stands together.
func jobRows(t *cli.Terminal, j *client.Job) (rows [][]string) {
	for f, v := range reflect.ValueOf(j).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "died_at" {
			rows = append(rows, attemptRows(t, j)...)
		}
		if f.Anonymous || v.IsZero() || slices.Contains(inOtherRows, name) || name == "last_error" && j.LastError == j.Reason {
			continue
		}
		cell := fmt.Sprint(v.Interface())
		switch value := v.Interface().(type) {
		case time.Time:
			cell = t.When(value)
		case string:
			cell = cli.Plain([]byte(value))
		}
		rows = append(rows, []string{strings.ReplaceAll(strings.TrimSuffix(name, "_at"), "_", " "), cell})
	}
	return rows
}

// attemptRows shows the attempts of a job and what bounds them.
func attemptRows(t *cli.Terminal, j *client.Job) [][]string {
	limit := "no limit"
	if j.MaxAttempts > 0 {
		limit = "of " + strconv.Itoa(int(j.MaxAttempts))
	}
	rows := [][]string{
		{"attempts", fmt.Sprintf("%d (%s)", j.Attempts, limit)},
		{"priority", strconv.Itoa(int(j.Priority))},
		{"time to run", job.DurationText(j.TTR.Duration)},
		{"so far", fmt.Sprintf("%d reserves, %d timeouts, %d releases, %d buries, %d kicks", j.Reserves, j.Timeouts, j.Releases, j.Buries, j.Kicks)},
	}
	if !j.ExpiresAt.IsZero() {
		rows = append(rows, []string{"expires", t.When(j.ExpiresAt)})
	}
	return rows
}

// extraRows shows what few jobs have.
func extraRows(b *client.Backoff, headers map[string]string) (rows [][]string) {
	if b != nil {
		rows = append(rows, []string{"backoff", backoffWords(b)})
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		rows = append(rows, []string{"header " + name, cli.Show([]byte(headers[name]))})
	}
	return rows
}

func HistoryCommand() *cobra.Command {
	c := cli.NewCommand("history", "show what happened to a job", "ID", "Shows what happened to a job, in topics that retain their jobs.", "tarry history mail-7", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		h, err := t.Client.History(ctx, args[0])
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(h)
		}
		return printHistory(t, h)
	})
}

func printHistory(t *cli.Terminal, h client.History) error {
	var rows [][]string
	for i, e := range h.Events {
		attempt, due, reason := "", "", ""
		if i > 0 {
			attempt = strconv.Itoa(int(e.Attempt))
		}
		if !e.DueAt.IsZero() {
			due = t.When(e.DueAt)
		}
		if e.Reason != "" {
			reason = cli.Show([]byte(e.Reason))
		}
		rows = append(rows, []string{t.When(e.At), e.Event, string(e.State), attempt, due, e.Consumer, reason})
		if i == 0 && h.Dropped > 0 {
			rows = append(rows, []string{"", fmt.Sprintf("(%d more)", h.Dropped), "", "", "", "", ""})
		}
	}
	if err := t.Table([]string{"AT", "EVENT", "STATE", "ATTEMPT", "DUE", "CONSUMER", "REASON"}, rows); err != nil {
		return err
	}
	// A delayed job becomes ready without an event; every other state has one.
	if n := len(h.Events); n > 0 && (h.State == "dead" || h.State == "reserved") && h.Events[n-1].State != h.State {
		t.Notes.Line("this is not all: the job is %s. What happens to a job is recorded while its topic retains jobs: tarry topic set %s --retain 1d", h.State, h.Topic)
	}
	return nil
}

func ExplainCommand() *cobra.Command {
	c := cli.NewCommand("explain", "say why a job is not delivered yet, or was late", "ID", "Says why a job is not delivered yet, or was delivered late.", "tarry explain mail-7", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		e, err := t.Client.Explain(ctx, args[0])
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(e)
		}
		return t.Out.Line("%s", explanation(t, e))
	})
}

// explanation is the text of e with its times as they are shown here.
func explanation(t *cli.Terminal, e client.Explanation) string {
	millis := func(at time.Time) int64 {
		if at.IsZero() {
			return 0
		}
		return at.UnixMilli()
	}
	m := &jobpb.Explanation{LateMs: e.Late.Milliseconds(), DueMs: millis(e.DueAt)}
	for _, c := range e.Causes {
		m.Causes = append(m.Causes, &jobpb.Cause{
			Kind: jobpb.Cause_Kind(jobpb.Cause_Kind_value[strings.ToUpper(c.Cause)]), LateMs: c.Late.Milliseconds(), UntilMs: millis(c.Until), AtMs: millis(c.At),
			Count: c.Count, Consumer: c.Consumer, Reason: c.Reason, Then: c.Then, Text: c.Text,
		})
	}
	return job.ExplanationText(m, func(word string, ms int64) string {
		at := time.UnixMilli(ms)
		switch {
		case t.Absolute:
			return job.InstantAfter(word, ms)
		case word == "until":
			return t.Left(at)
		case word == "since":
			return t.Since(at)
		}
		return t.When(at)
	})
}

func TopicsCommand() *cobra.Command {
	c := cli.NewCommand("topics", "list topics with their jobs by state", "[TOPIC]", "Lists the topics, or one of them, with their jobs by state.", "tarry topics", 0, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) == 1 {
			topic, err := t.Client.Topics().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return printTopics(t, []client.Topic{topic})
		}
		return cli.InTables(t.Client.Topics().List(ctx, client.PageOptions{}), func(page []client.Topic) error { return printTopics(t, page) })
	})
}

func StatsCommand() *cobra.Command {
	c := cli.NewCommand("stats", "count the topics, and all jobs by state", "", "Counts the topics, and the jobs of all of them by state.", "tarry stats", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		s, err := t.Client.Topics().Stats(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(s)
		}
		return t.Table([]string{"TOPICS", "DELAYED", "READY", "RESERVED", "DEAD", "RETAINED"},
			[][]string{{cli.Count(s.Topics), cli.Count(s.Delayed), cli.Count(s.Ready), cli.Count(s.Reserved), cli.Count(s.Dead), cli.Count(s.Retained)}})
	})
}

func printTopics(t *cli.Terminal, topics []client.Topic) error {
	head := []string{"TOPIC", "DELAYED", "READY", "RESERVED", "DEAD", "OLDEST DUE", "RETAINED", "PAUSE"}
	return cli.PrintAll(t, topics, head, func(p client.Topic) []string {
		return []string{p.Name, cli.Count(p.Delayed), cli.Count(p.Ready), cli.Count(p.Reserved), cli.Count(p.Dead), t.When(p.OldestDueAt), cli.Count(p.Retained), pauseWords(t, p.Paused, p.PausedUntil)}
	})
}
