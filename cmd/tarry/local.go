package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
	"tarry/cluster/recovery"
	"tarry/internal/s3"
)

// localCommand is a command that works on files of this machine and calls no node.
type localCommand struct {
	cmd   *cobra.Command
	flags *pflag.FlagSet
	json  bool
	store s3.Access // of backups
	bases []string  // files of backups

	in    io.Reader
	out   printer
	notes notePrinter
}

// newLocal returns a command that takes exactly the positional arguments named.
func newLocal(name, short, args, text, example string) *localCommand {
	c := &localCommand{}
	c.cmd = &cobra.Command{Use: strings.TrimSpace(name + " " + args), Short: short, Long: text, Example: "  " + example}
	c.cmd.Args = func(_ *cobra.Command, given []string) error {
		if len(given) != len(strings.Fields(args)) {
			takes := args
			if takes == "" {
				takes = "no arguments"
			}
			return usagef("takes %s; %d given", takes, len(given))
		}
		return nil
	}
	c.flags = c.cmd.Flags()
	c.flags.BoolVarP(&c.json, "json", "j", false, "print one JSON object, for programs")
	return c
}

// does completes the command. Its context ends with SIGINT or SIGTERM.
func (c *localCommand) does(f func(ctx context.Context, args []string) error) *cobra.Command {
	c.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.in, c.out, c.notes = cmd.InOrStdin(), printer{cmd.OutOrStdout()}, notePrinter{printer{cmd.ErrOrStderr()}}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return f(ctx, args)
	}
	return c.cmd
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The next one ends the
// process, which may be waiting for a file.
func untilSignal(ctx context.Context) (until context.Context, stop func()) {
	until, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(until, stop)
	return until, stop
}

// goesOn replaces the error of a command whose context a signal has ended, and which goes on where it
// was, by how far it is. Other errors stay, and done is a note.
func (t *terminal) goesOn(ctx context.Context, err error, done string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; %s; run the same command again to go on", done)
	}
	t.notes.line("%s; run the same command again to go on", done)
	return err
}

// interrupted replaces the error of a command whose context a signal has ended by what that left.
// Other errors stay, and so does that of a call whose outcome is unknown.
func interrupted(ctx context.Context, err error, left string) error {
	var failed *client.Error
	if err == nil || ctx.Err() == nil || errors.As(err, &failed) && failed.Unknown {
		return err
	}
	return errors.New("interrupted; " + left)
}

// printJSON prints one object.
func (c *localCommand) printJSON(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return c.out.line("%s", text)
}

// byteMeter shows how many bytes of a known number are done: on a line that changes for a
// person at a terminal, else on a line every ten seconds.
type byteMeter struct {
	notes notePrinter
	what  string
	total int64
	began time.Time
	last  time.Time
	shown bool
}

// lineEvery is how often a log gets a line of progress.
const lineEvery = 10 * time.Second

func newByteMeter(notes notePrinter, what string, total int64) *byteMeter {
	now := time.Now()
	return &byteMeter{notes: notes, what: what, total: total, began: now, last: now}
}

// progress returns what shows how far a backup is read, and then its records checked.
func (m *byteMeter) progress() recovery.Progress {
	return recovery.Progress{Read: m.show, Checked: m.records("checked"), Hashed: m.records("hashed")}
}

// show tells how many bytes are done.
func (m *byteMeter) show(done int64) {
	m.say(func() string {
		share := 100.0
		if m.total > 0 {
			share = 100 * float64(done) / float64(m.total)
		}
		rate := byteSize(int64(float64(done) / max(time.Since(m.began).Seconds(), 0.001)))
		return fmt.Sprintf("%s: %s of %s, %.0f%%, %s/s", m.what, byteSize(done), byteSize(m.total), share, rate)
	})
}

// records returns what tells how many records something was done with.
func (m *byteMeter) records(done string) func(uint64) {
	return func(n uint64) {
		m.say(func() string { return fmt.Sprintf("%s: %s records are %s", m.what, count(n), done) })
	}
}

// say writes a line if it is time for one.
func (m *byteMeter) say(line func() string) {
	now := time.Now()
	w, _ := m.notes.to.(*harmlessWriter)
	every := lineEvery
	if w != nil && w.terminal {
		every = meterEvery
	}
	if now.Sub(m.last) < every {
		return
	}
	m.last = now
	text := line()
	if w == nil || !w.terminal {
		m.notes.line("%s", text)
		return
	}
	m.shown = true
	_ = w.asIs([]byte("\r\x1b[K" + text))
}

// end removes the line.
func (m *byteMeter) end() {
	if w, ok := m.notes.to.(*harmlessWriter); ok && m.shown {
		_ = w.asIs([]byte("\r\x1b[K"))
	}
}

// byteSize writes a number of bytes for people.
func byteSize(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n) / 1024
	for len(units) > 1 && v >= 1024 {
		v, units = v/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}
