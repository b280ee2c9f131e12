package ops

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
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
)

func AuthCommand() *cobra.Command {
	return cli.Group("auth", "bootstrap, reset, mode, anonymous, check: whether clients need a token", "Shows and sets whether clients need a token (docs/tokens.md).",
		authBootstrapCommand(), authResetCommand(), authModeCommand(), authAnonymousCommand(), authCheckCommand())
}

func authBootstrapCommand() *cobra.Command {
	c := cli.NewCommand("bootstrap", "make the first token", "[ID]", "Makes the first token, which may do everything, and prints its text this once. It works once in\nthe life of a cluster, for who can read the data directory of the node at --addr, and once more\nafter each tarry auth reset in that directory. The id is root unless it is given.",
		"tarry auth bootstrap --data-dir /var/lib/tarry -o root.token", 0, 1)
	var file secretFile
	dir := c.Flags.String("data-dir", "tarry-data", "`directory` with the data of the node at --addr")
	file.register(c, "token")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(t.Nodes) != 1 {
			return cli.Usagef("acts on one node, and --addr (or %s) names %d; name one with --addr", cli.AddrEnv, len(t.Nodes))
		}
		proof, err := bootstrapProof(t, *dir)
		if err != nil {
			return cli.Usagef("--data-dir: %w", err)
		}
		return makeToken(t, &file, "the first token is made", func() (client.TokenPut, error) {
			return t.Client.Tokens().Bootstrap(ctx, proof, strings.Join(args, ""))
		})
	})
}

// bootstrapProof returns what proves to a node that somebody has its data directory.
func bootstrapProof(t *cli.Terminal, dir string) (string, error) {
	reset, err := (&server.ResetFile{Dir: dir}).Read()
	switch {
	case err == nil && reset.Fresh(time.Now()):
		return reset.Nonce, nil
	case err == nil:
		t.Notes.Line("the nonce of tarry auth reset is not used: it was made at %s, and is good for %s", reset.Made.Format(time.RFC3339), api.ResetTime)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	proof, err := server.ReadProof(filepath.Join(dir, api.BootstrapFile))
	return strings.TrimSpace(string(proof)), err
}

const authResetText = `The way back in when all tokens with the verb admin are lost. Writes a nonce of one use into the
data directory of a node, which runs on. Within an hour after that, tarry auth bootstrap with the
same --data-dir makes a first token once more; its id may be that of a lost token, which it
replaces at once. The mode and all other tokens stay, and no job is touched. One node is enough,
whichever it is. Run it as the user of the node, or as root.`

func authResetCommand() *cobra.Command {
	c := cli.NewLocal("reset", "let a first token be made once more, when all admin tokens are lost", "", authResetText, "tarry auth reset --data-dir /var/lib/tarry")
	dir := c.Flags.String("data-dir", "tarry-data", "`directory` with the data of a node")
	return c.Does(func(context.Context, []string) error {
		if _, err := os.Stat(filepath.Join(*dir, api.BootstrapFile)); err != nil {
			return cli.Usagef("--data-dir is not the data directory of a node that has started: %w", err)
		}
		until := time.Now().Add(api.ResetTime)
		if err := (&server.ResetFile{Dir: *dir}).Make(time.Now()); err != nil {
			return fmt.Errorf("the nonce could not be written: %w", err)
		}
		if c.JSON {
			return c.PrintJSON(struct {
				DataDir string    `json:"data_dir"`
				Until   time.Time `json:"until"`
			}{*dir, until.UTC().Truncate(time.Second)})
		}
		return errors.Join(
			c.Out.Line("a first token can be made once until %s, at the node with this directory:", until.UTC().Format(time.RFC3339)),
			c.Out.Line("  tarry auth bootstrap --data-dir %s -o root.token", *dir))
	})
}

func authModeCommand() *cobra.Command {
	c := cli.NewCommand("mode", "show or set whether tokens are needed", "[off|report|enforce]", "Shows whether tokens are needed, or sets it: off checks nothing, report does what is not allowed\nand counts it, enforce refuses it.", "tarry auth mode report", 0, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) == 1 && !slices.Contains(cli.AuthModes, args[0]) {
			return cli.Usagef("there is no mode %q; it takes %s", args[0], strings.Join(cli.AuthModes, ", "))
		}
		return setAuth(ctx, t, len(args) == 1, func(a *client.Auth) { a.Mode = args[0] })
	})
}

func authAnonymousCommand() *cobra.Command {
	c := cli.NewCommand("anonymous", "show or set what is allowed without a token", "", "Shows what is allowed without a token, or replaces it.", "tarry auth anonymous --allow 'public.*=add'", 0, 0)
	var rules []client.Rule
	c.Flags.Func("allow", ruleHelp, func(text string) error {
		r, err := parseRule(text)
		rules = append(rules, r)
		return err
	})
	none := c.Flags.Bool("none", false, "allow nothing without a token")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		if *none && rules != nil {
			return cli.Usagef("--none and --allow are both given; give one")
		}
		return setAuth(ctx, t, *none || rules != nil, func(a *client.Auth) { a.Anonymous = rules })
	})
}

// setAuth changes the settings, and prints them.
func setAuth(ctx context.Context, t *cli.Terminal, change bool, f func(*client.Auth)) error {
	a, err := t.Client.Tokens().Auth(ctx)
	if err != nil {
		return err
	}
	if change {
		f(&a)
		if err := t.Client.Tokens().SetAuth(ctx, a.Mode, a.Anonymous, a.Revision); err != nil {
			return err
		}
		if a, err = t.Client.Tokens().Auth(ctx); err != nil {
			return err
		}
	}
	if t.JSON {
		return t.PrintJSON(a)
	}
	return errors.Join(
		t.Out.Line("mode: %s", a.Mode),
		t.Out.Line("allowed without a token: %s", allowedWords(a.Anonymous)),
		t.Out.Line("tokens: %d", a.Tokens),
	)
}

func allowedWords(rules []client.Rule) string {
	if len(rules) == 0 {
		return "nothing"
	}
	return ruleWords(rules)
}

func authCheckCommand() *cobra.Command {
	c := cli.NewCommand("check", "show who this client is, and what it may do", "[VERB [TOPIC]]", "Shows which token this client has, and what it may do. With a verb, and a topic if the verb is\nabout topics, exit code 1 says that no rule allows it, whatever the mode is.",
		"tarry auth check add billing.invoices", 0, 2)
	topic := c.Flags.StringP("topic", "t", "", "`name` of the topic, instead of the argument TOPIC")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		switch {
		case *topic != "" && len(args) != 1:
			return cli.Usagef("--topic needs VERB alone")
		case *topic != "":
			args = append(args, *topic)
		}
		me, err := t.Client.WhoAmI(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(me)
		} else {
			err = printIdentity(t, me)
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

func printIdentity(t *cli.Terminal, me client.Identity) error {
	who := "token " + me.ID
	if me.ID == "" {
		who = "no token, or none that is known"
	}
	return errors.Join(
		t.Out.Line("mode: %s", me.Mode),
		t.Out.Line("this client: %s", who),
		t.Out.Line("allowed: %s", allowedWords(me.Rules)),
	)
}
