package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
	"tarry/internal/s3"
)

// LocalCommand is a command that works on files of this machine and calls no node.
type LocalCommand struct {
	Cmd   *cobra.Command
	Flags *pflag.FlagSet
	JSON  bool
	Store s3.Access // of backups
	Bases []string  // files of backups

	In    io.Reader
	Out   Printer
	Notes NotePrinter
}

// NewLocal returns a command that takes exactly the positional arguments named.
func NewLocal(name, short, args, text, example string) *LocalCommand {
	c := &LocalCommand{}
	c.Cmd = &cobra.Command{Use: strings.TrimSpace(name + " " + args), Short: short, Long: text, Example: "  " + example}
	c.Cmd.Args = func(_ *cobra.Command, given []string) error {
		if len(given) != len(strings.Fields(args)) {
			takes := args
			if takes == "" {
				takes = "no arguments"
			}
			return Usagef("takes %s; %d given", takes, len(given))
		}
		return nil
	}
	c.Flags = c.Cmd.Flags()
	c.Flags.BoolVarP(&c.JSON, "json", "j", false, "print one JSON object, for programs")
	return c
}

// Does completes the command. Its context ends with SIGINT or SIGTERM.
func (c *LocalCommand) Does(f func(ctx context.Context, args []string) error) *cobra.Command {
	c.Cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.In, c.Out, c.Notes = cmd.InOrStdin(), Printer{cmd.OutOrStdout()}, NotePrinter{Printer{cmd.ErrOrStderr()}}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return f(ctx, args)
	}
	return c.Cmd
}

// UntilSignal returns a context that ends with the first SIGINT or SIGTERM. The next one ends the
// process, which may be waiting for a file.
func UntilSignal(ctx context.Context) (until context.Context, stop func()) {
	until, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(until, stop)
	return until, stop
}

// GoesOn replaces the error of a command whose context a signal has ended, and which goes on where it
// was, by how far it is. Other errors stay, and done is a note.
func (t *Terminal) GoesOn(ctx context.Context, err error, done string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; %s; run the same command again to go on", done)
	}
	t.Notes.Line("%s; run the same command again to go on", done)
	return err
}

// Interrupted replaces the error of a command whose context a signal has ended by what that left.
// Other errors stay, and so does that of a call whose outcome is unknown.
func Interrupted(ctx context.Context, err error, left string) error {
	var failed *client.Error
	if err == nil || ctx.Err() == nil || errors.As(err, &failed) && failed.Unknown {
		return err
	}
	return errors.New("interrupted; " + left)
}

// PrintJSON prints one object.
func (c *LocalCommand) PrintJSON(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return c.Out.Line("%s", text)
}

// ByteSize writes a number of bytes for people.
func ByteSize(n int64) string {
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
