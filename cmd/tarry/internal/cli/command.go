// Package cli is what all commands of tarry are made with: flags and their values, the call of a node,
// output for people and for programs, errors and exit codes, and completion. Start at Command.
package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/client"
)

const (
	defaultAddr = "127.0.0.1:7300"
	AddrEnv     = "TARRY_ADDR"
)

// Command is a command that calls a node, with the flags that all of them have.
type Command struct {
	Cmd   *cobra.Command
	Flags *pflag.FlagSet
	args  string // positional arguments, for messages
	least int    // positional arguments it takes at least
	most  int    // and at most
	topic string // of --topic, where TOPIC is the first of these

	Addr     string
	JSON     bool
	absolute bool
	Patience Duration
	tls      ClientTLS
	token    ClientToken

	Question question // nil: it does not ask
	Sure     *bool    // it need not
	plan     plan     // nil: it has no dry run, or one of its own
	Dry      *bool    // it only says what it would do
}

// Terminal is what a command works with once its command line is read.
type Terminal struct {
	Client *client.Client
	Dial   func(nodes []string, patience time.Duration) (*client.Client, error)
	web    *http.Client              // for what the client has no call for
	sign   func(*http.Request) error // adds the token, if there is one
	Nodes  []string
	In     io.Reader
	Out    Printer
	Notes  NotePrinter
	JSON   bool
	colors bool
	Clock
	// Retries is set when a note has said that a call is tried again.
	Retries *atomic.Bool
}

// action is what a command does with its positional arguments.
type action func(ctx context.Context, t *Terminal, args []string) error

// NewCommand returns a command that takes from least to most positional arguments.
func NewCommand(name, short, args, text, example string, least, most int) *Command {
	c := &Command{args: args, least: least, most: most}
	c.Cmd = &cobra.Command{Use: strings.TrimSpace(name + " " + args), Short: short, Long: text, Example: "  " + example}
	c.Cmd.Args = func(_ *cobra.Command, given []string) error { return c.checkArgs(given) }
	c.Flags = c.Cmd.Flags()
	switch args {
	case "TOPIC", "[TOPIC]", "TOPIC [SETTING...]":
		c.Flags.StringVarP(&c.topic, "topic", "t", "", "`name` of the topic, instead of the argument TOPIC")
	}
	c.Flags.BoolVarP(&c.JSON, "json", "j", false, "print one JSON object per line, for programs")
	c.Flags.BoolVar(&c.absolute, "absolute", false, "print times as timestamps, not relative to now")
	c.AddCallFlags()
	return c
}

// AddCallFlags adds the flags of all that calls a node.
func (c *Command) AddCallFlags() {
	addr := os.Getenv(AddrEnv)
	if addr == "" {
		addr = defaultAddr
	}
	c.Patience.Value = 5 * time.Second
	c.Flags.StringVarP(&c.Addr, "addr", "a", addr, "HTTP addresses of nodes, `host:port,...`; also set by "+AddrEnv)
	c.Flags.Var(&c.Patience, "patience", "`time` to keep retrying when no node responds or can serve, such as 30s")
	c.tls.addTo(c.Flags)
	c.token.addTo(c.Flags)
}

// CommonFlags are the flags of all commands that call a node.
func CommonFlags() *pflag.FlagSet { return NewCommand("", "", "", "", "", 0, 0).Flags }

// Does completes the command with what it does.
func (c *Command) Does(f action) *cobra.Command {
	c.Cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name := c.emptyText(); name != "" {
			return Usagef("--%s is empty; leave it out", name)
		}
		if c.JSON && c.Given("raw") != "" {
			return Usagef("--raw and --json are both given; give one")
		}
		t, err := c.Terminal()
		if err != nil {
			return err
		}
		defer t.Client.Close()
		args = c.withTopic(args)
		if c.plan != nil && *c.Dry {
			return t.printPlan(cmd.Context(), c.plan, args)
		}
		return f(cmd.Context(), t, args)
	}
	return c.Cmd
}

// withTopic puts the value of --topic in the place of the argument TOPIC.
func (c *Command) withTopic(args []string) []string {
	if c.topic == "" {
		return args
	}
	return append([]string{c.topic}, args...)
}

func (c *Command) checkArgs(given []string) error {
	given = c.withTopic(given)
	takes := c.args
	if takes == "" {
		takes = "no arguments"
	}
	switch {
	case len(given) < c.least || len(given) > c.most:
		return Usagef("takes %s; %d given", takes, len(given))
	case slices.Contains(given, "") && !strings.Contains(c.args, "BODY"):
		return Usagef("takes %s; one of them is empty", takes)
	}
	return nil
}

func (c *Command) Terminal() (*Terminal, error) {
	nodes := NodesAt(c.Addr)
	notes := NotePrinter{Printer{c.Cmd.ErrOrStderr()}}
	retries := new(atomic.Bool)
	certificates, err := c.tls.Config()
	if err != nil {
		return nil, err
	}
	dial := func(nodes []string, patience time.Duration) (*client.Client, error) {
		options := append(c.token.Options(), client.WithTLS(certificates), client.WithPatience(patience), client.WithRetrying(func(err error, left time.Duration) {
			if retries.Swap(true) {
				return
			}
			c.Cmd.Annotations = map[string]string{toldAnnotation: Explain(err)}
			notes.Line("%s: %s; trying again for up to %s", c.Path(), Explain(err), left.Round(time.Second))
		}))
		return client.New(nodes, options...)
	}
	cl, err := dial(nodes, c.Patience.Value)
	if err != nil {
		return nil, Usagef("--addr: %w", err)
	}
	return &Terminal{
		Client: cl, Dial: dial, web: webClient(certificates), sign: c.token.sign, Nodes: nodes, In: c.Cmd.InOrStdin(), Out: Printer{c.Cmd.OutOrStdout()}, Notes: notes,
		Retries: retries, JSON: c.JSON, colors: mayColor(c.Cmd.OutOrStdout()), Clock: Clock{time.Now, c.absolute},
	}, nil
}

// NodesAt splits the addresses of --addr.
func NodesAt(addr string) []string {
	return strings.FieldsFunc(addr, func(r rune) bool { return r == ',' || r == ' ' })
}

// toldAnnotation is where a command has the error that a note has told of, so that its end does
// not say the same once more.
const toldAnnotation = "told"

// Path is the command as it was typed, "tarry cluster remove".
func (c *Command) Path() string { return c.Cmd.CommandPath() }

// emptyText is the first flag whose value is an empty text, as that of a script's
// variable is which is not set. It would mean the same as no flag: any state, all
// topics. Flags that may be empty are made with Func.
func (c *Command) emptyText() (first string) {
	c.Flags.Visit(func(f *pflag.Flag) {
		if first == "" && f.Value.Type() == "string" && f.Value.String() == "" {
			first = f.Name
		}
	})
	return first
}

// Given is the first of the flags named that the command line has; empty: none.
func (c *Command) Given(names ...string) (first string) {
	c.Flags.Visit(func(f *pflag.Flag) {
		if first == "" && slices.Contains(names, f.Name) {
			first = f.Name
		}
	})
	return first
}

// Needs rejects the flags named, which would have no effect without other.
func (c *Command) Needs(other string, names ...string) error {
	if name := c.Given(names...); name != "" {
		return Usagef("--%s needs %s", name, other)
	}
	return nil
}

// Explain adds to an error what to do about it, if anything.
func Explain(err error) string {
	var e *client.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return e.Message + "; --tls-ca names a file with the certificate of its authority"
	case e.Status == 0 && e.Code == client.CodeNotApplied:
		return e.Message + "; is the server running? start one with: tarry server"
	case e.Unknown:
		return e.Message + " (the outcome is unknown: it may have been done)"
	default:
		return e.Message
	}
}
