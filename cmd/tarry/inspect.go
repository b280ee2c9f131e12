package main

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
	"tarry/job"
	"tarry/job/jobpb"
)

// getAtOnce is how many jobs a get has in memory.
const getAtOnce = 100

func getCommand() *cobra.Command {
	c := newCommand("get", "show everything known of jobs", "ID...", "Shows everything known of a job, or of several in the order of their ids. Those that do not exist\nare named on standard error.", "tarry get mail-7 mail-8", 1, math.MaxInt)
	raw := c.rawFlag("print the bodies alone, byte for byte; with several IDs a newline follows each")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) == 1 {
			j, err := t.client.Get(ctx, args[0])
			if err != nil {
				return err
			}
			return t.printJobRaw(&j, *raw)
		}
		failed := exitOK
		for ids := range slices.Chunk(args, getAtOnce) {
			results, err := t.client.GetBatch(ctx, ids, true)
			if err != nil {
				return err
			}
			for _, r := range results {
				if r.Err != nil {
					t.notes.line("%s: %s", c.path(), explain(r.Err))
					failed = cmp.Or(failed, exitCode(r.Err))
				} else if err := t.printOneOf(&r.Job, *raw); err != nil {
					return err
				}
			}
		}
		if failed != exitOK {
			return exit(failed)
		}
		return nil
	})
}

// printOneOf prints one of several jobs, with the end of a line behind it.
func (t *terminal) printOneOf(j *client.Job, raw bool) error {
	err := t.printJobRaw(j, raw)
	if err == nil && (raw || !t.json) {
		err = t.out.line("")
	}
	return err
}

// printJobRaw prints a job, or its body alone.
func (t *terminal) printJobRaw(j *client.Job, raw bool) error {
	switch {
	case raw:
		return t.out.raw(j.Bytes())
	case t.json:
		return t.printJSON(j)
	}
	return t.printJob(j)
}

func (t *terminal) printJob(j *client.Job) error {
	rows := append(t.jobRows(j), extraRows(j.Backoff, j.Headers)...)
	return t.withBody([]string{"id", j.ID}, rows, j.Body)
}

// withBody prints a table with a body at its end: in a row of its own, or the lines below.
func (t *terminal) withBody(head []string, rows [][]string, body client.Body) error {
	if text := body.Bytes(); hasLines(text) {
		return errors.Join(t.table(head, append(rows, []string{"body", "below"})), t.out.text(text))
	}
	return t.table(head, append(rows, []string{"body", whole(body.Bytes())}))
}

// inOtherRows are the members of a job that jobRows gives no row of their own.
var inOtherRows = []string{
	"id", "seq", "priority", "delay", "ttr", "attempts", "max_attempts", "expires_at",
	"reserves", "timeouts", "releases", "buries", "kicks", "backoff", "headers",
}

// jobRows shows what a job has, in the order of client.Job, a member in a row; what all
// jobs have stands together.
func (t *terminal) jobRows(j *client.Job) (rows [][]string) {
	for f, v := range reflect.ValueOf(j).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "died_at" {
			rows = append(rows, t.attemptRows(j)...)
		}
		if f.Anonymous || v.IsZero() || slices.Contains(inOtherRows, name) || name == "last_error" && j.LastError == j.Reason {
			continue
		}
		cell := fmt.Sprint(v.Interface())
		switch value := v.Interface().(type) {
		case time.Time:
			cell = t.when(value)
		case string:
			cell = plain([]byte(value))
		}
		rows = append(rows, []string{strings.ReplaceAll(strings.TrimSuffix(name, "_at"), "_", " "), cell})
	}
	return rows
}

// attemptRows shows the attempts of a job and what bounds them.
func (t *terminal) attemptRows(j *client.Job) [][]string {
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
		rows = append(rows, []string{"expires", t.when(j.ExpiresAt)})
	}
	return rows
}

// extraRows shows what few jobs have.
func extraRows(b *client.Backoff, headers map[string]string) (rows [][]string) {
	if b != nil {
		rows = append(rows, []string{"backoff", backoffWords(b)})
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		rows = append(rows, []string{"header " + name, show([]byte(headers[name]))})
	}
	return rows
}

func historyCommand() *cobra.Command {
	c := newCommand("history", "show what happened to a job", "ID", "Shows what happened to a job, in topics that retain their jobs.", "tarry history mail-7", 1, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		h, err := t.client.History(ctx, args[0])
		if err != nil {
			return err
		}
		if t.json {
			return t.printJSON(h)
		}
		return t.printHistory(h)
	})
}

func (t *terminal) printHistory(h client.History) error {
	var rows [][]string
	for i, e := range h.Events {
		attempt, due, reason := "", "", ""
		if i > 0 {
			attempt = strconv.Itoa(int(e.Attempt))
		}
		if !e.DueAt.IsZero() {
			due = t.when(e.DueAt)
		}
		if e.Reason != "" {
			reason = show([]byte(e.Reason))
		}
		rows = append(rows, []string{t.when(e.At), e.Event, string(e.State), attempt, due, e.Consumer, reason})
		if i == 0 && h.Dropped > 0 {
			rows = append(rows, []string{"", fmt.Sprintf("(%d more)", h.Dropped), "", "", "", "", ""})
		}
	}
	if err := t.table([]string{"AT", "EVENT", "STATE", "ATTEMPT", "DUE", "CONSUMER", "REASON"}, rows); err != nil {
		return err
	}
	// A delayed job becomes ready without an event; every other state has one.
	if n := len(h.Events); n > 0 && (h.State == "dead" || h.State == "reserved") && h.Events[n-1].State != h.State {
		t.notes.line("this is not all: the job is %s. What happens to a job is recorded while its topic retains jobs: tarry topic set %s --retain 1d", h.State, h.Topic)
	}
	return nil
}

func explainCommand() *cobra.Command {
	c := newCommand("explain", "say why a job is not delivered yet, or was late", "ID", "Says why a job is not delivered yet, or was delivered late.", "tarry explain mail-7", 1, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		e, err := t.client.Explain(ctx, args[0])
		if err != nil {
			return err
		}
		if t.json {
			return t.printJSON(e)
		}
		return t.out.line("%s", t.explanation(e))
	})
}

// explanation is the text of e with its times as they are shown here.
func (t *terminal) explanation(e client.Explanation) string {
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
		case t.absolute:
			return job.InstantAfter(word, ms)
		case word == "until":
			return t.left(at)
		case word == "since":
			return t.since(at)
		}
		return t.when(at)
	})
}

func topicsCommand() *cobra.Command {
	c := newCommand("topics", "list topics with their jobs by state", "[TOPIC]", "Lists the topics, or one of them, with their jobs by state.", "tarry topics", 0, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) == 1 {
			topic, err := t.client.Topics().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return t.printTopics([]client.Topic{topic})
		}
		return inTables(t.client.Topics().List(ctx, client.PageOptions{}), t.printTopics)
	})
}

func statsCommand() *cobra.Command {
	c := newCommand("stats", "count the topics, and all jobs by state", "", "Counts the topics, and the jobs of all of them by state.", "tarry stats", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		s, err := t.client.Topics().Stats(ctx)
		if err != nil {
			return err
		}
		if t.json {
			return t.printJSON(s)
		}
		return t.table([]string{"TOPICS", "DELAYED", "READY", "RESERVED", "DEAD", "RETAINED"},
			[][]string{{count(s.Topics), count(s.Delayed), count(s.Ready), count(s.Reserved), count(s.Dead), count(s.Retained)}})
	})
}

func (t *terminal) printTopics(topics []client.Topic) error {
	head := []string{"TOPIC", "DELAYED", "READY", "RESERVED", "DEAD", "OLDEST DUE", "RETAINED", "PAUSE"}
	return printAll(t, topics, head, func(p client.Topic) []string {
		return []string{p.Name, count(p.Delayed), count(p.Ready), count(p.Reserved), count(p.Dead), t.when(p.OldestDueAt), count(p.Retained), t.pauseWords(p.Paused, p.PausedUntil)}
	})
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }
