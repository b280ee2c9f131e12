package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/secretkeys"
)

func KeygenCommand() *cobra.Command {
	c := &cobra.Command{Use: "keygen [FILE]", Short: "make a key that encrypts gossip", Args: cli.Arguments("[FILE]", 0, 1),
		Long:    "Makes a random key for --gossip-keys-file. With FILE it makes that file, which only its owner\ncan read; an existing file is never overwritten. Without, it prints the key.",
		Example: "  tarry keygen gossip.keys"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, out := gossipkeys.New(), cli.Printer{To: cmd.OutOrStdout()}
		if len(args) == 0 {
			return out.Line("%s", key.Secret())
		}
		err := gossipkeys.Create(args[0], gossipkeys.Keys{List: []gossipkeys.Key{key}})
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; nothing is overwritten: name another file, or add a key to a running cluster with tarry keyring install", err)
		}
		if err != nil {
			return err
		}
		return out.Line("key %s: %s", key.Fingerprint(), args[0])
	}
	return c
}

const secretsText = `Makes and shows the keys that seal the secrets of push targets, so that disks and backups do not
show them (docs/push.md). Each node has the keys in its --secrets-key-file.

To replace a key: add a new one at the end of the file of every node, put it first in every
file, run tarry secrets rewrap, and remove the old one once tarry secrets list shows no topics
for it.`

func SecretsCommand() *cobra.Command {
	return cli.Group("secrets", "keys that seal secrets: keygen, list, rewrap", secretsText,
		secretsKeygenCommand(), secretsListCommand(), secretsRewrapCommand())
}

func secretsKeygenCommand() *cobra.Command {
	c := &cobra.Command{Use: "keygen [FILE]", Short: "make a key that seals secrets", Args: cli.Arguments("[FILE]", 0, 1),
		Long:    "Makes a random key for --secrets-key-file. With FILE it makes that file, which only its owner\ncan read; an existing file is never overwritten. Without, it prints the key.",
		Example: "  tarry secrets keygen secrets.keys"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, out := secretkeys.NewKey(), cli.Printer{To: cmd.OutOrStdout()}
		if len(args) == 0 {
			return out.Line("%s", key.Text())
		}
		err := secretkeys.Create(args[0], key)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; nothing is overwritten: name another file, or add the output of tarry secrets keygen to this one", err)
		}
		if err != nil {
			return err
		}
		return out.Line("key %s: %s", key.ID(), args[0])
	}
	return c
}

func secretsListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the keys that seal secrets", "", "Lists the keys of a node, the one that seals first, and others that secrets need, with the number\nof topics whose secrets are sealed with each. It needs the verb admin.", "tarry secrets list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		k, err := t.Client.Keys().Secrets(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(k)
		}
		var rows [][]string
		for _, key := range k.Keys {
			use := "opens"
			switch {
			case key.Seals:
				use = "seals"
			case !key.Held:
				use = "missing on this node"
			}
			rows = append(rows, []string{key.ID, use, cli.Count(uint64(key.Topics))})
		}
		if k.Plain > 0 {
			rows = append(rows, []string{"-", "not sealed", cli.Count(uint64(k.Plain))})
		}
		return t.Table([]string{"KEY", "USE", "TOPICS"}, rows)
	})
}

func secretsRewrapCommand() *cobra.Command {
	c := cli.NewCommand("rewrap", "seal all secrets with the first key", "", "Seals the secrets of all topics with the first key of the node: those that are plain, and those\nthat another key has sealed. All nodes must have that key. It can be repeated, and needs the\nverbs admin, and manage and push on all topics. Exit code 1 if a secret is not sealed.", "tarry secrets rewrap", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		r, err := t.Client.Keys().RewrapSecrets(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(r)
		} else {
			err = t.Out.Line("sealed: %d, unchanged: %d, failed: %d", r.Rewrapped, r.Unchanged, r.Failed)
		}
		if err == nil && r.Failed > 0 {
			err = fmt.Errorf("%d secrets are not sealed with the first key; the first one: %s", r.Failed, r.Reason)
		}
		return err
	})
}
