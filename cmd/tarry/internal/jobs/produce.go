// Package jobs has the commands of producers and consumers, and those about many jobs, topics and schedules.
package jobs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/archive"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

const addText = `Adds a job. BODY is its body as text; - reads it from standard input.

With --file it adds many: each line is a JSON object with the members of POST /v1/jobs
(docs/http-reference.md), such as {"topic":"mail","id":"m1","delay":30,"body":"hello"}. TOPIC and
--if-exists are for lines without their own. It can be interrupted: FILE.progress says how far
it is, and the same command goes on there. Jobs without an id get one, so that none is added
twice. A line that is refused ends it: correct the line, and run the same command again. --check
calls no node, and names all lines that would be refused; what the node knows, such as whether
an id is taken, it cannot check.`

func AddCommand() *cobra.Command {
	c := cli.NewCommand("add", "add a job, or those of a file", "[TOPIC] [BODY]", addText, "tarry add mail 'hello' --delay 30s", 0, 2)
	var a addFlags
	var delay cli.Duration
	var due, expires cli.Instant
	a.register(c)
	c.Flags.Lookup("topic").Usage = "`name` of the topic, instead of the argument TOPIC"
	c.Flags.StringVarP(&a.ID, "id", "i", "", "`name` of the job, unique while it exists; default: a random one")
	c.Flags.VarP(&delay, "delay", "d", "`time` until the job is due, such as 250ms, 30s, 1h30m")
	c.Flags.Var(&due, "due-at", "`timestamp` at which the job is due, such as 2030-01-31T12:00:00Z")
	c.Flags.Var(&expires, "expires-at", "`timestamp` at which the job is dropped, or dead if its topic says so, unless somebody has it then")
	c.Flags.StringVar((*string)(&a.IfExists), "if-exists", "", "`what` to do when the id is taken: conflict, keep, replace, replace_ended or postpone; default conflict")
	var file string
	c.Flags.StringVarP(&file, "file", "f", "", "`file` with a job on each line, instead of BODY; - is standard input")
	var check bool
	c.Flags.BoolVar(&check, "check", false, "with --file: add nothing, and name each line that no node would take")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if a.Topic == "" && (len(args) == 2 || len(args) == 1 && file != "") {
			a.Topic, args = args[0], args[1:]
		}
		switch {
		case (file == "") == (len(args) == 0):
			return cli.Usagef("takes either BODY or --file")
		case len(args) == 2:
			return cli.Usagef("takes either TOPIC or --topic")
		case file == "" && a.Topic == "":
			return cli.Usagef("TOPIC is missing; it stands before BODY, or is given with --topic")
		case check && file == "":
			return cli.Usagef("--check needs --file")
		case file != "":
			if name := c.Given("id", "delay", "due-at", "expires-at", "ttr", "priority", "max-attempts", "body-json", "backoff", "header", "push-url"); name != "" {
				return cli.Usagef("--%s is for one job; with --file each line has its own", name)
			}
			if check {
				return archive.CheckFile(ctx, t, file, archive.JobLine{Topic: a.Topic, IfExists: a.IfExists})
			}
			return archive.ImportFile(ctx, t, file, archive.JobLine{Topic: a.Topic, IfExists: a.IfExists})
		}
		if delay.Value != 0 && !due.Time.IsZero() {
			return cli.Usagef("--delay and --due-at are both given; give one")
		}
		a.Delay, a.DueAt, a.ExpiresAt = delay.Value, due.Time, expires.Time
		if err := a.fill(t, args[0]); err != nil {
			return err
		}
		added, err := t.Client.Add(ctx, a.NewJob)
		if err != nil {
			return err
		}
		return printAdded(t, added)
	})
}

// addFlags are the flags that say what a job is, but not when it is due.
type addFlags struct {
	client.NewJob
	ttr                cli.Duration
	priority, attempts cli.Number
	asJSON             bool
}

func (a *addFlags) register(c *cli.Command) {
	a.ttr.Positive = true
	c.Flags.StringVarP(&a.Topic, "topic", "t", "", "`name` of the topic to add to (required)")
	c.Flags.Var(&a.ttr, "ttr", "`time` that one reservation lasts; default: the topic's setting, else 60s")
	c.Flags.Var(&a.priority, "priority", "`number`, smallest first; default 1024")
	c.Flags.Var(&a.attempts, "max-attempts", "`number` of times a job is handed out before it is dead, 0 for no limit; default: the topic's setting, else 16")
	c.Flags.BoolVar(&a.asJSON, "body-json", false, "BODY is a JSON value, not plain text")
	c.Flags.Func("backoff", backoffHelp, func(text string) (err error) { a.Backoff, err = backoffOf(text); return err })
	c.Flags.Func("header", "`name=value` that comes back with each reservation; may be repeated", func(text string) error { return cli.Pair(&a.Headers, text) })
	c.Flags.StringVar(&a.PushURL, "push-url", "", "`URL` that the job is posted to, in a topic that permits it (tarry topic set --push-job-urls)")
}

// fill completes the job with what the flags say and the argument BODY.
func (a *addFlags) fill(t *cli.Terminal, body string) error {
	if a.Topic == "" {
		return cli.Usagef("--topic is missing")
	}
	text, err := bodyText(t, body)
	if err != nil {
		return err
	}
	if a.Body = client.Bytes(text); a.asJSON {
		if !jsontext.Value(text).IsValid() {
			return cli.Usagef("BODY is not a JSON value, which --body-json says it is")
		}
		a.Body = client.JSON(text)
	}
	a.TTR, a.Priority, a.MaxAttempts = a.ttr.Value, a.priority.Value, a.attempts.Value
	return nil
}

const backoffHelp = "`times` to wait after failed attempts, separated by commas, such as 2m,10m,1h; the last applies to all later ones"

// backoffOf reads a list of times to wait.
func backoffOf(text string) (*client.Backoff, error) {
	b := &client.Backoff{}
	for one := range strings.SplitSeq(text, ",") {
		var wait cli.Duration
		if err := wait.Set(one); err != nil {
			return nil, err
		}
		b.Delays = append(b.Delays, client.Duration{Duration: wait.Value})
	}
	return b, nil
}

// bodyText gives the argument, or standard input when it is "-".
func bodyText(t *cli.Terminal, arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	text, err := io.ReadAll(io.LimitReader(t.In, job.HardMaxBodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the body from standard input: %w", err)
	}
	if len(text) > job.HardMaxBodyBytes {
		return nil, fmt.Errorf("the body on standard input has more than %d bytes", job.HardMaxBodyBytes)
	}
	return text, nil
}

func printAdded(t *cli.Terminal, a client.Added) error {
	if t.JSON {
		return t.PrintJSON(a)
	}
	note := ""
	switch {
	case a.Postponed:
		note = " (it was there already and was put off)"
	case a.Ended:
		note = " (it was there already and has ended, so nothing runs; --if-exists replace_ended adds it anew)"
	case a.Existing:
		note = " (it was there already)"
	case a.Replaced:
		note = " (another job gave way)"
	}
	return t.Out.Line("%s is %s, due %s%s", a.ID, a.State, t.When(a.DueAt), note)
}
