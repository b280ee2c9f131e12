package ops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func TokenCommand() *cobra.Command {
	return cli.Group("token", "create, list, show, rotate, revoke tokens of clients", "Makes and shows the tokens of clients, and what they allow (docs/tokens.md).",
		tokenCreateCommand(), tokenListCommand(), tokenShowCommand(), tokenRotateCommand(), tokenRevokeCommand())
}

// ruleHelp is the help of a flag with a rule.
const ruleHelp = "`TOPICS=VERBS`: what is allowed, such as billing.*,mail=add,consume; TOPICS are names, or prefixes with a * behind them, VERBS some of add, consume, read, manage, push, observe, operate, admin; it may be given several times"

// parseRule reads a rule: topics and verbs, each in a list.
func parseRule(text string) (client.Rule, error) {
	topics, verbs, found := strings.Cut(text, "=")
	if !found || verbs == "" {
		return client.Rule{}, fmt.Errorf("it takes topics=verbs, such as billing.*=add,consume")
	}
	return client.Rule{Topics: splitList(topics), Verbs: splitList(verbs)}, nil
}

func splitList(text string) (items []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// secretFile is where a command writes the text of a token or an invitation.
type secretFile struct{ path string }

func (f *secretFile) register(c *cli.Command, of string) {
	c.Flags.StringVarP(&f.path, "out", "o", "", "new `file` for the text of the "+of+", which only its owner can read; by default it is printed")
}

// create makes the file before the token is made: if that fails no token is lost.
func (f *secretFile) create() (*os.File, error) {
	if f.path == "" {
		return nil, nil
	}
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, cli.Usagef("--out: %w", err)
	}
	return out, nil
}

// makeToken calls f, which makes a token, and writes its text where the command line says.
func makeToken(t *cli.Terminal, file *secretFile, done string, f func() (client.TokenPut, error)) error {
	var made client.TokenPut
	return makeSecret(t, file, done, &made, func() (text *string, err error) {
		made, err = f()
		return &made.Token, err
	})
}

// makeSecret calls f, which makes what has a text, and writes that where the command line says.
// As JSON it prints made, in which the text is, unless that is in a file.
func makeSecret(t *cli.Terminal, file *secretFile, done string, made any, f func() (text *string, err error)) (err error) {
	out, err := file.create()
	if err != nil {
		return err
	}
	text, err := f()
	if out == nil {
		switch {
		case err != nil:
			return err
		case t.JSON:
			return t.PrintJSON(made)
		}
		t.Notes.Line("%s; its text is shown this once:", done)
		return t.Out.Line("%s", *text)
	}
	if err == nil {
		_, err = fmt.Fprintln(out, *text)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(file.path))
	}
	if t.JSON {
		*text = ""
		return t.PrintJSON(made)
	}
	return t.Out.Line("%s; its text is in %s", done, file.path)
}

func tokenCreateCommand() *cobra.Command {
	c := cli.NewCommand("create", "make a token, or change what one may do", "ID", "Makes a token, and prints its text this once. If there is one with the id, it changes what\nthat may do, and its text stays.",
		"tarry token create billing --allow 'billing.*=add,consume' -o billing.token", 1, 1)
	var in client.TokenSpec
	var end cli.Duration
	var file secretFile
	c.Flags.Func("limit", limitHelp, func(text string) error { return addLimits(&in.Limits, text) })
	c.Flags.Func("allow", ruleHelp, func(text string) error {
		r, err := parseRule(text)
		in.Rules = append(in.Rules, r)
		return err
	})
	c.Flags.StringVar(&in.Description, "description", "", "a `text` for people")
	c.Flags.StringVar(&in.IDPrefix, "id-prefix", "", "`prefix` with which the ids of the jobs that it adds must begin")
	c.Flags.Var(&end, "expires-in", "`time` after which the token ends, such as 30d; by default it does not")
	file.register(c, "token")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(in.Rules) == 0 {
			return cli.Usagef("--allow is missing: a token without a rule allows nothing")
		}
		if end.Value > 0 {
			in.ExpiresAt = time.Now().Add(end.Value)
		}
		made := false
		err := makeToken(t, &file, "token "+args[0]+" made", func() (client.TokenPut, error) {
			put, err := t.Client.Tokens().Put(ctx, args[0], in)
			made = put.Token != ""
			if err == nil && !made {
				err = errTokenChanged
			}
			return put, err
		})
		if errors.Is(err, errTokenChanged) {
			return t.Out.Line("token %s changed; its text stays", args[0])
		}
		return err
	})
}

// errTokenChanged ends a command that made no new text.
var errTokenChanged = errors.New("the token was there before")

func tokenRotateCommand() *cobra.Command {
	c := cli.NewCommand("rotate", "give a token a new text", "ID", "Gives a token a new text, and prints that this once. The text before is accepted for the time\nof --overlap.",
		"tarry token rotate billing --overlap 24h -o billing.token.new", 1, 1)
	overlap := cli.Duration{Value: time.Hour}
	var file secretFile
	c.Flags.Var(&overlap, "overlap", "`time` for which the text before is accepted, too")
	file.register(c, "token")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		return makeToken(t, &file, "token "+args[0]+" has a new text", func() (client.TokenPut, error) {
			return t.Client.Tokens().Rotate(ctx, args[0], overlap.Value)
		})
	})
}

func tokenListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the tokens", "", "Lists the tokens and what they may do, without their texts.", "tarry token list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		all, err := client.Collect(t.Client.Tokens().List(ctx))
		if err != nil {
			return err
		}
		return cli.PrintAll(t, all, []string{"ID", "ALLOWS", "ID PREFIX", "LIMITS", "ENDS", "DESCRIPTION"}, func(k client.Token) []string {
			return []string{k.ID, ruleWords(k.Rules), cli.Dash(k.IDPrefix), cli.Dash(limitWords(k.Limits)), ends(t, k), described(k)}
		})
	})
}

// described is the description for people.
func described(k client.Token) string {
	if k.Description == "" {
		return "-"
	}
	return cli.Plain([]byte(k.Description))
}

func ends(t *cli.Terminal, k client.Token) string {
	if k.ExpiresAt.IsZero() {
		return "never"
	}
	return t.When(k.ExpiresAt)
}

// ruleWords writes rules as --allow takes them.
func ruleWords(rules []client.Rule) string {
	words := make([]string, len(rules))
	for i, r := range rules {
		words[i] = cli.Plain([]byte(strings.Join(r.Topics, ",") + "=" + strings.Join(r.Verbs, ",")))
	}
	return cli.Dash(strings.Join(words, " "))
}

func tokenShowCommand() *cobra.Command {
	c := cli.NewCommand("show", "show a token", "ID", "Shows a token, without its text.", "tarry token show billing", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		k, err := t.Client.Tokens().Get(ctx, args[0])
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(k)
		}
		return printToken(t, k)
	})
}

func printToken(t *cli.Terminal, k client.Token) error {
	rows := [][]string{{"allows", ruleWords(k.Rules)}, {"ends", ends(t, k)}}
	for _, r := range [][]string{{"id prefix", cli.Dash(k.IDPrefix)}, {"limits on each node", cli.Dash(limitWords(k.Limits))}, {"description", described(k)}} {
		if r[1] != "-" {
			rows = append(rows, r)
		}
	}
	if !k.OldUntil.IsZero() {
		rows = append(rows, []string{"text before is accepted until", t.When(k.OldUntil)})
	}
	return t.Table([]string{"token", k.ID}, rows)
}

func tokenRevokeCommand() *cobra.Command {
	c := cli.NewCommand("revoke", "revoke a token at once", "ID", "Revokes a token at once and for good, also for streams and reserves that wait. It asks before.", "tarry token revoke billing", 1, 1)
	c.Asks(func(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
		k, err := t.Client.Tokens().Get(ctx, args[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Revoke the token %s, which allows %s?", args[0], ruleWords(k.Rules)), nil
	})
	return cli.Operate(c, false, "revoked", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Tokens().Delete(ctx, args[0])
	})
}

// limitHelp is the help of the flag with limits of a token.
const limitHelp = "`NAME=NUMBER`: what the token may use on each node, such as rate=100,connections=10: operations a second (rate), open connections, streams and reserves that wait (waiters), bytes of bodies a second (bytes); it may be given several times"

// addLimits reads limits: a list of names with numbers.
func addLimits(to *client.TokenLimits, text string) error {
	items := splitList(text)
	if len(items) == 0 {
		return errors.New("is empty; leave it out, for no limits")
	}
	for _, item := range items {
		name, number, _ := strings.Cut(item, "=")
		if err := addLimit(to, name, number); err != nil {
			return err
		}
	}
	return nil
}

func addLimit(to *client.TokenLimits, name, number string) error {
	switch name {
	case "rate":
		n, err := strconv.ParseFloat(number, 64)
		if most := job.MaxRateMilli / 1000; err != nil || !(n >= 0.001 && n <= float64(most)) {
			return fmt.Errorf("rate takes a number from 0.001 to %d, got %.40q", most, number)
		}
		return setLimit(&to.Rate, n, name)
	case "connections":
		return addWhole(&to.Connections, name, number, math.MaxUint32)
	case "waiters":
		return addWhole(&to.Waiters, name, number, math.MaxUint32)
	case "bytes":
		return addWhole(&to.Bytes, name, number, job.MaxTokenBytes)
	}
	return fmt.Errorf("%.40q is no limit; the limits are rate, connections, waiters and bytes", name)
}

func addWhole[T uint32 | uint64](to *T, name, number string, most uint64) error {
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 || n > most {
		return fmt.Errorf("%s takes a whole number from 1 to %d, got %.40q", name, most, number)
	}
	return setLimit(to, T(n), name)
}

func setLimit[T uint32 | uint64 | float64](to *T, n T, name string) error {
	if *to != 0 {
		return fmt.Errorf("%s is given twice", name)
	}
	*to = n
	return nil
}

// limitWords writes limits as --limit takes them.
func limitWords(l client.TokenLimits) string {
	var words []string
	add := func(name string, n float64) {
		if n != 0 {
			words = append(words, name+"="+strconv.FormatFloat(n, 'f', -1, 64))
		}
	}
	add("rate", l.Rate)
	add("connections", float64(l.Connections))
	add("waiters", float64(l.Waiters))
	add("bytes", float64(l.Bytes))
	return strings.Join(words, ",")
}
