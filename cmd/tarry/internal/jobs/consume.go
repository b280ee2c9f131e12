package jobs

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
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func ReserveCommand() *cobra.Command {
	c := cli.NewCommand("reserve", "reserve ready jobs", "TOPIC...", "Reserves ready jobs, waiting for them if asked to. A job that is not finished in its\ntime to run is handed out again.",
		"tarry reserve mail --wait 10s --finish", 0, job.MaxReserveTopics)
	var topics, wait, ttr = new(list), new(cli.Duration), &cli.Duration{Positive: true}
	var most int
	var finish bool
	var consumer string
	raw := c.RawFlag("print the bodies alone, byte for byte; with --max above 1 a newline follows each")
	c.Flags.VarP(topics, "topic", "t", "`name` of a topic to take from, like an argument TOPIC; several: --topic a --topic b")
	c.Flags.IntVarP(&most, "max", "n", 1, "maximum `number` of jobs to take, 1 to 1000")
	c.Flags.VarP(wait, "wait", "w", "`time` to wait for a job, such as 10s; default: do not wait")
	c.Flags.Var(ttr, "ttr", "`time` the reservations last; default: each job's own")
	c.Flags.StringVar(&consumer, "consumer", "", "`name` of the consumer, shown with its jobs and kept in their history")
	c.Flags.BoolVar(&finish, "finish", false, "finish the jobs once they are printed")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		topics.names = append(topics.names, args...)
		if len(topics.names) == 0 {
			return cli.Usagef("TOPIC is missing")
		}
		if most < 1 {
			return cli.Usagef("--max is %d; it takes 1 to 1000", most)
		}
		if wait.Value > 0 {
			defer t.NoteUnready(ctx, c.Path(), wait.Value)()
		}
		jobs, err := t.Client.Reserve(ctx, client.ReserveOptions{Topics: topics.names, Max: most, Wait: wait.Value, TTR: ttr.Value, Consumer: consumer})
		if err != nil {
			return err
		}
		show := func(jobs []client.Reserved) error { return printReserved(t, jobs) }
		if *raw && len(jobs) > 0 {
			show = func(jobs []client.Reserved) error { return printRaw(t, jobs, most > 1) }
		}
		if err := show(jobs); err != nil || !finish {
			return err
		}
		return finishAll(ctx, t, jobs)
	})
}

// list is a flag's value that may be given several times.
type list struct{ names []string }

func (l *list) String() string { return strings.Join(l.names, ", ") }

func (l *list) Type() string { return "list" }

func (l *list) Set(s string) error { l.names = append(l.names, s); return nil }

func printReserved(t *cli.Terminal, jobs []client.Reserved) error {
	if len(jobs) == 0 && !t.JSON {
		t.Notes.Line("no job is ready")
	}
	if len(jobs) == 0 {
		return cli.Exit(cli.ExitNothing)
	}
	head := []string{"ID", "TOKEN", "ATTEMPT", "RESERVED UNTIL", "BODY"}
	row := func(j client.Reserved) []string {
		return []string{j.ID, j.Token, strconv.Itoa(int(j.Attempts)), t.When(j.ReservedUntil), cli.Whole(j.Bytes())}
	}
	if t.JSON || !slices.ContainsFunc(jobs, func(j client.Reserved) bool { return cli.HasLines(j.Bytes()) }) {
		return cli.PrintAll(t, jobs, head, row)
	}
	for _, j := range jobs { // a table each, and the lines of the body below
		if err := errors.Join(t.Table(head[:4], [][]string{row(j)[:4]}), t.Out.Text(j.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// printRaw prints bodies alone.
func printRaw(t *cli.Terminal, jobs []client.Reserved, lines bool) error {
	for _, j := range jobs {
		body := j.Bytes()
		if lines {
			body = append(body[:len(body):len(body)], '\n')
		}
		if err := t.Out.Raw(body); err != nil {
			return err
		}
	}
	return nil
}

func finishAll(ctx context.Context, t *cli.Terminal, jobs []client.Reserved) error {
	if len(jobs) == 0 {
		return nil
	}
	refs := make([]client.Ref, len(jobs))
	for i := range jobs {
		refs[i] = jobs[i].Ref()
	}
	failures, err := t.Client.FinishBatch(ctx, refs)
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
	delay    cli.Duration
	ttr      cli.Duration
	priority cli.Number
	reason   string
	due      cli.Instant
	expires  cli.Instant
	never    bool // it expires no more
	attempts cli.Number
	body     *string
	extras   client.Update // backoff, headers and push URL
	cond     client.Condition
}

func FinishCommand() *cobra.Command {
	return step("finish", "end a job that was worked on", "Ends a job that was worked on.", "tarry finish mail-7 --token 0-12-1", "token", finishStep)
}

func TouchCommand() *cobra.Command {
	return step("touch", "prolong a reservation", "Lets a reservation last longer, counted from now.", "tarry touch mail-7 --ttr 10m", "token ttr", touchStep)
}

func BuryCommand() *cobra.Command {
	return step("bury", "set a reserved job aside", "Sets a reserved job aside until it is kicked.",
		"tarry bury mail-7 --reason 'bad address'", "token priority reason", buryStep)
}

// stepFunc does something to one job.
type stepFunc func(context.Context, *client.Client, client.Ref, *stepFlags) (client.Changed, error)

// step makes a command on one job. takes names the flags that it has.
func step(name, short, text, example, takes string, f stepFunc) *cobra.Command {
	c, s := newStep(name, short, "ID", 1, text, example, takes)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error { return s.one(ctx, t, args[0], f) })
}

// newStep begins a command that takes an ID.
func newStep(name, short, args string, least int, text, example, takes string) (*cli.Command, *stepFlags) {
	most := 1
	if strings.Contains(args, "...") {
		most = math.MaxInt
	}
	c := cli.NewCommand(name, short, args, text, example, least, most)
	s := &stepFlags{ttr: cli.Duration{Positive: true}}
	for _, flag := range strings.Fields(takes) {
		switch flag {
		case "token":
			c.Flags.Func("token", "`token` of the reservation; the command fails if the reservation has expired", cli.Filled(&s.token))
		case "delay":
			c.Flags.VarP(&s.delay, "delay", "d", "`time` until the job is due again; default: by its backoff; 0 is at once")
		case "ttr":
			c.Flags.Var(&s.ttr, "ttr", "`time` that the reservation lasts from now; default: the job's own")
		case "priority":
			c.Flags.Var(&s.priority, "priority", "new priority, a `number`, smallest first; default: unchanged")
		case "reason":
			c.Flags.Func("reason", "`text` that is stored with the job", func(text string) error { s.reason = text; return nil })
		case "due":
			c.Flags.VarP(&s.delay, "delay", "d", "`time` until the job is due, from now; 0 is now")
			c.Flags.Var(&s.due, "due-at", "`timestamp` at which the job is due, such as 2030-01-31T12:00:00Z")
			c.Flags.Func("expires-at", "`timestamp` at which the job is dropped, or dead if its topic says so, unless somebody has it then; never removes it", s.expiry)
		case "ttr-of-job":
			c.Flags.Var(&s.ttr, "ttr", "`time` that one reservation lasts")
		case "attempts":
			c.Flags.Var(&s.attempts, "max-attempts", "`number` of times the job is handed out before it is dead, 0 for no limit")
		case "backoff":
			c.Flags.Func("backoff", backoffHelp+"; none removes it", s.backoff)
		case "headers":
			c.Flags.Func("header", "`name=value`, replaces all headers of the job; may be repeated; none removes them", s.header)
		case "push-url":
			c.Flags.Func("push-url", "`URL` that the job is posted to, instead of the URL of its topic; none removes it", s.pushURL)
		case "body":
			c.Flags.Func("body", "new body, a `text`", func(text string) error { s.body = &text; return nil })
		case "if":
			c.Flags.Func("if-revision", "only if the job has this revision, a `number`", s.ifRevision)
			c.Flags.Func("if-state", "only if the job is in one of these `states`, separated by commas", s.ifState)
		}
	}
	return c, s
}

// one does something to one job.
func (s *stepFlags) one(ctx context.Context, t *cli.Terminal, id string, f stepFunc) error {
	changed, err := f(ctx, t.Client, client.Ref{ID: id, Token: s.token}, s)
	if err != nil {
		return err
	}
	return printChanged(t, changed)
}

func printChanged(t *cli.Terminal, c client.Changed) error {
	if t.JSON {
		return t.PrintJSON(c)
	}
	line := fmt.Sprintf("%s is %s", c.ID, c.State)
	if !c.ReservedUntil.IsZero() {
		line += "; ends " + t.When(c.ReservedUntil)
	} else if c.State == "delayed" {
		line += "; due " + t.When(c.DueAt)
	}
	return t.Out.Line("%s", line)
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
		DueAt: s.due.Time, ExpiresAt: s.expires.Time, NeverExpire: s.never, TTR: s.ttr.Value, Priority: s.priority.Value, MaxAttempts: s.attempts.Value,
		Backoff: s.extras.Backoff, Headers: s.extras.Headers, PushURL: s.extras.PushURL, Condition: s.cond,
	}
	if s.delay.Given {
		u.Delay = &s.delay.Value
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
	return cli.Pair(&s.extras.Headers, text)
}

func (s *stepFlags) pushURL(text string) error {
	if text == "none" {
		text = ""
	}
	s.extras.PushURL = &text
	return nil
}

func (s *stepFlags) ifRevision(text string) error {
	n, err := cli.RevisionOf(text, 32)
	s.cond.IfRevision = uint32(n)
	return err
}

func (s *stepFlags) ifState(text string) error {
	var states string
	err := cli.Filled(&states)(text)
	s.cond.IfState = cli.StatesOf(strings.Split(states, ","))
	return err
}

func touchStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Touch(ctx, ref, s.ttr.Value)
}

func buryStep(ctx context.Context, c *client.Client, ref client.Ref, s *stepFlags) (client.Changed, error) {
	return c.Bury(ctx, ref, client.BuryOptions{Priority: s.priority.Value, Reason: s.reason})
}
