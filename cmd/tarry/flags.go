package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tarry/client"
)

const (
	defaultAddr = "127.0.0.1:7300"
	addrEnv     = "TARRY_ADDR"
)

// clientCommand is the common part of the commands that call a node: their flags, help
// and exit codes.
type clientCommand struct {
	flags   *flag.FlagSet
	name    string // as typed, "cluster remove"
	args    string // positional arguments, for the help
	text    string // what the command does
	example string
	least   int // positional arguments it takes at least
	most    int // and at most

	addr     string
	json     bool
	patience duration
}

// terminal is what a command works with once its command line is read.
type terminal struct {
	client *client.Client
	nodes  []string
	in     io.Reader
	out    printer
	notes  printer // for people, beside the output
	json   bool
	// retries is set when a note has said that a call is tried again.
	retries *atomic.Bool
}

// usageError is the error of an invalid command line.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// newCommand returns a command that takes from least to most positional arguments.
func newCommand(name, args, text, example string, least, most int) *clientCommand {
	c := &clientCommand{name: name, args: args, text: text, example: example, least: least, most: most}
	c.flags = flag.NewFlagSet("tarry "+name, flag.ContinueOnError)
	c.flags.SetOutput(io.Discard)
	addr := os.Getenv(addrEnv)
	if addr == "" {
		addr = defaultAddr
	}
	c.patience.d = 5 * time.Second
	c.flags.StringVar(&c.addr, "addr", addr, "HTTP addresses of nodes, `host:port,...`; also set by "+addrEnv)
	c.flags.BoolVar(&c.json, "json", false, "print one JSON object per line, for programs")
	c.flags.Var(&c.patience, "patience", "`time` to keep retrying when no node responds or can serve, such as 30s")
	return c
}

// run reads the command line, calls f and turns its error into an exit code.
func (c *clientCommand) run(ctx context.Context, args []string, std streams, f func(context.Context, *terminal, []string) error) int {
	positional, err := c.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(std.out)
		return exitOK
	case err == nil && (len(positional) < c.least || len(positional) > c.most):
		err = usagef("takes %s; %d given", c.takes(), len(positional))
	case err == nil && slices.Contains(positional, "") && !strings.HasSuffix(c.args, "BODY"):
		err = usagef("takes %s; one of them is empty", c.takes())
	}
	var t *terminal
	if err == nil {
		t, err = c.terminal(std)
	}
	if err != nil {
		printer{std.err}.line("tarry %s: %v; see tarry %s --help", c.name, err, c.name)
		return exitUsage
	}
	defer t.client.Close()
	err = f(ctx, t, positional)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		printer{std.err}.line("tarry %s: %v; see tarry %s --help", c.name, err, c.name)
		return exitUsage
	default:
		printer{std.err}.line("tarry %s: %s", c.name, explain(err))
		return exitFailed
	}
}

func (c *clientCommand) takes() string {
	if c.args == "" {
		return "no arguments"
	}
	return c.args
}

func (c *clientCommand) terminal(std streams) (*terminal, error) {
	nodes := strings.FieldsFunc(c.addr, func(r rune) bool { return r == ',' || r == ' ' })
	notes := printer{std.err}
	retries := new(atomic.Bool)
	cl, err := client.New(nodes, client.WithPatience(c.patience.d), client.WithRetrying(func(err error, left time.Duration) {
		retries.Store(true)
		notes.line("tarry %s: %s; trying again for up to %s", c.name, explain(err), left.Round(time.Second))
	}))
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	return &terminal{client: cl, nodes: nodes, in: std.in, out: printer{std.out}, notes: notes, retries: retries, json: c.json}, nil
}

// parse reads flags before, between and behind the positional arguments, which
// the flag package alone does not. Everything behind -- is positional.
func (c *clientCommand) parse(args []string) (positional []string, err error) {
	for len(args) > 0 {
		if err := c.flags.Parse(args); err != nil {
			return nil, err
		}
		if name := c.emptyText(); name != "" {
			return nil, usagef("--%s is empty; leave it out", name)
		}
		rest := c.flags.Args()
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(positional, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		positional = append(positional, rest[0])
		args = rest[1:]
	}
	return positional, nil
}

// emptyText is the first flag whose value is an empty text, as that of a script's
// variable is which is not set. It would mean the same as no flag: any state, all
// topics. Flags that may be empty are made with Func.
func (c *clientCommand) emptyText() (first string) {
	c.flags.Visit(func(f *flag.Flag) {
		value, known := f.Value.(flag.Getter)
		if known && value.Get() == "" && first == "" {
			first = f.Name
		}
	})
	return first
}

// given is the first of the flags named that the command line has; empty: none.
func (c *clientCommand) given(names ...string) (first string) {
	c.flags.Visit(func(f *flag.Flag) {
		if first == "" && slices.Contains(names, f.Name) {
			first = f.Name
		}
	})
	return first
}

// needs rejects the flags named, which would have no effect without other.
func (c *clientCommand) needs(other string, names ...string) error {
	if name := c.given(names...); name != "" {
		return usagef("--%s needs %s", name, other)
	}
	return nil
}

func (c *clientCommand) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: tarry %s [flags]", c.name)
	if c.args != "" {
		fmt.Fprintf(w, " %s", c.args)
	}
	fmt.Fprintf(w, "\n\n%s\n\nExample:\n  %s\n\nFlags:\n", c.text, c.example)
	printFlags(w, c.flags)
}

// printFlags explains flags, one a line. A default that is nothing is not shown.
func printFlags(w io.Writer, flags *flag.FlagSet) {
	var heads, texts []string
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if !slices.Contains([]string{"", "false", "0"}, f.DefValue) {
			text += " (default " + f.DefValue + ")"
		}
		heads, texts = append(heads, strings.TrimSpace("--"+f.Name+" "+value)), append(texts, text)
	})
	width := 0
	for _, head := range heads {
		width = max(width, len(head))
	}
	for i, head := range heads {
		fmt.Fprintf(w, "  %-*s  %s\n", width, head, texts[i])
	}
}

// readFlags reads a command line of flags alone. When it asks for help, that is
// usage and the flags, printed to out, and the error is flag.ErrHelp.
func readFlags(flags *flag.FlagSet, args []string, usage string, out io.Writer) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		printFlags(out, flags)
	case err == nil && flags.NArg() > 0:
		return fmt.Errorf("takes flags only, not %q", flags.Arg(0))
	}
	return err
}

// explain adds to an error what to do about it, if anything.
func explain(err error) string {
	var e *client.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch {
	case e.Status == 0 && e.Code == client.CodeNotApplied:
		return e.Message + "; is the server running? start one with: tarry server"
	case e.Unknown:
		return e.Message + " (the outcome is unknown: it may have been done)"
	default:
		return e.Message
	}
}
