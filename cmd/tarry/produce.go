package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"tarry/client"
	"tarry/job"
)

func runAdd(ctx context.Context, args []string, std streams) int {
	c := newCommand("add", "BODY", "Adds a job. BODY is its text; - reads it from standard input.",
		"tarry add --topic mail --delay 30s 'hello'", 1, 1)
	var a addFlags
	var delay, ttr duration
	var due instant
	var priority, attempts number
	var asJSON bool
	c.flags.StringVar(&a.Topic, "topic", "", "`name` of the topic to add to (required)")
	c.flags.StringVar(&a.ID, "id", "", "`name` of the job, unique while it lives; default: a random one")
	c.flags.Var(&delay, "delay", "`time` until the job is due, such as 250ms, 30s, 1h30m")
	c.flags.Var(&due, "due-at", "`instant` at which the job is due, such as 2030-01-31T12:00:00Z")
	c.flags.Var(&ttr, "ttr", "`time` that one reservation lasts; default as the topic's settings say, else 60s")
	c.flags.Var(&priority, "priority", "`number`, smallest first; default 1024")
	c.flags.Var(&attempts, "max-attempts", "`number` of times the job is handed out before it is dead, 0 for no limit; default as the topic's settings say, else 16")
	c.flags.BoolVar(&asJSON, "body-json", false, "BODY is a JSON value, not plain text")
	c.flags.Func("backoff", backoffHelp, func(text string) (err error) { a.Backoff, err = backoffOf(text); return err })
	c.flags.Func("header", "`name=value` that comes back with each reservation; may be repeated", a.header)
	c.flags.StringVar((*string)(&a.IfExists), "if-exists", "", "`what` to do when the id is taken: conflict, keep, replace or postpone; default conflict")
	return c.run(ctx, args, std, func(ctx context.Context, t *terminal, args []string) error {
		if a.Topic == "" {
			return usagef("--topic is missing")
		}
		if delay.d != 0 && !due.t.IsZero() {
			return usagef("--delay and --due-at are both given; give one")
		}
		a.Delay, a.DueAt, a.TTR, a.Priority, a.MaxAttempts = delay.d, due.t, ttr.d, priority.v, attempts.v
		text, err := t.bodyText(args[0])
		if err != nil {
			return err
		}
		if a.Body = client.Bytes(text); asJSON {
			a.Body = client.JSON(text)
		}
		added, err := t.client.Add(ctx, a.Add)
		if err != nil {
			return err
		}
		return t.printAdded(added)
	})
}

// addFlags are the flags of add that need reading.
type addFlags struct{ client.Add }

const backoffHelp = "`times` to wait after the attempts that failed, separated by commas, such as 2m,10m,1h; the last is for all later ones"

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

func (a *addFlags) header(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q is not of the form name=value", text)
	}
	if a.Headers == nil {
		a.Headers = map[string]string{}
	}
	a.Headers[name] = value
	return nil
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
	case a.Existing:
		note = " (it was there already)"
	case a.Replaced:
		note = " (another job gave way)"
	}
	_, err := fmt.Fprintf(t.out, "%s is %s, due %s%s\n", a.ID, a.State, when(a.DueAt), note)
	return err
}
