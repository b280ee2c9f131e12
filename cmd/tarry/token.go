package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
)

func tokenCommand() *cobra.Command {
	return group("token", "create, list, show, rotate, revoke tokens of clients", "Makes and shows the tokens of clients, and what they allow (docs/tokens.md).",
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

func (f *secretFile) register(c *clientCommand, of string) {
	c.flags.StringVarP(&f.path, "out", "o", "", "new `file` for the text of the "+of+", which only its owner can read; by default it is printed")
}

// create makes the file before the token is made: if that fails no token is lost.
func (f *secretFile) create() (*os.File, error) {
	if f.path == "" {
		return nil, nil
	}
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, usagef("--out: %w", err)
	}
	return out, nil
}

// makeToken calls f, which makes a token, and writes its text where the command line says.
func (t *terminal) makeToken(file *secretFile, done string, f func() (client.TokenPut, error)) error {
	var made client.TokenPut
	return t.makeSecret(file, done, &made, func() (text *string, err error) {
		made, err = f()
		return &made.Token, err
	})
}

// makeSecret calls f, which makes what has a text, and writes that where the command line says.
// As JSON it prints made, in which the text is, unless that is in a file.
func (t *terminal) makeSecret(file *secretFile, done string, made any, f func() (text *string, err error)) (err error) {
	out, err := file.create()
	if err != nil {
		return err
	}
	text, err := f()
	if out == nil {
		switch {
		case err != nil:
			return err
		case t.json:
			return t.printJSON(made)
		}
		t.notes.line("%s; its text is shown this once:", done)
		return t.out.line("%s", *text)
	}
	if err == nil {
		_, err = fmt.Fprintln(out, *text)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(file.path))
	}
	if t.json {
		*text = ""
		return t.printJSON(made)
	}
	return t.out.line("%s; its text is in %s", done, file.path)
}

func tokenCreateCommand() *cobra.Command {
	c := newCommand("create", "make a token, or change what one may do", "ID", "Makes a token, and prints its text this once. If there is one with the id, it changes what\nthat may do, and its text stays.",
		"tarry token create billing --allow 'billing.*=add,consume' -o billing.token", 1, 1)
	var in client.TokenSpec
	var end duration
	var file secretFile
	c.flags.Func("limit", limitHelp, func(text string) error { return addLimits(&in.Limits, text) })
	c.flags.Func("allow", ruleHelp, func(text string) error {
		r, err := parseRule(text)
		in.Rules = append(in.Rules, r)
		return err
	})
	c.flags.StringVar(&in.Description, "description", "", "a `text` for people")
	c.flags.StringVar(&in.IDPrefix, "id-prefix", "", "`prefix` with which the ids of the jobs that it adds must begin")
	c.flags.Var(&end, "expires-in", "`time` after which the token ends, such as 30d; by default it does not")
	file.register(c, "token")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(in.Rules) == 0 {
			return usagef("--allow is missing: a token without a rule allows nothing")
		}
		if end.d > 0 {
			in.ExpiresAt = time.Now().Add(end.d)
		}
		made := false
		err := t.makeToken(&file, "token "+args[0]+" made", func() (client.TokenPut, error) {
			put, err := t.client.Tokens().Put(ctx, args[0], in)
			made = put.Token != ""
			if err == nil && !made {
				err = errTokenChanged
			}
			return put, err
		})
		if errors.Is(err, errTokenChanged) {
			return t.out.line("token %s changed; its text stays", args[0])
		}
		return err
	})
}

// errTokenChanged ends a command that made no new text.
var errTokenChanged = errors.New("the token was there before")

func tokenRotateCommand() *cobra.Command {
	c := newCommand("rotate", "give a token a new text", "ID", "Gives a token a new text, and prints that this once. The text before is accepted for the time\nof --overlap.",
		"tarry token rotate billing --overlap 24h -o billing.token.new", 1, 1)
	overlap := duration{d: time.Hour}
	var file secretFile
	c.flags.Var(&overlap, "overlap", "`time` for which the text before is accepted, too")
	file.register(c, "token")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		return t.makeToken(&file, "token "+args[0]+" has a new text", func() (client.TokenPut, error) {
			return t.client.Tokens().Rotate(ctx, args[0], overlap.d)
		})
	})
}

func tokenListCommand() *cobra.Command {
	c := newCommand("list", "list the tokens", "", "Lists the tokens and what they may do, without their texts.", "tarry token list", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		all, err := client.Collect(t.client.Tokens().List(ctx))
		if err != nil {
			return err
		}
		return printAll(t, all, []string{"ID", "ALLOWS", "ID PREFIX", "LIMITS", "ENDS", "DESCRIPTION"}, func(k client.Token) []string {
			return []string{k.ID, ruleWords(k.Rules), dash(k.IDPrefix), dash(limitWords(k.Limits)), t.ends(k), described(k)}
		})
	})
}

// described is the description for people.
func described(k client.Token) string {
	if k.Description == "" {
		return "-"
	}
	return plain([]byte(k.Description))
}

func (t *terminal) ends(k client.Token) string {
	if k.ExpiresAt.IsZero() {
		return "never"
	}
	return t.when(k.ExpiresAt)
}

// ruleWords writes rules as --allow takes them.
func ruleWords(rules []client.Rule) string {
	words := make([]string, len(rules))
	for i, r := range rules {
		words[i] = plain([]byte(strings.Join(r.Topics, ",") + "=" + strings.Join(r.Verbs, ",")))
	}
	return dash(strings.Join(words, " "))
}

func tokenShowCommand() *cobra.Command {
	c := newCommand("show", "show a token", "ID", "Shows a token, without its text.", "tarry token show billing", 1, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		k, err := t.client.Tokens().Get(ctx, args[0])
		if err != nil {
			return err
		}
		if t.json {
			return t.printJSON(k)
		}
		return t.printToken(k)
	})
}

func (t *terminal) printToken(k client.Token) error {
	rows := [][]string{{"allows", ruleWords(k.Rules)}, {"ends", t.ends(k)}}
	for _, r := range [][]string{{"id prefix", dash(k.IDPrefix)}, {"limits on each node", dash(limitWords(k.Limits))}, {"description", described(k)}} {
		if r[1] != "-" {
			rows = append(rows, r)
		}
	}
	if !k.OldUntil.IsZero() {
		rows = append(rows, []string{"text before is accepted until", t.when(k.OldUntil)})
	}
	return t.table([]string{"token", k.ID}, rows)
}

func tokenRevokeCommand() *cobra.Command {
	c := newCommand("revoke", "revoke a token at once", "ID", "Revokes a token at once and for good, also for streams and reserves that wait. It asks before.", "tarry token revoke billing", 1, 1)
	c.asks(func(ctx context.Context, t *terminal, args []string) (string, error) {
		k, err := t.client.Tokens().Get(ctx, args[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Revoke the token %s, which allows %s?", args[0], ruleWords(k.Rules)), nil
	})
	return operate(c, false, "revoked", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Tokens().Delete(ctx, args[0])
	})
}
