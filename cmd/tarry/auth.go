package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/api"
	"tarry/client"
)

func authCommand() *cobra.Command {
	return group("auth", "bootstrap, reset, mode, anonymous, check: whether clients need a token", "Shows and sets whether clients need a token (docs/tokens.md).",
		authBootstrapCommand(), authResetCommand(), authModeCommand(), authAnonymousCommand(), authCheckCommand())
}

func authBootstrapCommand() *cobra.Command {
	c := newCommand("bootstrap", "make the first token", "[ID]", "Makes the first token, which may do everything, and prints its text this once. It works once in\nthe life of a cluster, for who can read the data directory of the node at --addr, and once more\nafter each tarry auth reset in that directory. The id is root unless it is given.",
		"tarry auth bootstrap --data-dir /var/lib/tarry -o root.token", 0, 1)
	var file secretFile
	dir := c.flags.String("data-dir", "tarry-data", "`directory` with the data of the node at --addr")
	file.register(c, "token")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(t.nodes) != 1 {
			return usagef("acts on one node, and --addr (or %s) names %d; name one with --addr", addrEnv, len(t.nodes))
		}
		proof, err := t.bootstrapProof(*dir)
		if err != nil {
			return usagef("--data-dir: %w", err)
		}
		return t.makeToken(&file, "the first token is made", func() (client.TokenPut, error) {
			return t.client.Tokens().Bootstrap(ctx, proof, strings.Join(args, ""))
		})
	})
}

// bootstrapProof returns what proves to a node that somebody has its data directory.
func (t *terminal) bootstrapProof(dir string) (string, error) {
	reset, err := (&resetFile{dir: dir}).read()
	switch {
	case err == nil && reset.fresh(time.Now()):
		return reset.Nonce, nil
	case err == nil:
		t.notes.line("the nonce of tarry auth reset is not used: it was made at %s, and is good for %s", reset.Made.Format(time.RFC3339), api.ResetTime)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	proof, err := readProof(filepath.Join(dir, api.BootstrapFile))
	return strings.TrimSpace(string(proof)), err
}

const authResetText = `The way back in when all tokens with the verb admin are lost. Writes a nonce of one use into the
data directory of a node, which runs on. Within an hour after that, tarry auth bootstrap with the
same --data-dir makes a first token once more; its id may be that of a lost token, which it
replaces at once. The mode and all other tokens stay, and no job is touched. One node is enough,
whichever it is. Run it as the user of the node, or as root.`

func authResetCommand() *cobra.Command {
	c := newLocal("reset", "let a first token be made once more, when all admin tokens are lost", "", authResetText, "tarry auth reset --data-dir /var/lib/tarry")
	dir := c.flags.String("data-dir", "tarry-data", "`directory` with the data of a node")
	return c.does(func(context.Context, []string) error {
		if _, err := os.Stat(filepath.Join(*dir, api.BootstrapFile)); err != nil {
			return usagef("--data-dir is not the data directory of a node that has started: %w", err)
		}
		until := time.Now().Add(api.ResetTime)
		if err := (&resetFile{dir: *dir}).make(time.Now()); err != nil {
			return fmt.Errorf("the nonce could not be written: %w", err)
		}
		if c.json {
			return c.printJSON(struct {
				DataDir string    `json:"data_dir"`
				Until   time.Time `json:"until"`
			}{*dir, until.UTC().Truncate(time.Second)})
		}
		return errors.Join(
			c.out.line("a first token can be made once until %s, at the node with this directory:", until.UTC().Format(time.RFC3339)),
			c.out.line("  tarry auth bootstrap --data-dir %s -o root.token", *dir))
	})
}

var authModes = []string{"off", "report", "enforce"}

func authModeCommand() *cobra.Command {
	c := newCommand("mode", "show or set whether tokens are needed", "[off|report|enforce]", "Shows whether tokens are needed, or sets it: off checks nothing, report does what is not allowed\nand counts it, enforce refuses it.", "tarry auth mode report", 0, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) == 1 && !slices.Contains(authModes, args[0]) {
			return usagef("there is no mode %q; it takes %s", args[0], strings.Join(authModes, ", "))
		}
		return t.setAuth(ctx, len(args) == 1, func(a *client.Auth) { a.Mode = args[0] })
	})
}

func authAnonymousCommand() *cobra.Command {
	c := newCommand("anonymous", "show or set what is allowed without a token", "", "Shows what is allowed without a token, or replaces it.", "tarry auth anonymous --allow 'public.*=add'", 0, 0)
	var rules []client.Rule
	c.flags.Func("allow", ruleHelp, func(text string) error {
		r, err := parseRule(text)
		rules = append(rules, r)
		return err
	})
	none := c.flags.Bool("none", false, "allow nothing without a token")
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		if *none && rules != nil {
			return usagef("--none and --allow are both given; give one")
		}
		return t.setAuth(ctx, *none || rules != nil, func(a *client.Auth) { a.Anonymous = rules })
	})
}

// setAuth changes the settings, and prints them.
func (t *terminal) setAuth(ctx context.Context, change bool, f func(*client.Auth)) error {
	a, err := t.client.Tokens().Auth(ctx)
	if err != nil {
		return err
	}
	if change {
		f(&a)
		if err := t.client.Tokens().SetAuth(ctx, a.Mode, a.Anonymous, a.Revision); err != nil {
			return err
		}
		if a, err = t.client.Tokens().Auth(ctx); err != nil {
			return err
		}
	}
	if t.json {
		return t.printJSON(a)
	}
	return errors.Join(
		t.out.line("mode: %s", a.Mode),
		t.out.line("allowed without a token: %s", allowedWords(a.Anonymous)),
		t.out.line("tokens: %d", a.Tokens),
	)
}

func allowedWords(rules []client.Rule) string {
	if len(rules) == 0 {
		return "nothing"
	}
	return ruleWords(rules)
}

func authCheckCommand() *cobra.Command {
	c := newCommand("check", "show who this client is, and what it may do", "[VERB [TOPIC]]", "Shows which token this client has, and what it may do. With a verb, and a topic if the verb is\nabout topics, exit code 1 says that no rule allows it, whatever the mode is.",
		"tarry auth check add billing.invoices", 0, 2)
	topic := c.flags.StringP("topic", "t", "", "`name` of the topic, instead of the argument TOPIC")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case *topic != "" && len(args) != 1:
			return usagef("--topic needs VERB alone")
		case *topic != "":
			args = append(args, *topic)
		}
		me, err := t.client.WhoAmI(ctx)
		if err != nil {
			return err
		}
		if t.json {
			err = t.printJSON(me)
		} else {
			err = t.printIdentity(me)
		}
		if err != nil || len(args) == 0 {
			return err
		}
		of := strings.Join(args[1:], "")
		if slices.ContainsFunc(me.Rules, func(r client.Rule) bool { return allows(r, args[0], of) }) {
			return nil
		}
		return fmt.Errorf("%s is not allowed", strings.Join(args, " on topic "))
	})
}

// allows reports whether a rule allows a verb on a topic.
func allows(r client.Rule, verb, topic string) bool {
	ofCluster := slices.Contains([]string{"observe", "operate", "admin"}, verb)
	return slices.Contains(r.Verbs, verb) && (ofCluster || slices.ContainsFunc(r.Topics, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return pattern == topic || isPrefix && strings.HasPrefix(topic, prefix)
	}))
}

func (t *terminal) printIdentity(me client.Identity) error {
	who := "token " + me.ID
	if me.ID == "" {
		who = "no token, or none that is known"
	}
	return errors.Join(
		t.out.line("mode: %s", me.Mode),
		t.out.line("this client: %s", who),
		t.out.line("allowed: %s", allowedWords(me.Rules)),
	)
}
