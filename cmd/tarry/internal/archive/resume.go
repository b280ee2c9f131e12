package archive

import (
	"context"
	"fmt"
	"os"
	"strings"

	"tarry/cmd/tarry/internal/cli"
)

// goOn reads up to the place where an interrupted command was. note is the file that says so, and verb
// what the command does.
func goOn(t *cli.Terminal, in *lineReader, place linePlace, file, note, verb string) error {
	if place.Line == 0 {
		return nil
	}
	same, err := in.skipTo(place)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%s is of another %s; remove it to %s this file from its first line", note, file, verb)
	}
	t.Notes.Line("going on behind line %d, as %s says", place.Line, note)
	return nil
}

// end removes the note of a command that has done all. One that has done a part says so, and how to go on.
func end(ctx context.Context, t *cli.Terminal, note string, part bool, err error, done string) error {
	switch {
	case err == nil:
		return os.Remove(note)
	case part || ctx.Err() != nil:
		return t.GoesOn(ctx, err, done)
	}
	return err
}

// refusals are the jobs of a batch that a node refused.
type refusals struct {
	first error
	n     int
}

// add names the line of a job, unless many were named. at is its place in the batch.
func (r *refusals) add(t *cli.Terminal, line, at int, err error) {
	if r.n++; r.n <= cli.ShownFaults {
		t.Notes.Line("line %d: %s", line, strings.TrimPrefix(cli.Explain(err), fmt.Sprintf("jobs[%d]: ", at)))
	}
	if r.first == nil {
		r.first = err
	}
}

// end returns how the command ends because of them; nil: there are none.
func (r *refusals) end(t *cli.Terminal, lines []int) error {
	if r.first == nil {
		return nil
	}
	t.Notes.Line("%d of the lines %d to %d were refused", r.n, lines[0], lines[len(lines)-1])
	return cli.Exit(cli.ExitCode(r.first))
}
