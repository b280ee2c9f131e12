package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/job"
)

func reserveCommand() *cobra.Command {
	c := newCommand("reserve", "reserve ready jobs", "TOPIC...", "Reserves ready jobs, waiting for them if asked to. A job that is not finished in its\ntime to run is handed out again.",
		"tarry reserve mail --wait 10s --finish", 0, job.MaxReserveTopics)
	var topics, wait, ttr = new(list), new(duration), &duration{positive: true}
	var most int
	var finish bool
	var consumer string
	raw := c.rawFlag("print the bodies alone, byte for byte; with --max above 1 a newline follows each")
	c.flags.VarP(topics, "topic", "t", "`name` of a topic to take from, like an argument TOPIC; several: --topic a --topic b")
	c.flags.IntVarP(&most, "max", "n", 1, "maximum `number` of jobs to take, 1 to 1000")
	c.flags.VarP(wait, "wait", "w", "`time` to wait for a job, such as 10s; default: do not wait")
	c.flags.Var(ttr, "ttr", "`time` the reservations last; default: each job's own")
	c.flags.StringVar(&consumer, "consumer", "", "`name` of the consumer, shown with its jobs and kept in their history")
	c.flags.BoolVar(&finish, "finish", false, "finish the jobs once they are printed")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		topics.names = append(topics.names, args...)
		if len(topics.names) == 0 {
			return usagef("TOPIC is missing")
		}
		if most < 1 {
			return usagef("--max is %d; it takes 1 to 1000", most)
		}
		if wait.d > 0 {
			defer t.noteUnready(ctx, c.path(), wait.d)()
		}
		jobs, err := t.client.Reserve(ctx, client.ReserveOptions{Topics: topics.names, Max: most, Wait: wait.d, TTR: ttr.d, Consumer: consumer})
		if err != nil {
			return err
		}
		show := t.printReserved
		if *raw && len(jobs) > 0 {
			show = func(jobs []client.Reserved) error { return t.printRaw(jobs, most > 1) }
		}
		if err := show(jobs); err != nil || !finish {
			return err
		}
		return t.finishAll(ctx, jobs)
	})
}

// list is a flag's value that may be given several times.
type list struct{ names []string }

func (l *list) String() string     { return strings.Join(l.names, ", ") }
func (l *list) Type() string       { return "list" }
func (l *list) Set(s string) error { l.names = append(l.names, s); return nil }

func (t *terminal) printReserved(jobs []client.Reserved) error {
	if len(jobs) == 0 && !t.json {
		t.notes.line("no job is ready")
	}
	if len(jobs) == 0 {
		return exit(exitNothing)
	}
	head := []string{"ID", "TOKEN", "ATTEMPT", "RESERVED UNTIL", "BODY"}
	row := func(j client.Reserved) []string {
		return []string{j.ID, j.Token, strconv.Itoa(int(j.Attempts)), t.when(j.ReservedUntil), whole(j.Bytes())}
	}
	if t.json || !slices.ContainsFunc(jobs, func(j client.Reserved) bool { return hasLines(j.Bytes()) }) {
		return printAll(t, jobs, head, row)
	}
	for _, j := range jobs { // a table each, and the lines of the body below
		if err := errors.Join(t.table(head[:4], [][]string{row(j)[:4]}), t.out.text(j.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// printRaw prints bodies alone.
func (t *terminal) printRaw(jobs []client.Reserved, lines bool) error {
	for _, j := range jobs {
		body := j.Bytes()
		if lines {
			body = append(body[:len(body):len(body)], '\n')
		}
		if err := t.out.raw(body); err != nil {
			return err
		}
	}
	return nil
}

func (t *terminal) finishAll(ctx context.Context, jobs []client.Reserved) error {
	if len(jobs) == 0 {
		return nil
	}
	refs := make([]client.Ref, len(jobs))
	for i := range jobs {
		refs[i] = jobs[i].Ref()
	}
	failures, err := t.client.FinishBatch(ctx, refs)
	if err != nil {
		return err
	}
	for i, f := range failures {
		if f != nil {
			failures[i] = fmt.Errorf("finish %s: %w", refs[i].ID, f)
		}
	}
	return errors.Join(failures...)
}

// stepFlags are what the commands on a reserved job take.
type stepFlags struct {
	token    string
	delay    duration
	ttr      duration
	priority number
	reason   string
	due      instant
	expires  instant
	never    bool // it expires no more
	attempts number
	body     *string
	extras   client.Update // backoff, headers and push URL
	cond     client.Condition
}

func finishCommand() *cobra.Command {
	return step("finish", "end a job that was worked on", "Ends a job that was worked on.", "tarry finish mail-7 --token 0-12-1", "token", finishStep)
}

func touchCommand() *cobra.Command {
	return step("touch", "prolong a reservation", "Lets a reservation last longer, counted from now.", "tarry touch mail-7 --ttr 10m", "token ttr", touchStep)
}

func buryCommand() *cobra.Command {
	return step("bury", "set a reserved job aside", "Sets a reserved job aside until it is kicked.",
		"tarry bury mail-7 --reason 'bad address'", "token priority reason", buryStep)
}

// stepFunc does something to one job.
type stepFunc func(context.Context, *client.Client, client.Ref, *stepFlags) (client.Changed, error)

// step makes a command on one job. takes names the flags that it has.
func step(name, short, text, example, takes string, f stepFunc) *cobra.Command {
	c, s := newStep(name, short, "ID", 1, text, example, takes)
	return c.does(func(ctx context.Context, t *terminal, args []string) error { return s.one(ctx, t, args[0], f) })
}

// newStep begins a command that takes an ID.
func newStep(name, short, args string, least int, text, example, takes string) (*clientCommand, *stepFlags) {
	most := 1
	if strings.Contains(args, "...") {
		most = math.MaxInt
	}
	c := newCommand(name, short, args, text, example, least, most)
	s := &stepFlags{ttr: duration{positive: true}}
	for _, flag := range strings.Fields(takes) {
		switch flag {
		case "token":
			c.flags.Func("token", "`token` of the reservation; the command fails if the reservation has expired", filled(&s.token))
		case "delay":
			c.flags.VarP(&s.delay, "delay", "d", "`time` until the job is due again; default: by its backoff; 0 is at once")
		case "ttr":
			c.flags.Var(&s.ttr, "ttr", "`time` that the reservation lasts from now; default: the job's own")
		case "priority":
			c.flags.Var(&s.priority, "priority", "new priority, a `number`, smallest first; default: unchanged")
		case "reason":
			c.flags.Func("reason", "`text` that is stored with the job", func(text string) error { s.reason = text; return nil })
		case "due":
			c.flags.VarP(&s.delay, "delay", "d", "`time` until the job is due, from now; 0 is now")
			c.flags.Var(&s.due, "due-at", "`timestamp` at which the job is due, such as 2030-01-31T12:00:00Z")
			c.flags.Func("expires-at", "`timestamp` at which the job is dropped, or dead if its topic says so, unless somebody has it then; never removes it", s.expiry)
		case "ttr-of-job":
			c.flags.Var(&s.ttr, "ttr", "`time` that one reservation lasts")
		case "attempts":
			c.flags.Var(&s.attempts, "max-attempts", "`number` of times the job is handed out before it is dead, 0 for no limit")
		case "backoff":
			c.flags.Func("backoff", backoffHelp+"; none removes it", s.backoff)
		case "headers":
			c.flags.Func("header", "`name=value`, replaces all headers of the job; may be repeated; none removes them", s.header)
		case "push-url":
			c.flags.Func("push-url", "`URL` that the job is posted to, instead of the URL of its topic; none removes it", s.pushURL)
		case "body":
			c.flags.Func("body", "new body, a `text`", func(text string) error { s.body = &text; return nil })
		case "if":
			c.flags.Func("if-revision", "only if the job has this revision, a `number`", s.ifRevision)
			c.flags.Func("if-state", "only if the job is in one of these `states`, separated by commas", s.ifState)
		}
	}
	return c, s
}

// one does something to one job.
func (s *stepFlags) one(ctx context.Context, t *terminal, id string, f stepFunc) error {
	changed, err := f(ctx, t.client, client.Ref{ID: id, Token: s.token}, s)
	if err != nil {
		return err
	}
	return t.printChanged(changed)
}

func (t *terminal) printChanged(c client.Changed) error {
	if t.json {
		return t.printJSON(c)
	}
	line := fmt.Sprintf("%s is %s", c.ID, c.State)
	if !c.ReservedUntil.IsZero() {
		line += "; ends " + t.when(c.ReservedUntil)
	} else if c.State == "delayed" {
		line += "; due " + t.when(c.DueAt)
	}
	return t.out.line("%s", line)
}

// gone is what is left of a job that was finished or deleted.
func gone(ref client.Ref, err error) (client.Changed, error) {
	return client.Changed{ID: ref.ID, State: "gone"}, err
}

func finishStep(ctx context.Context, c *client.Client, ref client.Ref, _ *stepFlags) (client.Changed, error) {
	return gone(ref, c.Finish(ctx, ref))
}

func deleteStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return gone(ref, c.DeleteIf(ctx, ref, s.cond))
}

func updateStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Update(ctx, ref.ID, s.update())
}

// expiry reads --expires-at.
func (s *stepFlags) expiry(text string) error {
	if s.never = text == "never"; s.never {
		return nil
	}
	return s.expires.Set(text)
}

// update is what the flags say is to change.
func (s *stepFlags) update() client.Update {
	u := client.Update{
		DueAt: s.due.t, ExpiresAt: s.expires.t, NeverExpire: s.never, TTR: s.ttr.d, Priority: s.priority.v, MaxAttempts: s.attempts.v,
		Backoff: s.extras.Backoff, Headers: s.extras.Headers, PushURL: s.extras.PushURL, Condition: s.cond,
	}
	if s.delay.set {
		u.Delay = &s.delay.d
	}
	if s.body != nil {
		u.Body = new(client.Text(*s.body))
	}
	return u
}

func (s *stepFlags) backoff(text string) error {
	if text == "none" {
		s.extras.Backoff = &client.Backoff{}
		return nil
	}
	var err error
	s.extras.Backoff, err = backoffOf(text)
	return err
}

func (s *stepFlags) header(text string) error {
	if text == "none" {
		s.extras.Headers = map[string]string{}
		return nil
	}
	return pair(&s.extras.Headers, text)
}

func (s *stepFlags) pushURL(text string) error {
	if text == "none" {
		text = ""
	}
	s.extras.PushURL = &text
	return nil
}

func (s *stepFlags) ifRevision(text string) error {
	n, err := revisionOf(text, 32)
	s.cond.IfRevision = uint32(n)
	return err
}

func statesOf(names []string) (states []client.State) {
	for _, name := range names {
		states = append(states, client.State(name))
	}
	return states
}

func (s *stepFlags) ifState(text string) error {
	var states string
	err := filled(&states)(text)
	s.cond.IfState = statesOf(strings.Split(states, ","))
	return err
}

func touchStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Touch(ctx, ref, s.ttr.d)
}

func buryStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Bury(ctx, ref, client.BuryOptions{Priority: s.priority.v, Reason: s.reason})
}
