// Package archive has the commands about files: jobs in lines, exports, backups and their restore, and the
// data directory of a node that is stopped.
package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const exportText = `Writes the jobs of a topic, or of all topics, as lines of JSON that tarry add --file takes.
A line has what was added: topic, id, due_at, expires_at, ttr, priority, max_attempts,
backoff, headers, push_url and body. Attempts, histories and reservations are not exported, nor
are ids that a node made. Jobs that change their state meanwhile may be missed or written twice: pause the topics
for an exact copy.

With --all the file has everything that makes a cluster what it is, in a format that tarry import
of every later release reads: the settings and pauses of topics, namespaces, schedules, and the
jobs with their attempts, errors and counts, dead ones, too. Reserved jobs are ready in it. Tokens,
histories, jobs that are only retained and the secrets of push targets are not in it.

With --out it can be interrupted: run the same command again, and it goes on.`

// exportProgress is how far an export is.
type exportProgress struct {
	Query  string       `json:"query"` // what was asked for; another question starts anew
	Topic  string       `json:"topic"`
	State  client.State `json:"state"`
	Cursor string       `json:"cursor"`
	Size   int64        `json:"size"` // of the file, up to which it holds
	Jobs   int          `json:"jobs"`
	// Of an export of everything, beside the jobs.
	Counts exportCounts `json:"counts,omitzero"`
}

// exporter writes jobs, a page after the other.
type exporter struct {
	t      *cli.Terminal
	file   string // "": standard output
	filter client.Filter
	states []client.State
	total  uint64 // about as many jobs; 0: not known
	out    *os.File
	buffer *bufio.Writer
	done   exportProgress
	meter  *cli.Meter
	all    *everything // nil: jobs alone
}

func ExportCommand() *cobra.Command {
	c := cli.NewCommand("export", "write jobs as lines of JSON", "[TOPIC]", exportText, "tarry export mail --out jobs.ndjson", 0, 1)
	var f cli.FilterFlags
	f.Register(c)
	var out, states string
	var all bool
	c.Flags.StringVarP(&out, "out", "o", "", "`file` to write; default: standard output")
	c.Flags.StringVar(&states, "states", "delayed,ready,reserved", "only jobs in these `states`, separated by commas; dead ones would be ready again when they are added")
	c.Flags.BoolVar(&all, "all", false, "everything of the cluster, for tarry import")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		e := &exporter{t: t, file: out, filter: f.Selected(), states: cli.StatesOf(strings.Split(states, ","))}
		parts := []any{args, e.states, e.filter}
		if all {
			if name := c.Given("states"); name != "" || len(args) > 0 || !reflect.ValueOf(e.filter).IsZero() {
				return cli.Usagef("--all takes no TOPIC, --states or filter: it exports everything")
			}
			e.all, e.states = new(everything), cli.LiveStates
			parts = append(parts, "all")
		}
		query, err := json.Marshal(parts, json.Deterministic(true))
		if err != nil {
			return err
		}
		e.done.Query = string(query)
		return e.run(ctx, strings.Join(args, ""))
	})
}

// run exports one topic; "" is all of them.
func (e *exporter) run(ctx context.Context, topic string) error {
	if err := e.open(); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	e.countAll(ctx, topic)
	e.meter = e.t.Meter(e.done.Jobs)
	var err error
	if e.all == nil {
		err = e.topics(ctx, topic)
	} else {
		err = e.everything(ctx)
	}
	e.meter.End()
	if e.file == "" {
		return cli.Interrupted(ctx, err, fmt.Sprintf("%d jobs are written, and the rest is missing; with --out it can go on", e.done.Jobs))
	}
	err = errors.Join(err, e.out.Close())
	if err := end(ctx, e.t, cli.ProgressFile(e.file), e.done.Jobs > 0, err, fmt.Sprintf("%d jobs are written to %s", e.done.Jobs, e.file)); err != nil {
		return err
	}
	if e.all != nil {
		return e.reportAll()
	}
	if e.t.JSON {
		return e.t.Out.Line(`{"exported":%d}`, e.done.Jobs)
	}
	return e.t.Out.Line("%s written to %s", cli.JobsOf(e.done.Jobs, ""), e.file)
}

// open opens the file at the place up to which it holds.
func (e *exporter) open() error {
	if e.file == "" {
		e.buffer = bufio.NewWriter(cli.RawWriter{Out: e.t.Out})
		return nil
	}
	query := e.done.Query
	found, err := cli.LoadProgress(cli.ProgressFile(e.file), &e.done)
	if err != nil {
		return err
	}
	if !found {
		e.out, err = os.OpenFile(e.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists; remove it, or give another --out", e.file)
		}
		e.buffer = bufio.NewWriter(e.out)
		return errors.Join(err, cli.SaveProgress(cli.ProgressFile(e.file), e.done))
	}
	if e.done.Query != query {
		return fmt.Errorf("%s is of an export with other flags; remove it and %s to start anew", cli.ProgressFile(e.file), e.file)
	}
	if e.out, err = os.OpenFile(e.file, os.O_WRONLY, 0o600); err != nil {
		return err
	}
	e.t.Notes.Line("going on behind %s, as %s says", cli.JobsOf(e.done.Jobs, ""), cli.ProgressFile(e.file))
	_, err = e.out.Seek(e.done.Size, io.SeekStart)
	e.buffer = bufio.NewWriter(e.out)
	return errors.Join(err, e.out.Truncate(e.done.Size))
}

// countAll finds out about how many jobs there are, for the meter alone.
func (e *exporter) countAll(ctx context.Context, topic string) {
	if !reflect.ValueOf(e.filter).IsZero() {
		return
	}
	var by map[client.State]uint64
	if topic == "" {
		s, _ := e.t.Client.Topics().Stats(ctx)
		by = map[client.State]uint64{client.StateDelayed: s.Delayed, client.StateReady: s.Ready, client.StateReserved: s.Reserved, client.StateDead: s.Dead}
	} else {
		s, _ := e.t.Client.Topics().Get(ctx, topic)
		by = map[client.State]uint64{client.StateDelayed: s.Delayed, client.StateReady: s.Ready, client.StateReserved: s.Reserved, client.StateDead: s.Dead}
	}
	for _, state := range e.states {
		e.total += by[state]
	}
}

// topics exports one topic or all of them, from the one that was under way.
func (e *exporter) topics(ctx context.Context, topic string) error {
	if topic != "" {
		return e.topic(ctx, topic)
	}
	after := e.done.Topic
	if after != "" {
		if err := e.topic(ctx, after); err != nil {
			return err
		}
	}
	for p, err := range e.t.Client.Topics().List(ctx, client.PageOptions{After: after}) {
		if err != nil {
			return err
		}
		if err := e.topic(ctx, p.Name); err != nil {
			return err
		}
	}
	return nil
}

// topic exports the states of a topic, from the page that comes next.
func (e *exporter) topic(ctx context.Context, name string) error {
	first, cursor := 0, ""
	switch {
	case e.done.Topic == name && e.done.State == allStates:
		return nil
	case e.done.Topic == name:
		first, cursor = max(slices.Index(e.states, e.done.State), 0), e.done.Cursor
	}
	for _, state := range e.states[first:] {
		for {
			page, next, err := e.t.Client.JobsPage(ctx, client.ListOptions{Topic: name, State: state, Filter: e.filter, Bodies: true, Page: cli.BatchJobs}, cursor)
			if errors.Is(err, client.ErrIncomplete) {
				e.t.Notes.Line("%s: %v", name, err)
				err = nil
			}
			if err != nil {
				return err
			}
			e.done.Topic, e.done.State, e.done.Cursor = name, state, next
			if next == "" { // a resumed export begins with the next state
				e.done.State = e.after(state)
			}
			if err := e.write(page); err != nil {
				return err
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
	return nil
}

// after is the state that comes behind one.
func (e *exporter) after(state client.State) client.State {
	if i := slices.Index(e.states, state); i+1 < len(e.states) {
		return e.states[i+1]
	}
	return allStates
}

// allStates is the state of an export that has had all states of its topic.
const allStates = "all"

// write appends a page to the file and notes how far it is.
func (e *exporter) write(page []client.Job) error {
	for i := range page {
		var err error
		if e.all == nil {
			err = e.line(lineOf(&page[i]))
		} else {
			err = e.line(e.all.jobLine(&page[i]))
		}
		if err != nil {
			return err
		}
	}
	e.done.Jobs += len(page)
	share := -1.0
	if e.total > 0 {
		share = float64(e.done.Jobs) / float64(e.total)
	}
	e.meter.Show(e.t.Now(), e.done.Jobs, share)
	return e.save()
}

// line writes one line.
func (e *exporter) line(v any) error {
	line, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	n, err := e.buffer.Write(append(line, '\n'))
	e.done.Size += int64(n)
	return err
}

// save makes the lines durable and notes them.
func (e *exporter) save() error {
	if err := e.buffer.Flush(); err != nil || e.file == "" {
		return err
	}
	return errors.Join(e.out.Sync(), cli.SaveProgress(cli.ProgressFile(e.file), e.done))
}

// lineOf is a job as it was added.
func lineOf(j *client.Job) JobLine {
	line := JobLine{
		Topic: j.Topic, ID: j.ID, DueAt: j.DueAt, ExpiresAt: j.ExpiresAt, TTR: j.TTR, Priority: &j.Priority, MaxAttempts: &j.MaxAttempts,
		Headers: j.Headers, PushURL: j.PushURL, Body: j.Body,
	}
	if strings.HasPrefix(j.ID, "$") { // a node gave it
		line.ID = ""
	}
	if j.Backoff != nil {
		line.Backoff = &lineBackoff{*j.Backoff}
	}
	return line
}
