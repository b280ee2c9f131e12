package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"tarry/client"
)

// onTerminal reports whether a person is at the other end of a standard stream.
func onTerminal(stream any) bool {
	if s, ok := stream.(interface{ IsTerminal() bool }); ok {
		return s.IsTerminal()
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// question is what a command asks before it does what cannot be undone.
type question func(ctx context.Context, t *terminal, args []string) (string, error)

// yesFlag adds --yes, with which a command does not ask.
func (c *clientCommand) yesFlag() *bool {
	return c.flags.BoolP("yes", "y", false, "do not ask; needed when standard input is not a terminal")
}

// asks makes an operator's command ask, and say what it would do.
func (c *clientCommand) asks(q question) {
	c.question, c.sure = q, c.yesFlag()
	c.dry = c.flags.Bool("dry-run", false, "print the question, and change nothing")
}

// printQuestion prints what a command would ask.
func (t *terminal) printQuestion(ctx context.Context, ask question, args []string) error {
	text, err := ask(ctx, t, args)
	switch {
	case err != nil:
		return err
	case t.json:
		return t.printJSON(struct {
			DryRun   bool   `json:"dry_run"`
			Question string `json:"question"`
		}{true, text})
	}
	return t.out.line("it would ask: %s Nothing was done.", text)
}

// confirm asks for a yes. Without a terminal nobody could give it, so the command is
// refused: a script says --yes.
func (t *terminal) confirm(ctx context.Context, yes bool, ask question, args []string) error {
	if yes {
		return nil
	}
	if !onTerminal(t.in) {
		return usagef("asks before it does this, and standard input is not a terminal: say --yes. Nothing was done")
	}
	text, err := ask(ctx, t, args)
	if err != nil {
		return err
	}
	if err := t.notes.prompt(text + " [y/N] "); err != nil {
		return err
	}
	answer, _ := bufio.NewReader(t.in).ReadString('\n') // no answer is no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		t.notes.line("nothing was done")
		return exit(exitUsage)
	}
	return nil
}

// prompt prints a question, behind which the answer is typed.
func (p printer) prompt(text string) error {
	_, err := p.to.Write([]byte(harmless(text, "")))
	return err
}

// liveStates are the states of all jobs but those that a topic only retains.
var liveStates = []client.State{client.StateDelayed, client.StateReady, client.StateReserved, client.StateDead}

// jobsOf writes a number of jobs, "1 dead job".
func jobsOf(n int, state client.State) string {
	if n == 1 {
		return strings.Join(strings.Fields("1 "+string(state)+" job"), " ")
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%d %s jobs", n, state)), " ")
}
