package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/job"
)

const addText = `Adds a job. BODY is its body as text; - reads it from standard input.

With --file it adds many: each line is a JSON object with the members of POST /v1/jobs
(docs/http-api.md), such as {"topic":"mail","id":"m1","delay":30,"body":"hello"}. TOPIC and
--if-exists are for lines without their own. It can be interrupted: FILE.progress says how far
it is, and the same command goes on there. Jobs without an id get one, so that none is added
twice. A line that is refused ends it: correct the line, and run the same command again. --check
calls no node, and names all lines that would be refused; what the node knows, such as whether
an id is taken, it cannot check.`

func addCommand() *cobra.Command {
	c := newCommand("add", "add a job, or those of a file", "[TOPIC] [BODY]", addText, "tarry add mail 'hello' --delay 30s", 0, 2)
	var a addFlags
	var delay duration
	var due, expires instant
	a.register(c)
	c.flags.Lookup("topic").Usage = "`name` of the topic, instead of the argument TOPIC"
	c.flags.StringVarP(&a.ID, "id", "i", "", "`name` of the job, unique while it exists; default: a random one")
	c.flags.VarP(&delay, "delay", "d", "`time` until the job is due, such as 250ms, 30s, 1h30m")
	c.flags.Var(&due, "due-at", "`timestamp` at which the job is due, such as 2030-01-31T12:00:00Z")
	c.flags.Var(&expires, "expires-at", "`timestamp` at which the job is dropped, or dead if its topic says so, unless somebody has it then")
	c.flags.StringVar((*string)(&a.IfExists), "if-exists", "", "`what` to do when the id is taken: conflict, keep, replace, replace_ended or postpone; default conflict")
	var file string
	c.flags.StringVarP(&file, "file", "f", "", "`file` with a job on each line, instead of BODY; - is standard input")
	var check bool
	c.flags.BoolVar(&check, "check", false, "with --file: add nothing, and name each line that no node would take")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if a.Topic == "" && (len(args) == 2 || len(args) == 1 && file != "") {
			a.Topic, args = args[0], args[1:]
		}
		switch {
		case (file == "") == (len(args) == 0):
			return usagef("takes either BODY or --file")
		case len(args) == 2:
			return usagef("takes either TOPIC or --topic")
		case file == "" && a.Topic == "":
			return usagef("TOPIC is missing; it stands before BODY, or is given with --topic")
		case check && file == "":
			return usagef("--check needs --file")
		case file != "":
			if name := c.given("id", "delay", "due-at", "expires-at", "ttr", "priority", "max-attempts", "body-json", "backoff", "header", "push-url"); name != "" {
				return usagef("--%s is for one job; with --file each line has its own", name)
			}
			if check {
				return t.checkFile(ctx, file, jobLine{Topic: a.Topic, IfExists: a.IfExists})
			}
			return t.importFile(ctx, file, jobLine{Topic: a.Topic, IfExists: a.IfExists})
		}
		if delay.d != 0 && !due.t.IsZero() {
			return usagef("--delay and --due-at are both given; give one")
		}
		a.Delay, a.DueAt, a.ExpiresAt = delay.d, due.t, expires.t
		if err := a.fill(t, args[0]); err != nil {
			return err
		}
		added, err := t.client.Add(ctx, a.NewJob)
		if err != nil {
			return err
		}
		return t.printAdded(added)
	})
}

// addFlags are the flags that say what a job is, but not when it is due.
type addFlags struct {
	client.NewJob
	ttr                duration
	priority, attempts number
	asJSON             bool
}

func (a *addFlags) register(c *clientCommand) {
	a.ttr.positive = true
	c.flags.StringVarP(&a.Topic, "topic", "t", "", "`name` of the topic to add to (required)")
	c.flags.Var(&a.ttr, "ttr", "`time` that one reservation lasts; default: the topic's setting, else 60s")
	c.flags.Var(&a.priority, "priority", "`number`, smallest first; default 1024")
	c.flags.Var(&a.attempts, "max-attempts", "`number` of times a job is handed out before it is dead, 0 for no limit; default: the topic's setting, else 16")
	c.flags.BoolVar(&a.asJSON, "body-json", false, "BODY is a JSON value, not plain text")
	c.flags.Func("backoff", backoffHelp, func(text string) (err error) { a.Backoff, err = backoffOf(text); return err })
	c.flags.Func("header", "`name=value` that comes back with each reservation; may be repeated", func(text string) error { return pair(&a.Headers, text) })
	c.flags.StringVar(&a.PushURL, "push-url", "", "`URL` that the job is posted to, in a topic that permits it (tarry topic set --push-job-urls)")
}

// fill completes the job with what the flags say and the argument BODY.
func (a *addFlags) fill(t *terminal, body string) error {
	if a.Topic == "" {
		return usagef("--topic is missing")
	}
	text, err := t.bodyText(body)
	if err != nil {
		return err
	}
	if a.Body = client.Bytes(text); a.asJSON {
		if !jsontext.Value(text).IsValid() {
			return usagef("BODY is not a JSON value, which --body-json says it is")
		}
		a.Body = client.JSON(text)
	}
	a.TTR, a.Priority, a.MaxAttempts = a.ttr.d, a.priority.v, a.attempts.v
	return nil
}

const backoffHelp = "`times` to wait after failed attempts, separated by commas, such as 2m,10m,1h; the last applies to all later ones"

// backoffOf reads a list of times to wait.
func backoffOf(text string) (*client.Backoff, error) {
	b := &client.Backoff{}
	for one := range strings.SplitSeq(text, ",") {
		var wait duration
		if err := wait.Set(one); err != nil {
			return nil, err
		}
		b.Delays = append(b.Delays, client.Duration{Duration: wait.d})
	}
	return b, nil
}

// bodyText gives the argument, or standard input when it is "-".
func (t *terminal) bodyText(arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	text, err := io.ReadAll(io.LimitReader(t.in, job.HardMaxBodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the body from standard input: %w", err)
	}
	if len(text) > job.HardMaxBodyBytes {
		return nil, fmt.Errorf("the body on standard input has more than %d bytes", job.HardMaxBodyBytes)
	}
	return text, nil
}

func (t *terminal) printAdded(a client.Added) error {
	if t.json {
		return t.printJSON(a)
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
	return t.out.line("%s is %s, due %s%s", a.ID, a.State, t.when(a.DueAt), note)
}
