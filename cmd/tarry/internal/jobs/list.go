package jobs

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strconv"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func ListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list jobs of a topic, or by the beginning of their ids or a header", "[TOPIC]", "Lists the jobs of a topic: delayed, ready, reserved and dead ones, each kind in its order.\nWith --id-prefix by id, and without TOPIC those of all topics. With --where and without TOPIC\nthose of all topics that index this header (tarry topic set --index-headers).",
		"tarry list mail --state dead --reason 'no route'", 0, 1)
	var f cli.FilterFlags
	f.Register(c)
	var q client.ListOptions
	var most int
	c.Flags.StringVarP((*string)(&q.State), "state", "s", "", "only jobs in this `state`: delayed, ready, reserved or dead; or finished or deleted, of topics that retain them")
	c.Flags.BoolVar(&q.Bodies, "bodies", false, "also show the bodies")
	c.Flags.IntVarP(&most, "max", "n", 100, "maximum `number` of jobs to show; 0 for all")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		q.Filter = f.Selected()
		switch {
		case len(args) == 1:
			q.Topic = args[0]
		case q.IDPrefix == "" && len(q.Headers) == 0:
			return cli.Usagef("takes a TOPIC, --id-prefix or --where")
		}
		if most < 0 {
			return cli.Usagef("--max is %d; it takes 0 or more", most)
		}
		return printList(ctx, t, q, most)
	})
}

// printList prints up to most jobs, 0 for all, a table for each page.
func printList(ctx context.Context, t *cli.Terminal, q client.ListOptions, most int) error {
	q.Page = 1000
	if most > 0 {
		q.Page = min(most, q.Page)
	}
	shown := 0
	for cursor := ""; ; {
		page, next, err := t.Client.JobsPage(ctx, q, cursor)
		if errors.Is(err, client.ErrIncomplete) {
			t.Notes.Line("%v", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if left := most - shown; most > 0 && len(page) > left {
			page = page[:left]
		}
		shown += len(page)
		if err := printJobs(t, page, q.Bodies); err != nil {
			return err
		}
		switch {
		case next == "" && shown == 0:
			t.Notes.Line("%s", noJobs(q))
			return nil
		case next == "":
			return nil
		case most > 0 && shown >= most:
			t.Notes.Line("there may be more; --max is %d", most)
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

func printJobs(t *cli.Terminal, jobs []client.Job, bodies bool) error {
	if len(jobs) == 0 {
		return nil
	}
	head := []string{"ID", "TOPIC", "STATE", "DUE", "MODIFIED", "DIED", "RESERVED BY", "ATTEMPTS", "REASON"}
	if bodies {
		head = append(head, "BODY")
	}
	return cli.PrintAll(t, jobs, head, func(j client.Job) []string {
		row := []string{j.ID, j.Topic, string(j.State), t.When(j.DueAt), t.When(j.ModifiedAt), t.When(j.DiedAt), cmp.Or(j.ReservedBy, "-"), strconv.Itoa(int(j.Attempts)), cli.Show([]byte(j.Reason))}
		if bodies {
			row = append(row, cli.Show(j.Bytes()))
		}
		return row
	})
}
