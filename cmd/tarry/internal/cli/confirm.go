package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"tarry/client"
)

// OnTerminal reports whether a person is at the other end of a standard stream.
func OnTerminal(stream any) bool {
	if s, ok := stream.(interface{ IsTerminal() bool }); ok {
		return s.IsTerminal()
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// question is what a command asks before it does what cannot be undone.
type question func(ctx context.Context, t *Terminal, args []string) (string, error)

// YesFlag adds --yes, with which a command does not ask.
func (c *Command) YesFlag() *bool {
	return c.Flags.BoolP("yes", "y", false, "do not ask; needed when standard input is not a terminal")
}

// Asks makes an operator's command ask, and say what it would do.
func (c *Command) Asks(q question) {
	c.Question, c.Sure = q, c.YesFlag()
	c.Dry = c.Flags.Bool("dry-run", false, "print the question, and change nothing")
}

// PrintQuestion prints what a command would ask.
func (t *Terminal) PrintQuestion(ctx context.Context, ask question, args []string) error {
	text, err := ask(ctx, t, args)
	switch {
	case err != nil:
		return err
	case t.JSON:
		return t.PrintJSON(struct {
			DryRun   bool   `json:"dry_run"`
			Question string `json:"question"`
		}{true, text})
	}
	return t.Out.Line("it would ask: %s Nothing was done.", text)
}

// Confirm asks for a yes. Without a terminal nobody could give it, so the command is
// refused: a script says --yes.
func (t *Terminal) Confirm(ctx context.Context, yes bool, ask question, args []string) error {
	if yes {
		return nil
	}
	if !OnTerminal(t.In) {
		return Usagef("asks before it does this, and standard input is not a terminal: say --yes. Nothing was done")
	}
	text, err := ask(ctx, t, args)
	if err != nil {
		return err
	}
	if err := t.Notes.prompt(text + " [y/N] "); err != nil {
		return err
	}
	answer, _ := bufio.NewReader(t.In).ReadString('\n') // no answer is no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		t.Notes.Line("nothing was done")
		return Exit(ExitUsage)
	}
	return nil
}

// prompt prints a question, behind which the answer is typed.
func (p Printer) prompt(text string) error {
	_, err := p.To.Write([]byte(Harmless(text, "")))
	return err
}

// JobsOf writes a number of jobs, "1 dead job".
func JobsOf(n int, state client.State) string {
	if n == 1 {
		return strings.Join(strings.Fields("1 "+string(state)+" job"), " ")
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%d %s jobs", n, state)), " ")
}

// plan says what a command would do; it changes nothing.
type plan func(ctx context.Context, t *Terminal, args []string) (string, error)

// Plans adds --dry-run, with which the command prints its plan instead of doing it.
func (c *Command) Plans(p plan) {
	c.plan, c.Dry = p, c.Flags.Bool("dry-run", false, "say what would be done, and change nothing")
}

// printPlan prints what a command would do.
func (t *Terminal) printPlan(ctx context.Context, p plan, args []string) error {
	text, err := p(ctx, t, args)
	if err != nil {
		return err
	}
	if t.JSON {
		return t.PrintJSON(struct {
			DryRun bool   `json:"dry_run"`
			Plan   string `json:"plan"`
		}{true, text})
	}
	return t.Out.Line("nothing was done: %s", text)
}
