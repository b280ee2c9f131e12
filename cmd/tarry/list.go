package main

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
)

// filterFlags are the flags that select jobs.
type filterFlags struct {
	client.Filter
	dueFrom, dueTo, diedFrom, diedTo instant
}

func (f *filterFlags) register(c *clientCommand) {
	c.flags.StringVar(&f.IDPrefix, "id-prefix", "", "only jobs whose id starts with this `text`")
	c.flags.StringVar(&f.Reason, "reason", "", "only jobs with this `text` in their reason or last error")
	exactReasonFlag(c, &f.ExactReason)
	c.flags.Var(&f.dueFrom, "due-from", "only jobs that are due at this `timestamp` or later, such as 2030-01-31T12:00:00Z")
	c.flags.Var(&f.dueTo, "due-to", "only jobs that are due before this `timestamp`")
	c.flags.Var(&f.diedFrom, "died-from", "only jobs that died at this `timestamp` or later")
	c.flags.Var(&f.diedTo, "died-to", "only jobs that died before this `timestamp`")
	whereFlag(c, "only jobs with this header, `name=value`; may be repeated", &f.Headers)
	c.flags.AddFlag(&pflag.Flag{Name: "header", Value: c.flags.Lookup("where").Value, Hidden: true}) // its old name
}

// whereFlag adds the filter by headers, which is no --header: to an add or update that is what
// the job gets.
func whereFlag(c *clientCommand, help string, headers *map[string]string) {
	c.flags.Func("where", help, func(text string) error { return pair(headers, text) })
}

// exactReasonFlag adds the filter by a whole reason, which may be empty.
func exactReasonFlag(c *clientCommand, reason **string) {
	c.flags.Func("exact-reason", "only jobs whose whole reason, as tarry dead shows it, is this `text`; \"\" for none", func(text string) error {
		*reason = &text
		return nil
	})
}

// filterNames are the flags that register adds.
var filterNames = []string{"id-prefix", "reason", "exact-reason", "due-from", "due-to", "died-from", "died-to", "where", "header"}

// filter returns the filter of the flags.
func (f *filterFlags) filter() client.Filter {
	f.DueFrom, f.DueTo, f.DiedFrom, f.DiedTo = f.dueFrom.t, f.dueTo.t, f.diedFrom.t, f.diedTo.t
	return f.Filter
}

func listCommand() *cobra.Command {
	c := newCommand("list", "list jobs of a topic, or by the beginning of their ids or a header", "[TOPIC]", "Lists the jobs of a topic: delayed, ready, reserved and dead ones, each kind in its order.\nWith --id-prefix by id, and without TOPIC those of all topics. With --where and without TOPIC\nthose of all topics that index this header (tarry topic set --index-headers).",
		"tarry list mail --state dead --reason 'no route'", 0, 1)
	var f filterFlags
	f.register(c)
	var q client.ListOptions
	var most int
	c.flags.StringVarP((*string)(&q.State), "state", "s", "", "only jobs in this `state`: delayed, ready, reserved or dead; or finished or deleted, of topics that retain them")
	c.flags.BoolVar(&q.Bodies, "bodies", false, "also show the bodies")
	c.flags.IntVarP(&most, "max", "n", 100, "maximum `number` of jobs to show; 0 for all")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		q.Filter = f.filter()
		switch {
		case len(args) == 1:
			q.Topic = args[0]
		case q.IDPrefix == "" && len(q.Headers) == 0:
			return usagef("takes a TOPIC, --id-prefix or --where")
		}
		if most < 0 {
			return usagef("--max is %d; it takes 0 or more", most)
		}
		return t.list(ctx, q, most)
	})
}

// list prints up to most jobs, 0 for all, a table for each page.
func (t *terminal) list(ctx context.Context, q client.ListOptions, most int) error {
	q.Page = 1000
	if most > 0 {
		q.Page = min(most, q.Page)
	}
	shown := 0
	for cursor := ""; ; {
		page, next, err := t.client.JobsPage(ctx, q, cursor)
		if errors.Is(err, client.ErrIncomplete) {
			t.notes.line("%v", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if left := most - shown; most > 0 && len(page) > left {
			page = page[:left]
		}
		shown += len(page)
		if err := t.printJobs(page, q.Bodies); err != nil {
			return err
		}
		switch {
		case next == "" && shown == 0:
			t.notes.line("%s", noJobs(q))
			return nil
		case next == "":
			return nil
		case most > 0 && shown >= most:
			t.notes.line("there may be more; --max is %d", most)
			return nil
		}
		cursor = next
	}
}

// noJobs says that a list is empty.
func noJobs(q client.ListOptions) string {
	text := "no jobs"
	if q.State != "" {
		text = "no " + string(q.State) + " jobs"
	}
	if q.Topic != "" {
		text += " in the topic " + q.Topic
	}
	q.Topic, q.State, q.Bodies, q.Page = "", "", false, 0
	if !reflect.ValueOf(q).IsZero() {
		text += " match"
	}
	return text
}

func (t *terminal) printJobs(jobs []client.Job, bodies bool) error {
	if len(jobs) == 0 {
		return nil
	}
	head := []string{"ID", "TOPIC", "STATE", "DUE", "MODIFIED", "DIED", "RESERVED BY", "ATTEMPTS", "REASON"}
	if bodies {
		head = append(head, "BODY")
	}
	return printAll(t, jobs, head, func(j client.Job) []string {
		row := []string{j.ID, j.Topic, string(j.State), t.when(j.DueAt), t.when(j.ModifiedAt), t.when(j.DiedAt), cmp.Or(j.ReservedBy, "-"), strconv.Itoa(int(j.Attempts)), show([]byte(j.Reason))}
		if bodies {
			row = append(row, show(j.Bytes()))
		}
		return row
	})
}
