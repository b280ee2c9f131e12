package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
)

func getCommand() *cobra.Command {
	c := newCommand("get", "show everything known of a job", "ID", "Shows everything known of a job.", "tarry get mail-7", 1, 1)
	raw := c.rawFlag("print the body alone, byte for byte")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		j, err := t.client.Get(ctx, args[0])
		switch {
		case err != nil:
			return err
		case *raw:
			return t.out.raw(j.Bytes())
		case t.json:
			return t.printJSON(j)
		}
		return t.printJob(j)
	})
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
		{"time to run", j.TTR.String()},
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

func (t *terminal) printHistory(h *client.History) error {
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
		rows = append(rows, []string{t.when(e.At), e.Event, e.State, attempt, due, e.Consumer, reason})
		if i == 0 && h.Dropped > 0 {
			rows = append(rows, []string{"", fmt.Sprintf("(%d more)", h.Dropped), "", "", "", "", ""})
		}
	}
	return t.table([]string{"AT", "EVENT", "STATE", "ATTEMPT", "DUE", "CONSUMER", "REASON"}, rows)
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
		return t.out.line("%s", e.Text)
	})
}

func topicsCommand() *cobra.Command {
	c := newCommand("topics", "list topics with their jobs by state", "[TOPIC]", "Lists the topics, or one of them, with their jobs by state.", "tarry topics", 0, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) == 1 {
			topic, err := t.client.Topic(ctx, args[0])
			if err != nil {
				return err
			}
			return t.printTopics([]client.Topic{topic})
		}
		for after := ""; ; {
			page, next, err := t.client.Topics(ctx, after, 0)
			if err != nil {
				return err
			}
			if err := t.printTopics(page); err != nil || next == "" {
				return err
			}
			after = next
		}
	})
}

func statsCommand() *cobra.Command {
	c := newCommand("stats", "count the topics, and all jobs by state", "", "Counts the topics, and the jobs of all of them by state.", "tarry stats", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		s, err := t.client.Stats(ctx)
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
