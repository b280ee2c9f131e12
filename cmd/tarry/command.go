package main

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
	addrEnv     = "TARRY_ADDR"
)

// clientCommand is a command that calls a node, with the flags that all of them have.
type clientCommand struct {
	cmd   *cobra.Command
	flags *pflag.FlagSet
	args  string // positional arguments, for messages
	least int    // positional arguments it takes at least
	most  int    // and at most
	topic string // of --topic, where TOPIC is the first of these

	addr     string
	json     bool
	absolute bool
	patience duration
	tls      clientTLS
	token    clientToken

	question question // nil: it does not ask
	sure     *bool    // it need not
	plan     plan     // nil: it has no dry run, or one of its own
	dry      *bool    // it only says what it would do
}

// terminal is what a command works with once its command line is read.
type terminal struct {
	client *client.Client
	dial   func(nodes []string, patience time.Duration) (*client.Client, error)
	web    *http.Client              // for what the client has no call for
	sign   func(*http.Request) error // adds the token, if there is one
	nodes  []string
	in     io.Reader
	out    printer
	notes  notePrinter
	json   bool
	colors bool
	clock
	// retries is set when a note has said that a call is tried again.
	retries *atomic.Bool
}

// action is what a command does with its positional arguments.
type action func(ctx context.Context, t *terminal, args []string) error

// newCommand returns a command that takes from least to most positional arguments.
func newCommand(name, short, args, text, example string, least, most int) *clientCommand {
	c := &clientCommand{args: args, least: least, most: most}
	c.cmd = &cobra.Command{Use: strings.TrimSpace(name + " " + args), Short: short, Long: text, Example: "  " + example}
	c.cmd.Args = func(_ *cobra.Command, given []string) error { return c.checkArgs(given) }
	c.flags = c.cmd.Flags()
	switch args {
	case "TOPIC", "[TOPIC]", "TOPIC [SETTING...]":
		c.flags.StringVarP(&c.topic, "topic", "t", "", "`name` of the topic, instead of the argument TOPIC")
	}
	c.flags.BoolVarP(&c.json, "json", "j", false, "print one JSON object per line, for programs")
	c.flags.BoolVar(&c.absolute, "absolute", false, "print times as timestamps, not relative to now")
	c.addCallFlags()
	return c
}

// addCallFlags adds the flags of all that calls a node.
func (c *clientCommand) addCallFlags() {
	addr := os.Getenv(addrEnv)
	if addr == "" {
		addr = defaultAddr
	}
	c.patience.d = 5 * time.Second
	c.flags.StringVarP(&c.addr, "addr", "a", addr, "HTTP addresses of nodes, `host:port,...`; also set by "+addrEnv)
	c.flags.Var(&c.patience, "patience", "`time` to keep retrying when no node responds or can serve, such as 30s")
	c.tls.addTo(c.flags)
	c.token.addTo(c.flags)
}

// commonFlags are the flags of all commands that call a node.
func commonFlags() *pflag.FlagSet { return newCommand("", "", "", "", "", 0, 0).flags }

// does completes the command with what it does.
func (c *clientCommand) does(f action) *cobra.Command {
	c.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name := c.emptyText(); name != "" {
			return usagef("--%s is empty; leave it out", name)
		}
		if c.json && c.given("raw") != "" {
			return usagef("--raw and --json are both given; give one")
		}
		t, err := c.terminal()
		if err != nil {
			return err
		}
		defer t.client.Close()
		args = c.withTopic(args)
		if c.plan != nil && *c.dry {
			return t.printPlan(cmd.Context(), c.plan, args)
		}
		return f(cmd.Context(), t, args)
	}
	return c.cmd
}

// withTopic puts the value of --topic in the place of the argument TOPIC.
func (c *clientCommand) withTopic(args []string) []string {
	if c.topic == "" {
		return args
	}
	return append([]string{c.topic}, args...)
}

func (c *clientCommand) checkArgs(given []string) error {
	given = c.withTopic(given)
	takes := c.args
	if takes == "" {
		takes = "no arguments"
	}
	switch {
	case len(given) < c.least || len(given) > c.most:
		return usagef("takes %s; %d given", takes, len(given))
	case slices.Contains(given, "") && !strings.Contains(c.args, "BODY"):
		return usagef("takes %s; one of them is empty", takes)
	}
	return nil
}

func (c *clientCommand) terminal() (*terminal, error) {
	nodes := nodesAt(c.addr)
	notes := notePrinter{printer{c.cmd.ErrOrStderr()}}
	retries := new(atomic.Bool)
	certificates, err := c.tls.config()
	if err != nil {
		return nil, err
	}
	dial := func(nodes []string, patience time.Duration) (*client.Client, error) {
		options := append(c.token.options(), client.WithTLS(certificates), client.WithPatience(patience), client.WithRetrying(func(err error, left time.Duration) {
			if retries.Swap(true) {
				return
			}
			c.cmd.Annotations = map[string]string{toldAnnotation: explain(err)}
			notes.line("%s: %s; trying again for up to %s", c.path(), explain(err), left.Round(time.Second))
		}))
		return client.New(nodes, options...)
	}
	cl, err := dial(nodes, c.patience.d)
	if err != nil {
		return nil, usagef("--addr: %w", err)
	}
	return &terminal{
		client: cl, dial: dial, web: webClient(certificates), sign: c.token.sign, nodes: nodes, in: c.cmd.InOrStdin(), out: printer{c.cmd.OutOrStdout()}, notes: notes,
		retries: retries, json: c.json, colors: mayColor(c.cmd.OutOrStdout()), clock: clock{time.Now, c.absolute},
	}, nil
}

// nodesAt splits the addresses of --addr.
func nodesAt(addr string) []string {
	return strings.FieldsFunc(addr, func(r rune) bool { return r == ',' || r == ' ' })
}

// toldAnnotation is where a command has the error that a note has told of, so that its end does
// not say the same once more.
const toldAnnotation = "told"

// path is the command as it was typed, "tarry cluster remove".
func (c *clientCommand) path() string { return c.cmd.CommandPath() }

// emptyText is the first flag whose value is an empty text, as that of a script's
// variable is which is not set. It would mean the same as no flag: any state, all
// topics. Flags that may be empty are made with Func.
func (c *clientCommand) emptyText() (first string) {
	c.flags.Visit(func(f *pflag.Flag) {
		if first == "" && f.Value.Type() == "string" && f.Value.String() == "" {
			first = f.Name
		}
	})
	return first
}

// given is the first of the flags named that the command line has; empty: none.
func (c *clientCommand) given(names ...string) (first string) {
	c.flags.Visit(func(f *pflag.Flag) {
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

// explain adds to an error what to do about it, if anything.
func explain(err error) string {
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
